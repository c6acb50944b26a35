"""Drawing for the figures of this folder: curves come by name, such as data, constant, published and LIM."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from effective_langevin._core.types import Matrix
from effective_langevin.validate.style import DATA, MODEL, WIDTH, band, heat_map, label, legend, panels, plain, styled

# Line and colour of every name that is drawn here; anything else is drawn as the model is.
LINES = {
    "data": (DATA, "-"),
    "model": (MODEL, "--"),
    "state-dependent": (MODEL, "--"),
    "constant": ("#CC79A7", "-"),
    "published": ("#6b6b6b", "-."),
    "LIM": ("#009E73", ":"),
}
MARKERS = {"data": "o", "constant": "v", "published": "s", "LIM": "^"}
_SHOWN = 1e-5
_HEADROOM = 1.35

Curves = Mapping[str, np.ndarray]


@styled
def plot_hovmoeller(
    time: np.ndarray, fields: Mapping[str, Matrix], *, title: str = "", unit: str = "", time_unit: str = "", axes=None
) -> np.ndarray:
    """Fields (time, point) in space and time, one above the other on one diverging scale about their mean."""
    axes = panels(len(fields), 1, 1.75, axes, width=WIDTH)
    centre = np.mean([field.mean() for field in fields.values()])
    limit = max(float(np.quantile(np.abs(field - centre), 0.998)) for field in fields.values())
    shown = None
    for ax, (name, field) in zip(axes, fields.items()):
        extent = (time[0], time[-1], 0.5, field.shape[1] + 0.5)
        shown = ax.imshow(
            field.T,
            cmap="RdBu_r",
            vmin=centre - limit,
            vmax=centre + limit,
            aspect="auto",
            origin="lower",
            extent=extent,
            interpolation="nearest",
        )
        ax.set(ylabel="point on the ring", title=name.capitalize() if name.islower() else name)
        ax.grid(False)
        ax.tick_params(labelbottom=ax is axes[-1])
        ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes[-1].set_xlabel(label("time", time_unit))
    bar = axes[0].figure.colorbar(shown, ax=list(axes), pad=0.015, fraction=0.05, aspect=25)
    bar.set_label(label(title, unit) if title else "")
    bar.outline.set_visible(False)
    return axes


@styled
def plot_mode_variances(
    curves: Curves, *, noise: np.ndarray | None = None, errors: Curves | None = None, ax: Any = None
) -> Axes:
    """Variance (mode,) of each Fourier mode, standardised, on a logarithmic scale; levels below 1e-5 are cut.

    `noise` (mode,) is the variance of the noise that the score was learned with.
    """
    ax = panels(1, 1, 2.7, ax)[0]
    top = max(float(np.max(curve)) for curve in curves.values())
    for name, curve in curves.items():
        colour, dashes = line(name)
        seen = np.where(curve > _SHOWN * top, curve, np.nan)
        mode = np.arange(len(curve))
        spread = None if errors is None else 2 * errors[name]
        filled = {} if name == "data" else {"markerfacecolor": "white"}
        ax.errorbar(
            mode, seen, spread, color=colour, ls=dashes, marker=MARKERS.get(name, "D"), ms=4, capsize=2, **filled
        )
    if noise is not None and noise.any():
        ax.plot(np.arange(len(noise)), noise, color="#888888", linewidth=1.0)
        ax.annotate(
            "noise of the score",
            (len(noise) - 1, noise[-1]),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="#555555",
        )
    ax.set_yscale("log")
    least = min(float(np.min(curve[curve > _SHOWN * top])) for curve in curves.values())
    ax.set_ylim(0.5 * least, 3 * top)
    ax.set(xlabel="Fourier mode k", ylabel="variance (standardised)")
    ax.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    _named(np.array([ax]), curves)
    return ax


@styled
def plot_correlations(
    tau: np.ndarray,
    curves: Curves,
    *,
    titles: Sequence[str],
    errors: Curves | None = None,
    time_unit: str = "",
    columns: int = 3,
    axes=None,
) -> np.ndarray:
    """Autocorrelations (lag, panel) by name, all on one scale, with bands of two standard errors where given."""
    columns = min(columns, len(titles))
    axes = panels(len(titles), columns, 2.7 if len(titles) == 1 else 2.1, axes)
    lowest = min(0.0, *(float(np.nanmin(curve)) for curve in curves.values())) - 0.04
    for k, ax in enumerate(axes):
        ax.axhline(0, color="#888888", linewidth=0.8)
        for name, curve in curves.items():
            band(ax, tau, curve[:, k], None if errors is None else errors[name][:, k], *line(name))
        ax.set(xlim=(0, tau[-1]), ylim=(lowest, 1.04), title=titles[k])
        if k + columns >= len(titles):
            ax.set_xlabel(label("lag τ", time_unit))
        if k % columns == 0:
            ax.set_ylabel("autocorrelation")
    _named(axes, curves)
    return axes


@styled
def plot_phi_by_mode(
    horizon: np.ndarray,
    phi: Matrix,
    used: np.ndarray,
    *,
    chosen: np.ndarray | None = None,
    modes: Sequence[int],
    titles: Sequence[str],
    time_unit: str = "",
    ax: Any = None,
) -> Axes:
    """Phi_k(T), (mode, horizon), of some modes, with the values used.

    With `chosen` horizons each value is marked where it was taken, the curve faint beyond; without, it is a line.
    """
    ax = panels(1, 1, 3.1, ax, width=0.8 * WIDTH)[0]
    top = _HEADROOM * float(np.max(used[list(modes)]))
    before_pole = np.logical_and.accumulate((phi > 0) & (phi < 2 * top), axis=1)  # beyond it the curve means nothing
    phi = np.where(before_pole, phi, np.nan)
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.92, len(modes)))
    for k, colour, title in zip(modes, colours, titles):
        if chosen is None:
            ax.plot(horizon, phi[k], color=colour, marker=".")
            ax.axhline(used[k], color=colour, linestyle="--", linewidth=1.2)
            _tag(ax, title, (horizon[-1], used[k]))
            continue
        kept = horizon <= chosen[k]
        ax.plot(horizon, phi[k], color=colour, linewidth=1.0, alpha=0.35)
        ax.plot(np.append(horizon[kept], chosen[k]), np.append(phi[k][kept], used[k]), color=colour, linewidth=1.8)
        ax.plot(chosen[k], used[k], "o", color=colour, markeredgecolor="black", markersize=7, zorder=3)
        _tag(ax, title, (chosen[k], used[k]))
    ax.set(xlim=(0, (1.02 if chosen is not None else 1.1) * horizon[-1]), ylim=(0, top))
    ax.set(xlabel=label("horizon T", time_unit), ylabel=f"Φ$_k$(T) [1/{plain(time_unit) or 'time'}]")
    ax.legend(handles=_horizon_handles(chosen is not None), loc="upper right")
    return ax


@styled
def plot_operators(
    matrices: Mapping[str, Matrix], units: Mapping[str, str], *, together: Sequence[str] = (), axes=None
) -> np.ndarray:
    """Matrices as heat maps by title, each with its colour bar; those named in `together` share one scale."""
    axes = panels(len(matrices), min(len(matrices), 5), 2.2, axes, width=WIDTH)
    common = max((float(np.abs(matrices[title]).max()) for title in together), default=0.0)
    for ax, (title, matrix) in zip(axes, matrices.items()):
        limit = common if title in together else float(np.abs(matrix).max())
        shown = heat_map(ax, matrix, limit or 1.0, [str(i + 1) for i in range(len(matrix))], every=len(matrix) // 4)
        ax.set(title=title, aspect="equal")
        if limit and np.abs(matrix).max() < 1e-6 * limit:
            ax.text(0.5, 0.5, "zero", transform=ax.transAxes, ha="center", va="center", color="#888888")
        bar = ax.figure.colorbar(shown, ax=ax, location="bottom", shrink=0.9, pad=0.03, aspect=18)
        bar.set_label(units.get(title, ""), fontsize=8)
        bar.locator = MaxNLocator(3, symmetric=True)
        bar.update_ticks()
        bar.outline.set_visible(False)
    return axes


def line(name: str) -> tuple[str, Any]:
    """Colour and dashes of a name."""
    return LINES.get(name, LINES["model"])


def _named(axes: np.ndarray, curves: Curves) -> None:
    """A legend of the names, if there is more than one."""
    if len(curves) > 1:
        handles = [Line2D([], [], color=line(n)[0], linestyle=line(n)[1], label=n) for n in curves]
        legend(axes, handles)


def _tag(ax: Axes, text: str, place: tuple[float, float]) -> None:
    """A few letters beside a point, on a light ground so that curves do not cross them."""
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    ax.annotate(text, place, xytext=(7, 5), textcoords="offset points", fontsize=8, bbox=box, zorder=4)


def _horizon_handles(chosen: bool) -> list[Line2D]:
    if chosen:
        return [
            Line2D([], [], color="#444444", marker="o", label="value used, at the chosen horizon"),
            Line2D([], [], color="#444444", alpha=0.4, linewidth=1.0, label="longer horizons"),
        ]
    return [
        Line2D([], [], color="#444444", marker=".", label="Φ$_k$(T)"),
        Line2D([], [], color="#444444", linestyle="--", label="value used"),
    ]
