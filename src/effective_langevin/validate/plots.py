"""Figures: these functions only draw, what they draw is computed elsewhere.

Each takes arrays and, optionally, the axes to draw into; without axes it makes its own figure, `axes[0].figure`.
"""

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from .._core.errors import ArgumentError
from .._core.types import LagMatrices, Matrix
from ..data import TimeSeries
from ..estimate.mobility import Mobility
from .verdict import digits, part_error

DATA, MODEL = "#0072B2", "#D55E00"  # two colours that all kinds of colour vision tell apart (Okabe and Ito)
WIDTH = 9.4
ANNOTATED = 6
MASSES = (0.99, 0.9, 0.7, 0.5, 0.3, 0.1)
_FILL = LinearSegmentedColormap.from_list("data", ["#dcebf5", "#5fa5d0", "#00507d"])
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.formatter.limits": (-3, 4),
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
}


def _styled(draw):
    """Draw with the style of the package, without touching the settings of the session."""

    @wraps(draw)
    def inner(*args, **kwargs):
        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return inner


@_styled
def plot_trajectories(
    data: TimeSeries, paths: TimeSeries, window: float, *, variables: Sequence[int] | None = None, axes=None
) -> np.ndarray:
    """Sample paths over `window`, one variable per row: data on the left, model on the right, on the same scale."""
    variables = list(range(data.dimension) if variables is None else variables)
    axes = _panels(2 * len(variables), 2, max(1.15, 2.0 - 0.25 * len(variables)), axes).reshape(-1, 2)
    stretches = [max(series.segments, key=len)[: round(window / series.dt) + 1] for series in (data, paths)]
    for row, i in zip(axes, variables):
        low, high = min(s[:, i].min() for s in stretches), max(s[:, i].max() for s in stretches)
        margin = 0.05 * (high - low)
        for ax, stretch, colour in zip(row, stretches, (DATA, MODEL)):
            ax.plot(data.dt * np.arange(len(stretch)), stretch[:, i], color=colour, linewidth=0.8)
            ax.set(xlim=(0, window), ylim=(low - margin, high + margin))
            ax.yaxis.set_major_locator(MaxNLocator(4))
            ax.tick_params(labelbottom=i == variables[-1])
        row[0].set_ylabel(_short(data.names[i], 14) + (f"\n[{_plain(data.units[i])}]" if data.units[i] else ""))
        row[1].tick_params(labelleft=False)
    for ax, title in zip(axes[0], ("Data", "Model")):
        ax.set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel(_label("time", data.time_unit))
    return axes


