"""The figures of this folder from its saved results: `python -m examples.paper.kuramoto_sivashinsky.figures`.

figure_1.png and figure_2.png are the paper's; figure_3.png shows what they leave out: modes one by one, the horizons of
the mobility, and the published recipe and the linear inverse model (LIM) beside it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from effective_langevin.validate import fields as statistics
from effective_langevin.validate.style import DATA, MODEL, enclosing_levels, styled

from . import curves as drawing
from . import results

OURS = "state-dependent"
MODELS = (OURS, "constant", "published", "LIM")
MASSES = (0.99, 0.9, 0.6, 0.3)
JOINED_BINS = 4
MODES = 6

Arrays = Mapping[str, np.ndarray]


def main(folder: Path = results.FOLDER) -> None:
    """Draw the three figures of a folder."""
    arrays, _ = results.read(folder)
    for number, draw in enumerate((validation_figure, operator_figure, mode_figure), 1):
        draw(arrays).savefig(folder / f"figure_{number}.png", dpi=160)


@styled
def validation_figure(arrays: Arrays) -> Figure:
    """The paper's first figure: fields, density, autocorrelation, joint densities of data and models."""
    figure = Figure(figsize=(13.5, 6.6), layout="constrained")
    left, centre, right = np.ravel(np.asarray(figure.subfigures(1, 3, width_ratios=(1.35, 0.95, 1.7))))
    fields = {name: arrays[f"{name}.field"] for name in ("data", "constant", OURS) if f"{name}.field" in arrays}
    steps = min(len(field) for field in fields.values())
    time = arrays["dt"] * np.arange(steps)
    fields = {name.capitalize(): field[:steps] for name, field in fields.items()}
    drawing.plot_hovmoeller(time, fields, title="u / std", axes=left.subplots(len(fields), 1))
    density, correlation = centre.subplots(2, 1)
    _density(density, arrays)
    names = ("data", *_models(arrays))
    curves = {name: arrays[f"{name}.acf"][:, None] for name in names}
    drawing.plot_correlations(arrays["lag"], curves, titles=["Autocorrelation at a point"], axes=[correlation])
    handles = correlation.get_legend().legend_handles
    correlation.legend(handles=handles, loc="lower left", ncols=2, fontsize=8)  # below all curves
    _joint_densities(right.subplots(2, 3, sharex=True, sharey=True), arrays)
    return figure


@styled
def operator_figure(arrays: Arrays) -> Figure:
    """The paper's second figure: Phi, its two parts, Sigma and the Stein matrix, of each model."""
    names = [name for name in (OURS, "constant", "published") if f"{name}.phi" in arrays]
    figure = Figure(figsize=(13.5, 3.5 * len(names)), layout="constrained")
    for part, name in zip(np.ravel(np.asarray(figure.subfigures(len(names), 1))), names):
        titles = {
            "Mobility Φ": "phi",
            "Symmetric part Φ$_S$": "phi_symmetric",
            "Antisymmetric part Φ$_A$": "phi_antisymmetric",
            "Noise factor Σ": "sigma",
            "Stein matrix ⟨s xᵀ⟩": "stein",
        }
        matrices = {title: arrays[f"{name}.{key}"] for title, key in titles.items()}
        mobilities = list(titles)[:3]
        units = dict.fromkeys(mobilities, "1/time") | {
            "Noise factor Σ": "1/√time",
            "Stein matrix ⟨s xᵀ⟩": "exact: −1 on the diagonal",
        }
        axes = part.subplots(1, 5)
        drawing.plot_operators(matrices, units, together=mobilities, axes=axes)
        axes[0].set_ylabel("point on the ring")
        part.suptitle(name.capitalize(), x=0.005, ha="left", fontweight="bold", fontsize=11)
    return figure


