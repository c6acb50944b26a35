"""Figures: these functions only draw, what they draw is computed elsewhere.

Each takes arrays and, optionally, the axes to draw into; without axes it makes its own figure, `axes[0].figure`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from .._core.format import digits
from .._core.types import LagMatrices, Matrix
from ..data import TimeSeries
from ..estimate.mobility import Mobility
from .curve_plots import plot_return_times, plot_spectra
from .style import DATA, MODEL, WIDTH, band, even_columns, in_rows, label, legend, panels, plain, short, styled

__all__ = [
    "plot_acfs",
    "plot_cross_correlations",
    "plot_mobility",
    "plot_noise_level_choice",
    "plot_pair_densities",
    "plot_pdfs",
    "plot_phi_by_horizon",
    "plot_return_times",
    "plot_spectra",
    "plot_stein",
    "plot_training",
    "plot_trajectories",
]

ANNOTATED = 6
MASSES = (0.99, 0.9, 0.7, 0.5, 0.3, 0.1)
_FILL = LinearSegmentedColormap.from_list("data", ["#dcebf5", "#5fa5d0", "#00507d"])


@styled
def plot_trajectories(
    data: TimeSeries, paths: TimeSeries, window: float, *, variables: Sequence[int] | None = None, axes=None
) -> np.ndarray:
    """Sample paths over `window`, one variable per row: data on the left, model on the right, on the same scale."""
    variables = list(range(data.dimension) if variables is None else variables)
    axes = panels(2 * len(variables), 2, max(1.15, 2.0 - 0.25 * len(variables)), axes).reshape(-1, 2)
    stretches = [max(series.segments, key=len)[: round(window / series.dt) + 1] for series in (data, paths)]
    for row, i in zip(axes, variables):
        low, high = min(s[:, i].min() for s in stretches), max(s[:, i].max() for s in stretches)
        margin = 0.05 * (high - low)
        for ax, stretch, colour in zip(row, stretches, (DATA, MODEL)):
            ax.plot(data.dt * np.arange(len(stretch)), stretch[:, i], color=colour, linewidth=0.8)
            ax.set(xlim=(0, window), ylim=(low - margin, high + margin))
            ax.yaxis.set_major_locator(MaxNLocator(4))
            ax.tick_params(labelbottom=i == variables[-1])
        row[0].set_ylabel(short(data.names[i], 14) + (f"\n[{plain(data.units[i])}]" if data.units[i] else ""))
        row[1].tick_params(labelleft=False)
    for ax, title in zip(axes[0], ("Data", "Model")):
        ax.set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel(label("time", data.time_unit))
    return axes


@styled
def plot_pdfs(
    edges: np.ndarray, data: np.ndarray, model: np.ndarray, *, names: Sequence[str], units: Sequence[str], axes=None
) -> np.ndarray:
    """Densities (var, bin) of each variable; per variable a linear panel above a logarithmic one, (2, var) axes."""
    columns = even_columns(len(names))
    order = [(v, scale) for block in in_rows(len(names), columns) for scale in ("linear", "log") for v in block]
    axes = panels(
        2 * len(names), columns, 1.9, axes, blocks=[len(b) for b in in_rows(len(names), columns) for _ in "lg"]
    )
    placed = {}
    for ax, (v, scale) in zip(axes, order):
        ax.stairs(data[v], edges[v], fill=True, color=DATA, alpha=0.3 if scale == "linear" else 0.15, linewidth=0)
        ax.stairs(data[v], edges[v], color=DATA, linewidth=1.2)
        ax.stairs(model[v], edges[v], color=MODEL, linewidth=1.4)
        ax.set_xlim(edges[v][0], edges[v][-1])
        if scale == "log":
            ax.set_yscale("log")
            ax.set_ylim(0.5 * data[v][data[v] > 0].min(), 2 * max(data[v].max(), model[v].max()))
        else:
            ax.set_ylim(bottom=0)
        ax.set_xlabel(label(names[v], units[v]) if scale == "log" else "")
        ax.xaxis.set_major_locator(MaxNLocator(5))
        if v % columns == 0:
            ax.set_ylabel("density" + (" (log)" if scale == "log" else ""))
        placed[scale, v] = ax
    legend(axes)
    return np.array([[placed[scale, v] for v in range(len(names))] for scale in ("linear", "log")], dtype=object)


@styled
def plot_pair_densities(
    edges: np.ndarray,
    data: Mapping[tuple[int, int], Matrix],
    model: Mapping[tuple[int, int], Matrix],
    *,
    names: Sequence[str],
    units: Sequence[str],
    axes=None,
) -> np.ndarray:
    """Joint densities of pairs on the grid of `edges` (var, edge): data filled, model as contours at the same levels.

    The levels enclose 99, 90, 70, 50, 30 and 10 % of the data.
    """
    columns = min(len(data), 3)
    axes = panels(len(data), columns, 0.8 * min(WIDTH / columns, 4.2), axes)
    for ax, (i, j) in zip(axes, data):
        x, y = (0.5 * (edges[k][1:] + edges[k][:-1]) for k in (i, j))
        levels = enclosing_levels(data[i, j], MASSES)
        ax.contourf(x, y, data[i, j].T, [*levels, data[i, j].max() * 1.001], cmap=_FILL)
        ax.contour(x, y, model[i, j].T, levels, colors=MODEL, linewidths=1.3)
        ax.set(xlabel=label(names[i], units[i]), ylabel=label(names[j], units[j]))
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_locator(MaxNLocator(5))
    legend(axes)
    return axes


@styled
def plot_acfs(
    tau: np.ndarray,
    data: np.ndarray,
    model: np.ndarray,
    *,
    data_error: np.ndarray | None = None,
    model_error: np.ndarray | None = None,
    names: Sequence[str],
    time_unit: str = "",
    axes=None,
) -> np.ndarray:
    """Autocorrelations (lag, var) with bands of two standard errors."""
    columns = even_columns(len(names))
    axes = panels(len(names), columns, 2.1, axes)
    for v, ax in enumerate(axes):
        ax.axhline(0, color="#888888", linewidth=0.8)
        for curve, error, colour, dashes in ((data, data_error, DATA, "-"), (model, model_error, MODEL, "--")):
            band(ax, tau, curve[:, v], None if error is None else error[:, v], colour, dashes)
        ax.set(xlim=(0, tau[-1]), title=short(names[v], 24))
        ax.set_ylim(top=1.03)
        if v + columns >= len(names):
            ax.set_xlabel(label("lag τ", time_unit))
        if v % columns == 0:
            ax.set_ylabel("autocorrelation")
    legend(axes, dashed=True)
    return axes


@styled
def plot_cross_correlations(
    tau: np.ndarray,
    data: LagMatrices,
    model: LagMatrices,
    *,
    data_error: LagMatrices | None = None,
    model_error: LagMatrices | None = None,
    names: Sequence[str],
    time_unit: str = "",
    axes=None,
) -> np.ndarray:
    """rho_ij(tau) of x_i(t + tau) with x_j(t) for every pair, at negative lags from rho_ji; uneven: circulation."""
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    axes = panels(len(pairs), min(len(pairs), 3), 2.3, axes)
    both = np.concatenate([-tau[:0:-1], tau])
    for k, (ax, (i, j)) in enumerate(zip(axes, pairs)):
        ax.axhline(0, color="#888888", linewidth=0.8)
        ax.axvline(0, color="#888888", linewidth=0.8)
        for curve, error, colour, dashes in ((data, data_error, DATA, "-"), (model, model_error, MODEL, "--")):
            spread = None if error is None else _two_sided(error, i, j)
            band(ax, both, _two_sided(curve, i, j), spread, colour, dashes)
        low, high = ax.get_ylim()
        ax.set(xlim=(both[0], both[-1]), ylim=(min(low, -0.1), max(high, 0.1)), xlabel=label("lag τ", time_unit))
        ax.set_title(f"{short(names[i], 14)}(t + τ) with {short(names[j], 14)}(t)")
        if k % 3 == 0:
            ax.set_ylabel("cross-correlation")
    legend(axes, dashed=True)
    return axes


@styled
def plot_mobility(
    mobility: Mobility, *, names: Sequence[str], std: np.ndarray | None = None, time_unit: str = "", axes=None
) -> np.ndarray:
    """Phi, Phi_S, Phi_A and Sigma as heat maps; numbers as they are, colours per standard deviation `std`.

    The colours are comparable between variables of different units; the three mobilities share one scale.
    """
    size, std = len(names), np.ones(len(names)) if std is None else np.asarray(std)
    maps = [
        ("Mobility Φ", mobility.matrix, mobility.standard_error),
        ("Diffusion, symmetric part", mobility.symmetric, mobility.symmetric_error),
        ("Circulation, antisymmetric part", mobility.antisymmetric, mobility.antisymmetric_error),
        ("Noise factor Σ", mobility.noise_factor, mobility.noise_factor_error),
    ]
    axes = panels(4, 2, min(max(0.5 * size + 1.1, 2.3), 4.2), axes, width=min(max(1.7 * size + 2.6, 6.4), WIDTH))
    colours = [m / np.outer(std, std) for _, m, _ in maps[:3]] + [maps[3][1] / std[:, None]]
    limit = 1.1 * max(np.abs(c).max() for c in colours[:3])
    for k, (ax, (title, matrix, spread)) in enumerate(zip(axes, maps)):
        shown = heat_map(ax, colours[k], limit if k < 3 else 1.1 * np.abs(colours[3]).max(), names)
        ax.set_title(title)
        if np.abs(colours[k]).max() < 1e-6 * limit:
            ax.text(0.5, 0.5, "zero", transform=ax.transAxes, ha="center", va="center", color="#888888")
        elif size <= ANNOTATED:
            _annotate(ax, matrix, spread, shown)
        per = plain(time_unit) or "time"
        bar = ax.figure.colorbar(shown, ax=ax, shrink=0.85, pad=0.02)
        bar.set_label(f"per std² [1/{per}]" if k < 3 else f"per std [1/√{per}]", fontsize=8)
        bar.outline.set_visible(False)
    return axes


@styled
def plot_phi_by_horizon(
    horizon: np.ndarray,
    phi: LagMatrices,
    error: LagMatrices | None,
    final: Matrix,
    *,
    chosen: float | None = None,
    entries: Sequence[tuple[int, int]],
    names: Sequence[str],
    time_unit: str = "",
    axes=None,
) -> np.ndarray:
    """Entries of Phi(T) against the horizon T with bands of two standard errors, the value used and its horizon."""
    columns = round(np.sqrt(len(entries))) if len(entries) in (1, 4, 9) else 3
    axes = panels(len(entries), columns, 1.9, axes)
    for k, (ax, (i, j)) in enumerate(zip(axes, entries)):
        band(ax, horizon, phi[:, i, j], None if error is None else error[:, i, j], DATA, "-", marker=".")
        if chosen is not None:
            ax.axvline(chosen, color=MODEL, linestyle=":", linewidth=1.2)
        ax.axhline(final[i, j], color=MODEL, linestyle="--", linewidth=1.4)
        ax.set_title(f"Φ({short(names[i], 14)}, {short(names[j], 14)})")
        ax.set_xlim(0, 1.02 * horizon[-1])
        ax.yaxis.set_major_locator(MaxNLocator(5))
        if k >= len(entries) - columns:
            ax.set_xlabel(label("horizon T", time_unit))
    handles = [
        Line2D([], [], color=DATA, marker=".", label="Φ(T)" + (" ± 2 standard errors" if error is not None else "")),
        Line2D([], [], color=MODEL, linestyle="--", label="value used"),
    ]
    if chosen is not None:
        handles.append(Line2D([], [], color=MODEL, linestyle=":", label="its horizon"))
    legend(axes, handles)
    return axes


@styled
def plot_noise_level_choice(choice: Mapping[str, Sequence[float]], chosen: float, ax: Any = None) -> Axes:
    """Held-out loss of every noise level tried, above the smallest, with its standard error, and the one chosen."""
    ax = panels(1, 1, 2.7, ax)[0]
    level, loss = np.asarray(choice["noise_level"]), np.asarray(choice["held_out_loss"])
    order = np.argsort(level)
    ax.errorbar(
        level[order], loss[order], np.asarray(choice["standard_error"])[order], color=DATA, marker="o", capsize=3
    )
    at = int(np.argmin(np.abs(level - chosen)))
    ax.plot(level[at], loss[at], "o", color=MODEL, markersize=9, label=f"chosen: {level[at]:g}", zorder=3)
    ax.set_xscale("log")
    if (loss > 0).any():
        # Losses span decades while the best is zero by definition: linear up to the smallest difference, then decades.
        linear = 10 ** np.ceil(np.log10(loss[loss > 0].min()))
        ax.set_yscale("symlog", linthresh=linear, linscale=0.6)
        ax.set_ylim(-0.4 * linear, 2 * max(loss.max(), linear))
    ax.set_xticks(level, [f"{v:g}" for v in level], rotation=45)
    ax.minorticks_off()
    ax.set(xlabel="noise level σ (in standard deviations)", ylabel="held-out loss above the best")
    ax.legend(loc="best")
    return ax


@styled
def plot_training(losses: Sequence[float], held_out: Sequence[float] = (), steps: int | None = None, ax=None) -> Axes:
    """Training loss and, where there is one, held-out loss after every epoch with the epoch kept, against steps.

    The axis leaves out what falls within the first tenth of the training, unless the losses span decades.
    """
    ax = panels(1, 1, 2.7, ax)[0]
    end = steps or 100
    place = end * (np.arange(len(losses)) + 0.5) / len(losses)
    ax.plot(place, losses, color=DATA, linewidth=1.0, label="training")
    shown = [*losses, *held_out]
    if len(held_out):
        epochs, best = end * np.arange(1, len(held_out) + 1) / len(held_out), int(np.argmin(held_out))
        marker = "." if len(held_out) <= 40 else ""
        ax.plot(epochs, held_out, color=MODEL, marker=marker, label="held out")
        ax.plot(
            epochs[best], held_out[best], "o", color=MODEL, markersize=8, clip_on=False, label=f"kept: epoch {best + 1}"
        )
        ax.legend(loc="upper right")
    if 0 < 20 * min(shown) < max(shown):
        ax.set_yscale("log")
    else:
        _without_beginning(ax, np.concatenate([place, epochs]) if len(held_out) else place, np.array(shown), end)
    ax.set(xlim=(0, end), xlabel="training step" if steps else "training done (%)", ylabel="loss")
    return ax


def _without_beginning(ax: Axes, place: np.ndarray, values: np.ndarray, end: float) -> None:
    """Limits that show what comes after the first tenth, and where it all began if that is beyond them."""
    later = values[place > 0.1 * end]
    margin = 0.08 * max(later.max() - later.min(), 1e-3 * abs(later.max()))
    ax.set_ylim(later.min() - margin, later.max() + margin)
    if values[0] > 1.2 * later.max():
        ax.annotate(f"← from {values[0]:.3g}", (0.03, 0.98), xycoords="axes fraction", va="top", fontsize=8, color=DATA)


@styled
def plot_stein(stein: Matrix, *, names: Sequence[str], axes=None) -> np.ndarray:
    """The Stein matrix and its distance from minus the identity, as heat maps."""
    axes = panels(2, 2, min(max(0.3 * len(names), 2.6), 3.6), axes, width=WIDTH)
    rest = stein + np.eye(len(stein))
    maps = {"⟨s xᵀ⟩": (stein, float(np.abs(stein).max())), "⟨s xᵀ⟩ + 1: zero if exact": (rest, np.abs(rest).max())}
    for ax, (title, (matrix, limit)) in zip(axes, maps.items()):
        shown = heat_map(ax, matrix, limit or 1.0, names)
        ax.set_title(title)
        ax.figure.colorbar(shown, ax=ax, shrink=0.85, pad=0.02).outline.set_visible(False)
    return axes


def _two_sided(correlation: LagMatrices, i: int, j: int) -> np.ndarray:
    """rho_ij over negative and positive lags: rho_ij(-tau) = rho_ji(tau)."""
    return np.concatenate([correlation[:0:-1, j, i], correlation[:, i, j]])


def enclosing_levels(density: Matrix, masses: Sequence[float]) -> np.ndarray:
    """Levels whose superlevel sets hold the given fractions of the mass, rising."""
    ordered = np.sort(density.ravel())[::-1]
    held = np.cumsum(ordered) / ordered.sum()
    return np.unique(np.maximum(ordered[np.searchsorted(held, masses).clip(max=len(held) - 1)], ordered[0] * 1e-9))


def heat_map(ax: Axes, matrix: Matrix, limit: float, names: Sequence[str], every: int | None = None):
    """A matrix in colours from -limit to limit, with about a dozen names along its edges."""
    shown = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    ticks = range(0, len(names), every or max(1, -(-len(names) // 12)))
    flat = len(names) <= 6 or max(len(names[k]) for k in ticks) <= 2
    ax.set_xticks(ticks, [short(names[k]) for k in ticks], rotation=0 if flat else 60)
    ax.set_yticks(ticks, [short(names[k]) for k in ticks])
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return shown


def _annotate(ax: Axes, matrix: Matrix, error: Matrix | None, shown) -> None:
    """Numbers in the cells, dark on light and light on dark."""
    luminance = shown.cmap(shown.norm(shown.get_array()))[..., :3] ** 2.2 @ (0.2126, 0.7152, 0.0722)
    for (i, j), value in np.ndenumerate(matrix):
        number, spread = digits(value, None if error is None else float(error[i, j]))
        text = number.replace("-", "−") + (f"\n± {spread}" if spread else "")
        colour = "white" if luminance[i, j] < 0.18 else "black"
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=8.5 if len(matrix) < 5 else 7)