@_styled
def plot_pdfs(
    edges: np.ndarray, data: np.ndarray, model: np.ndarray, *, names: Sequence[str], units: Sequence[str], axes=None
) -> np.ndarray:
    """Densities (var, bin) of each variable; per variable a linear panel above a logarithmic one, (2, var) axes."""
    columns = _columns(len(names))
    order = [(v, scale) for block in _blocks(len(names), columns) for scale in ("linear", "log") for v in block]
    axes = _panels(
        2 * len(names), columns, 1.9, axes, blocks=[len(b) for b in _blocks(len(names), columns) for _ in "lg"]
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
        ax.set_xlabel(_label(names[v], units[v]) if scale == "log" else "")
        ax.xaxis.set_major_locator(MaxNLocator(5))
        if v % columns == 0:
            ax.set_ylabel("density" + (" (log)" if scale == "log" else ""))
        placed[scale, v] = ax
    _legend(axes)
    return np.array([[placed[scale, v] for v in range(len(names))] for scale in ("linear", "log")], dtype=object)


@_styled
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
    axes = _panels(len(data), columns, 0.8 * min(WIDTH / columns, 4.2), axes)
    for ax, (i, j) in zip(axes, data):
        x, y = (0.5 * (edges[k][1:] + edges[k][:-1]) for k in (i, j))
        levels = _enclosing(data[i, j], MASSES)
        ax.contourf(x, y, data[i, j].T, [*levels, data[i, j].max() * 1.001], cmap=_FILL)
        ax.contour(x, y, model[i, j].T, levels, colors=MODEL, linewidths=1.3)
        ax.set(xlabel=_label(names[i], units[i]), ylabel=_label(names[j], units[j]))
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_locator(MaxNLocator(5))
    _legend(axes)
    return axes


@_styled
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
    columns = _columns(len(names))
    axes = _panels(len(names), columns, 2.1, axes)
    for v, ax in enumerate(axes):
        ax.axhline(0, color="#888888", linewidth=0.8)
        for curve, error, colour, dashes in ((data, data_error, DATA, "-"), (model, model_error, MODEL, "--")):
            _band(ax, tau, curve[:, v], None if error is None else error[:, v], colour, dashes)
        ax.set(xlim=(0, tau[-1]), title=_short(names[v], 24))
        ax.set_ylim(top=1.03)
        if v + columns >= len(names):
            ax.set_xlabel(_label("lag τ", time_unit))
        if v % columns == 0:
            ax.set_ylabel("autocorrelation")
    _legend(axes, dashed=True)
    return axes


@_styled
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
    axes = _panels(len(pairs), min(len(pairs), 3), 2.3, axes)
    both = np.concatenate([-tau[:0:-1], tau])
    for k, (ax, (i, j)) in enumerate(zip(axes, pairs)):
        ax.axhline(0, color="#888888", linewidth=0.8)
        ax.axvline(0, color="#888888", linewidth=0.8)
        for curve, error, colour, dashes in ((data, data_error, DATA, "-"), (model, model_error, MODEL, "--")):
            spread = None if error is None else _two_sided(error, i, j)
            _band(ax, both, _two_sided(curve, i, j), spread, colour, dashes)
        low, high = ax.get_ylim()
        ax.set(xlim=(both[0], both[-1]), ylim=(min(low, -0.1), max(high, 0.1)), xlabel=_label("lag τ", time_unit))
        ax.set_title(f"{_short(names[i], 14)}(t + τ) with {_short(names[j], 14)}(t)")
        if k % 3 == 0:
            ax.set_ylabel("cross-correlation")
    _legend(axes, dashed=True)
    return axes


@_styled
def plot_mobility(
    mobility: Mobility, *, names: Sequence[str], std: np.ndarray | None = None, time_unit: str = "", axes=None
) -> np.ndarray:
    """Phi, Phi_S, Phi_A and Sigma as heat maps; numbers as they are, colours per standard deviation `std`.

    The colours are comparable between variables of different units; the three mobilities share one scale.
    """
    size, std = len(names), np.ones(len(names)) if std is None else np.asarray(std)
    error, part = mobility.standard_error, part_error(mobility.standard_error)
    maps = [
        ("Mobility Φ", mobility.matrix, error),
        ("Diffusion, symmetric part", mobility.symmetric, part),
        ("Circulation, antisymmetric part", mobility.antisymmetric, part * (1 - np.eye(size))),
        ("Noise factor Σ", mobility.noise_factor, None),
    ]
    axes = _panels(4, 2, min(max(0.5 * size + 1.1, 2.3), 4.2), axes, width=min(max(1.7 * size + 2.6, 6.4), WIDTH))
    colours = [m / np.outer(std, std) for _, m, _ in maps[:3]] + [maps[3][1] / std[:, None]]
    limit = 1.1 * max(np.abs(c).max() for c in colours[:3])
    for k, (ax, (title, matrix, spread)) in enumerate(zip(axes, maps)):
        shown = _heat_map(ax, colours[k], limit if k < 3 else 1.1 * np.abs(colours[3]).max(), names)
        ax.set_title(title)
        if size <= ANNOTATED:
            _annotate(ax, matrix, spread, shown)
        per = _plain(time_unit) or "time"
        bar = ax.figure.colorbar(shown, ax=ax, shrink=0.85, pad=0.02)
        bar.set_label(f"per std² [1/{per}]" if k < 3 else f"per std [1/√{per}]", fontsize=8)
        bar.outline.set_visible(False)
    return axes


@_styled
def plot_phi_by_horizon(
    horizon: np.ndarray,
    phi: LagMatrices,
    error: LagMatrices,
    final: Matrix,
    *,
    entries: Sequence[tuple[int, int]],
    names: Sequence[str],
    time_unit: str = "",
    axes=None,
) -> np.ndarray:
    """Entries of Phi(T) against the horizon T with bands of two standard errors, and the value used."""
    columns = round(np.sqrt(len(entries))) if len(entries) in (1, 4, 9) else 3
    axes = _panels(len(entries), columns, 1.9, axes)
    for k, (ax, (i, j)) in enumerate(zip(axes, entries)):
        _band(ax, horizon, phi[:, i, j], error[:, i, j], DATA, "-", marker=".")
        ax.axhline(final[i, j], color=MODEL, linestyle="--", linewidth=1.4)
        ax.set_title(f"Φ({_short(names[i], 14)}, {_short(names[j], 14)})")
        ax.set_xlim(0, 1.02 * horizon[-1])
        ax.yaxis.set_major_locator(MaxNLocator(5))
        if k >= len(entries) - columns:
            ax.set_xlabel(_label("horizon T", time_unit))
    handles = [
        Line2D([], [], color=DATA, marker=".", label="Φ(T) ± 2 standard errors"),
        Line2D([], [], color=MODEL, linestyle="--", label="value used"),
    ]
    _legend(axes, handles)
    return axes


@_styled
def plot_noise_level_choice(choice: Mapping[str, Sequence[float]], ax: Any = None) -> Axes:
    """Held-out loss of every noise level tried, above the smallest, with its standard error."""
    ax = _panels(1, 1, 2.7, ax)[0]
    level, loss = np.asarray(choice["noise_level"]), np.asarray(choice["held_out_loss"])
    order = np.argsort(level)
    ax.errorbar(
        level[order], loss[order], np.asarray(choice["standard_error"])[order], color=DATA, marker="o", capsize=3
    )
    best = int(np.argmin(loss))
    ax.plot(level[best], loss[best], "o", color=MODEL, markersize=9, label=f"chosen: {level[best]:g}", zorder=3)
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


@_styled
def plot_training(losses: Sequence[float], ax: Any = None) -> Axes:
    """The training loss."""
    ax = _panels(1, 1, 2.7, ax)[0]
    ax.plot(np.linspace(0, 100, len(losses)), losses, color=DATA, linewidth=1.0)
    if 0 < 20 * min(losses) < max(losses):
        ax.set_yscale("log")
    ax.set(xlim=(0, 100), xlabel="training done (%)", ylabel="training loss")
    return ax


def _panels(count: int, columns: int, height: float, axes: Any, *, blocks: Sequence[int] | None = None, width=None):
    """The axes given, or `count` new ones in rows of `columns` (or of the lengths in `blocks`)."""
    if axes is not None:
        given = np.asarray(axes, dtype=object).ravel()
        if len(given) != count:
            raise ArgumentError(f"Argument `axes` must hold {count} axes, but got {len(given)}.")
        return given
    rows = blocks or [columns] * (count // columns) + [count % columns] * (count % columns > 0)
    size = (width or min(WIDTH, 4.8 * columns), height * len(rows) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(len(rows), columns)
    return np.array([figure.add_subplot(grid[r, c]) for r, n in enumerate(rows) for c in range(n)], dtype=object)


def _columns(count: int) -> int:
    """Columns of at most four that fill their rows as evenly as they can."""
    return -(-count // -(-count // 4))


def _blocks(count: int, columns: int) -> list[range]:
    return [range(start, min(start + columns, count)) for start in range(0, count, columns)]


def _band(ax: Axes, x, y, error, colour: str, dashes: str, marker: str = "") -> None:
    if error is not None:
        ax.fill_between(x, y - 2 * error, y + 2 * error, color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, y, dashes, color=colour, marker=marker)


def _two_sided(correlation: LagMatrices, i: int, j: int) -> np.ndarray:
    """rho_ij over negative and positive lags: rho_ij(-tau) = rho_ji(tau)."""
    return np.concatenate([correlation[:0:-1, j, i], correlation[:, i, j]])


def _enclosing(density: Matrix, masses: Sequence[float]) -> np.ndarray:
    """Levels whose superlevel sets hold the given fractions of the mass, rising."""
    ordered = np.sort(density.ravel())[::-1]
    held = np.cumsum(ordered) / ordered.sum()
    return np.unique(np.maximum(ordered[np.searchsorted(held, masses).clip(max=len(held) - 1)], ordered[0] * 1e-9))


def _heat_map(ax: Axes, matrix: Matrix, limit: float, names: Sequence[str]):
    shown = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    every = max(1, -(-len(names) // 12))
    ticks = range(0, len(names), every)
    ax.set_xticks(ticks, [_short(names[k]) for k in ticks], rotation=0 if len(names) <= 6 else 60)
    ax.set_yticks(ticks, [_short(names[k]) for k in ticks])
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


def _legend(axes: np.ndarray, handles: Sequence[Any] | None = None, *, dashed: bool = False) -> None:
    """One legend per figure, above the panels; inside the first panel when the figure is not ours."""
    figure = axes[0].figure
    if handles is None:
        style = "--" if dashed else "-"
        handles = [
            Line2D([], [], color=DATA, label="data") if dashed else Patch(color=DATA, alpha=0.5, label="data"),
            Line2D([], [], color=MODEL, linestyle=style, label="model"),
        ]
    if isinstance(figure, Figure) and figure.get_layout_engine() and len(figure.axes) == len(axes):
        figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))
    else:
        axes[0].legend(handles=handles)


def _label(name: str, unit: str) -> str:
    return f"{_short(name, 24)} [{_plain(unit)}]" if unit else _short(name, 24)


def _short(name: str, limit: int = 10) -> str:
    """A name that fits; of a long one the two ends, since numbers often stand last."""
    kept = limit // 2
    return _plain(name if len(name) <= limit else f"{name[: limit - kept - 1]}…{name[-kept:]}")


def _plain(text: str) -> str:
    """A dollar sign in a name is a dollar sign, not mathematics."""
    return text.replace("$", r"\$")