@styled
def mode_figure(arrays: Arrays) -> Figure:
    """Phi_k(T) with its horizons, Phi_k and variance by mode, and the autocorrelations of the leading modes."""
    points = len(arrays["data.covariance"])
    variance, share = arrays["data.mode_variance"], statistics.variance_shares(arrays["data.mode_variance"], points)
    modes = statistics.leading_modes(variance, points, share=0.99, most=MODES)
    figure = Figure(figsize=(13.5, 9.2), layout="constrained")
    top, bottom = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=(1, 1.45))))
    horizon, clock, spread = top.subplots(1, 3)
    if "constant.phi_by_mode" in arrays:
        drawing.plot_phi_by_mode(
            *(arrays[f"constant.{key}"] for key in ("horizon", "phi_by_mode", "phi_of_mode")),
            chosen=arrays["constant.chosen_horizon"],
            modes=modes,
            titles=[f"k = {k}" for k in modes],
            ax=horizon,
        )
    horizon.set_title("Mobility of each mode by horizon (constant)")
    _mobilities(clock, arrays, variance)
    names = ("data", *_models(arrays))
    drawing.plot_mode_variances({name: arrays[f"{name}.mode_variance"] for name in names}, ax=spread)
    spread.set_title("Variance by mode")
    drawing.plot_correlations(
        arrays["lag"],
        {name: arrays[f"{name}.mode_acf"][:, modes] for name in names},
        titles=[f"Mode {k} ({100 * share[k]:.0f} % of the variance)" for k in modes],
        axes=bottom.subplots(2, 3, sharey=True),
    )
    return figure


def _density(ax: Axes, arrays: Arrays) -> None:
    """The density at a point, data filled and models as lines."""
    edges = arrays["pdf_edges"][::JOINED_BINS]
    for name in ("data", *_models(arrays)):
        counts = arrays[f"{name}.pdf_counts"].reshape(-1, JOINED_BINS).sum(axis=1)
        density = counts / counts.sum() / np.diff(edges)
        colour, dashes = drawing.line(name)
        if name == "data":
            ax.stairs(density, edges, fill=True, color=colour, alpha=0.3, label=name)
        else:
            ax.plot(0.5 * (edges[1:] + edges[:-1]), density, color=colour, linestyle=dashes, label=name)
    ax.set(xlim=(edges[0], edges[-1]), xlabel="u / std", ylabel="density", title="Density at a point")
    ax.set_ylim(bottom=0)


def _joint_densities(axes: np.ndarray, arrays: Arrays) -> None:
    """Joint densities, filled: model above, data below; the lines are those of the data in both rows."""
    edges = arrays["pair_edges"]
    middle = 0.5 * (edges[1:] + edges[:-1])
    for column, offset in enumerate(statistics.OFFSETS):
        densities = {}
        for name in (_best(arrays), "data"):
            counts = gaussian_filter(arrays[f"{name}.pair_counts"][column].astype(float), 0.8)
            densities[name] = counts / counts.sum() / np.outer(np.diff(edges), np.diff(edges))
        levels = enclosing_levels(densities["data"], MASSES)
        for ax, (name, density) in zip(axes[:, column], densities.items()):
            shades = "Blues" if name == "data" else "Oranges"
            ax.contourf(middle, middle, density.T, [*levels, max(density.max(), levels[-1]) * 1.01], cmap=shades)
            ax.contour(middle, middle, densities["data"].T, levels, colors=DATA, linewidths=0.9)
        axes[0, column].set_title(f"Model, k = {offset}", color=MODEL)
        axes[1, column].set_title(f"Data, k = {offset}", color=DATA)
        axes[1, column].set_xlabel("u$_i$ / std")
    for row in axes:
        row[0].set_ylabel("u$_{i+k}$ / std")
    axes[0, 0].figure.suptitle("Joint densities at two points k apart; blue lines are those of the data", fontsize=9.5)


def _mobilities(ax: Axes, arrays: Arrays, variance: np.ndarray) -> None:
    """Phi_k of every model, for modes that hold any variance."""
    seen = variance > 1e-3 * variance.max()
    for name in _models(arrays):
        colour, dashes = drawing.line(name)
        phi = np.where(seen, arrays[f"{name}.phi_of_mode"], np.nan)
        marker = drawing.MARKERS.get(name, "D")
        ax.plot(phi, color=colour, linestyle=dashes, marker=marker, markersize=4, label=name)
    ax.set_yscale("log")
    ax.set(xlabel="Fourier mode k", ylabel="Φ$_k$ [1/time]", title="Mobility by mode")
    ax.legend(fontsize=8)


def _models(arrays: Arrays) -> list[str]:
    return [name for name in MODELS if f"{name}.acf" in arrays]


def _best(arrays: Arrays) -> str:
    """The model that is drawn where there is room for one."""
    return _models(arrays)[0]


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:2]))
