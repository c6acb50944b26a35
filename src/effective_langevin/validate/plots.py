"""Figures: every function draws curves that a validation has computed, into the axes given or into a new figure.

Each takes a `Validation` (or one of its curves, or a model where only that is drawn) and returns the axes that it drew
into; `axes[0].figure.savefig("figure.png")` writes the figure.
"""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from . import style
from .curves import Curve
from .model_plots import plot_fields, plot_mobility, plot_noise_level, plot_stein, plot_training
from .style import DATA, MODEL, WIDTH, band, even_columns, label, legend, panels, plain, short, styled
from .views import MOST_PANELS, worst

# fmt: off
__all__ = ["plot_acf", "plot_cross_correlation", "plot_fields", "plot_mobility", "plot_mobility_by_horizon",
           "plot_mode_acf", "plot_mode_variance", "plot_noise_level", "plot_original_pdf", "plot_pair_density",
           "plot_pdf", "plot_return_time", "plot_sample_path", "plot_spectrum", "plot_stein", "plot_training"]
# fmt: on

_MASSES = (0.99, 0.9, 0.7, 0.5, 0.3, 0.1)
_FILL = LinearSegmentedColormap.from_list("data", ["#dcebf5", "#5fa5d0", "#00507d"])
_SIDES = ((DATA, "-"), (MODEL, "--"))
_MOST_MODES = 3 * 6
_SHOWN = 1e-5
_HEADROOM = 1.35


def _curve(result: Any, name: str) -> Curve:
    return result if isinstance(result, Curve) else result.curves[name]


def _draw_sides(ax: Any, curve: Curve, x: np.ndarray, pick: Callable, positive: bool = False) -> None:
    """Draw one curve of data and of model with their bands."""
    for (values, error), line in zip(curve.sides, _SIDES):
        band(ax, x, pick(values), None if error is None else pick(error), *line, positive=positive)


@styled
def plot_sample_path(result: Any, ax: Any = None) -> np.ndarray:
    """Draw a stretch of the data beside one of the model; fields in space and time, one above the other."""
    curve = _curve(result, "sample_path")
    if "point" in curve.dims:
        return _draw_fields(curve, ax)
    time, names, units = curve["time"], curve.labels, curve["unit"]
    axes = panels(2 * len(names), 2, max(1.15, 2.0 - 0.25 * len(names)), ax).reshape(-1, 2)
    for v, row in enumerate(axes):
        pieces = [curve.data[:, v], curve.model[:, v]]
        low, high = min(p.min() for p in pieces), max(p.max() for p in pieces)
        margin = 0.05 * (high - low)
        for ax, piece, colour in zip(row, pieces, (DATA, MODEL)):
            ax.plot(time, piece, color=colour, linewidth=0.8)
            ax.set(xlim=(0, time[-1]), ylim=(low - margin, high + margin))
            ax.yaxis.set_major_locator(MaxNLocator(4))
            ax.tick_params(labelbottom=v == len(names) - 1)
        row[0].set_ylabel(short(names[v], 14) + (f"\n[{plain(units[v])}]" if units[v] else ""))
        row[1].tick_params(labelleft=False)
    for ax, title in zip(axes[0], ("Data", "Model")):
        ax.set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel(label("time", curve.unit("time")))
    return axes


def _draw_fields(curve: Curve, ax: Any) -> np.ndarray:
    """Draw fields (time, point), model above data, on one diverging scale about their mean."""
    names, time = curve.labels, curve["time"]
    pieces = [
        (side if len(names) == 1 else f"{side}, {name} (standardised)", values[:, c])
        for c, name in enumerate(names)
        for side, values in (("Model", curve.model), ("Data", curve.data))
    ]
    axes = panels(len(pieces), 1, 1.75, ax, width=WIDTH)
    centre = np.mean([field.mean() for _, field in pieces])
    limit = max(float(np.quantile(np.abs(field - centre), 0.998)) for _, field in pieces)
    shown = None
    for ax, (title, field) in zip(axes, pieces):
        shown = ax.imshow(
            field.T,
            cmap="RdBu_r",
            vmin=centre - limit,
            vmax=centre + limit,
            aspect="auto",
            origin="lower",
            extent=(time[0], time[-1], 0.5, field.shape[1] + 0.5),
            interpolation="nearest",
        )
        ax.set(ylabel="grid point", title=title)
        ax.grid(False)
        ax.tick_params(labelbottom=ax is axes[-1])
        ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes[-1].set_xlabel(label("time", curve.unit("time")))
    bar = style.colour_bar(shown, list(axes), pad=0.015, fraction=0.05, aspect=25)
    bar.set_label(label(names[0], str(curve["unit"][0])) if len(names) == 1 else "")
    return axes


@styled
def plot_pdf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the stationary densities, each on a linear and on a logarithmic scale, (2, variable) axes."""
    return _draw_pdf(_curve(result, "pdf"), ax)


@styled
def plot_original_pdf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the densities in the variables of the series, with the transforms undone."""
    return _draw_pdf(_curve(result, "original_pdf"), ax)


def _draw_pdf(curve: Curve, ax: Any) -> np.ndarray:
    places = worst(curve["kl"], MOST_PANELS)
    count = len(places)
    columns = 2 if count == 1 else even_columns(count)
    blocks = [range(start, min(start + columns, count)) for start in range(0, count, columns)]
    order = [(p, scale) for block in blocks for scale in ("linear", "log") for p in block]
    rows = None if count == 1 else [len(block) for block in blocks for _ in range(2)]
    axes = panels(2 * count, columns, 2.5 if count == 1 else 1.9, ax, blocks=rows)
    placed = {}
    for ax, (p, scale) in zip(axes, order):
        v = places[p]
        edges, data, model = curve["edges"][v], curve.data[v], curve.model[v]
        ax.stairs(data, edges, fill=True, color=DATA, alpha=0.3 if scale == "linear" else 0.15, linewidth=0)
        ax.stairs(data, edges, color=DATA, linewidth=1.2)
        ax.stairs(model, edges, color=MODEL, linewidth=1.4)
        ax.set_xlim(edges[0], edges[-1])
        if scale == "log":
            ax.set_yscale("log")
            ax.set_ylim(0.5 * data[data > 0].min(), 2 * max(data.max(), model.max()))
        else:
            ax.set_ylim(bottom=0)
        ax.set_xlabel(label(curve.labels[v], curve["unit"][v]) if scale == "log" or count == 1 else "")
        ax.xaxis.set_major_locator(MaxNLocator(5))
        if p % columns == 0:
            ax.set_ylabel("density" + (" (log)" if scale == "log" else ""))
        placed[scale, p] = ax
    legend(axes)
    return np.array([[placed[scale, p] for p in range(count)] for scale in ("linear", "log")], dtype=object)


@styled
def plot_pair_density(result: Any, ax: Any = None) -> np.ndarray:
    """Draw joint densities of pairs: data filled, model as contours at the same levels.

    The levels enclose 99, 90, 70, 50, 30 and 10 % of the data.
    """
    curve = _curve(result, "pair_density")
    columns = min(len(curve.data), 3)
    axes = panels(len(curve.data), columns, 0.8 * min(WIDTH / columns, 4.2), ax)
    for k, ax in enumerate(axes):
        x, y = (0.5 * (edges[1:] + edges[:-1]) for edges in (curve["x_edges"][k], curve["y_edges"][k]))
        levels = style.enclosing_levels(curve.data[k], _MASSES)
        ax.contourf(x, y, curve.data[k].T, [*levels, curve.data[k].max() * 1.001], cmap=_FILL)
        ax.contour(x, y, curve.model[k].T, levels, colors=MODEL, linewidths=1.3)
        across, along = (label(str(curve[f"{a}_name"][k]), str(curve[f"{a}_unit"][k])) for a in "xy")
        ax.set(xlabel=across, ylabel=along)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_locator(MaxNLocator(5))
    legend(axes)
    return axes


@styled
def plot_acf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw autocorrelations with bands of two standard errors."""
    curve = _curve(result, "acf")
    places = worst(curve["rmse"], MOST_PANELS)
    return _draw_acfs(curve, places, [short(curve.labels[v], 24) for v in places], even_columns(len(places)), ax)


@styled
def plot_mode_acf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the autocorrelations of the Fourier modes that hold most of the variance."""
    curve, several = _curve(result, "mode_acf"), len(set(_curve(result, "mode_acf")["channel"])) > 1
    places = [p for p, channel in enumerate(curve["channel"]) if channel < 3][:_MOST_MODES]
    titles = []
    for p in places:
        share = f"{100 * curve['share'][p]:.0f} %"
        mode = f"mode {curve['mode'][p]} ({share}" + (")" if several else " of the variance)")
        titles.append(f"{curve['field'][p]}, {mode}" if several else mode)
    return _draw_acfs(curve, places, titles, min(3, len(places)), ax)


def _draw_acfs(curve: Curve, places: Sequence[int], titles: Sequence[str], columns: int, ax: Any) -> np.ndarray:
    axes = panels(len(places), columns, 2.7 if len(places) == 1 else 2.1, ax)
    tau = curve["lag"]
    lowest = min(0.0, *(float(np.nanmin(values[:, places])) for values, _ in curve.sides)) - 0.04
    for k, (ax, v) in enumerate(zip(axes, places)):
        ax.axhline(0, color="#888888", linewidth=0.8)
        _draw_sides(ax, curve, tau, lambda values, v=v: values[:, v])
        ax.set(xlim=(0, tau[-1]), ylim=(lowest, 1.04), title=titles[k])
        if k + columns >= len(places):
            ax.set_xlabel(label("lag τ", curve.unit("lag")))
        if k % columns == 0:
            ax.set_ylabel("autocorrelation")
    legend(axes, dashed=True)
    return axes


@styled
def plot_cross_correlation(result: Any, ax: Any = None) -> np.ndarray:
    """Draw rho_ij(tau) of x_i(t + tau) with x_j(t) for every pair; a curve that is not even shows circulation."""
    curve = _curve(result, "cross_correlation")
    names, tau = curve.labels, curve["lag"]
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    axes = panels(len(pairs), min(len(pairs), 3), 2.3, ax)
    both = np.concatenate([-tau[:0:-1], tau])

    for k, (ax, (i, j)) in enumerate(zip(axes, pairs)):
        ax.axhline(0, color="#888888", linewidth=0.8)
        ax.axvline(0, color="#888888", linewidth=0.8)
        # rho_ij(-tau) = rho_ji(tau)
        _draw_sides(ax, curve, both, lambda rho, i=i, j=j: np.concatenate([rho[:0:-1, j, i], rho[:, i, j]]))
        low, high = ax.get_ylim()
        ax.set(xlim=(both[0], both[-1]), ylim=(min(low, -0.1), max(high, 0.1)))
        ax.set(xlabel=label("lag τ", curve.unit("lag")))
        ax.set_title(f"{short(names[i], 14)}(t + τ) with {short(names[j], 14)}(t)")
        if k % 3 == 0:
            ax.set_ylabel("cross-correlation")
    legend(axes, dashed=True)
    return axes


@styled
def plot_spectrum(result: Any, ax: Any = None) -> np.ndarray:
    """Draw power spectral densities on logarithmic scales, with bands of two standard errors."""
    curve = _curve(result, "spectrum")
    names, units, frequency = curve.labels, [str(u) for u in curve["unit"]], curve["frequency"]
    time_unit = curve.unit("frequency").removeprefix("1/")
    columns = even_columns(len(names))
    axes = panels(len(names), columns, 2.5 if len(names) < 4 else 2.1, ax)
    for v, ax in enumerate(axes):
        _draw_sides(ax, curve, frequency, lambda values, v=v: values[:, v], positive=True)
        ax.set(xscale="log", yscale="log", xlim=(frequency[0], frequency[-1]), title=short(names[v], 24))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        seen = np.concatenate([curve.data[:, v], curve.model[:, v]])
        ax.set_ylim(0.5 * seen[seen > 0].min(), 2.5 * seen.max())
        if v + columns >= len(names):
            ax.set_xlabel(label("frequency", curve.unit("frequency")))
        per = f"{units[v]}² {time_unit}".strip() if units[v] else ""
        if v % columns == 0 or units[v] != units[v - 1]:
            ax.set_ylabel("power density" + (f" [{plain(per)}]" if per else ""))
    legend(axes, dashed=True)
    return axes


@styled
def plot_return_time(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the mean time between upward crossings of every level, with bands of two standard errors."""
    curve = _curve(result, "return_time")
    names = curve.labels
    columns = even_columns(len(names))
    axes = panels(len(names), columns, 2.5 if len(names) < 4 else 2.1, ax)
    for v, ax in enumerate(axes):
        levels = curve["levels"][v]
        _draw_sides(ax, curve, levels, lambda values, v=v: values[v], positive=True)
        ax.set(yscale="log", xlim=(levels[0], levels[-1]), xlabel=label(names[v], curve["unit"][v]))
        if v % columns == 0:
            ax.set_ylabel(label("time between crossings", curve.unit("value")))
    legend(axes, dashed=True)
    return axes


@styled
def plot_mode_variance(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the variance of each Fourier mode of standardised fields; values below 1e-5 of the largest are cut."""
    curve = _curve(result, "mode_variance")
    count = min(len(curve.labels), 3)
    axes = panels(count, count, 2.7, ax)
    mode = np.arange(curve.data.shape[1])
    for c, ax in enumerate(axes):
        top = max(float(values[c].max()) for values, _ in curve.sides)
        seen = [np.where(values[c] > _SHOWN * top, values[c], np.nan) for values, _ in curve.sides]
        for values, (_, error), (colour, dashes), (marker, face) in zip(
            seen, curve.sides, _SIDES, (("o", DATA), ("D", "white"))
        ):
            spread = None if error is None else 2 * error[c]
            look = {"marker": marker, "ms": 4, "capsize": 2, "markerfacecolor": face}
            ax.errorbar(mode, values, spread, color=colour, ls=dashes, **look)
        noise = curve["noise"][c]
        if noise.any():
            ax.plot(mode, noise, color="#888888", linewidth=1.0)
            place = {"xytext": (0, 3), "textcoords": "offset points", "ha": "right", "fontsize": 8}
            ax.annotate("smoothing width squared", (mode[-1], noise[-1]), color="#555555", **place)
        ax.set(yscale="log", xlabel="Fourier mode k", title=curve.labels[c])
        ax.set_ylim(0.5 * min(float(np.nanmin(s)) for s in seen), 3 * top)
        ax.set_ylabel("variance (standardised)" if c == 0 else "")
        ax.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    legend(axes, dashed=True)
    return axes


@styled
def plot_mobility_by_horizon(result: Any, ax: Any = None) -> np.ndarray:
    """Draw Phi(T) against the horizon T, with the value used: the largest entries, or the leading Fourier modes.

    Beside a current that depends on the state, it is the diffusion that is drawn.
    """
    curve = _curve(result, "mobility_by_horizon")
    if "mode" in curve:
        return _draw_modes_by_horizon(curve, ax)
    horizon, chosen = curve["horizon"], curve["chosen"]
    count, symbol = len(chosen), str(curve["symbol"]) if "symbol" in curve else "Φ"
    columns = round(np.sqrt(count)) if count in (1, 4, 9) else 3
    axes = panels(count, columns, 1.9, ax)
    error = curve.data_error
    for k, ax in enumerate(axes):
        band(ax, horizon, curve.data[:, k], None if error is None else error[:, k], DATA, "-", marker=".")
        if np.isfinite(chosen[k]):
            ax.axvline(chosen[k], color=MODEL, linestyle=":", linewidth=1.2)
        ax.axhline(curve.model[0, k], color=MODEL, linestyle="--", linewidth=1.4)
        ax.set_title(f"{symbol}({short(str(curve['row'][k]), 14)}, {short(str(curve['column'][k]), 14)})")
        ax.set_xlim(0, 1.02 * horizon[-1])
        ax.yaxis.set_major_locator(MaxNLocator(5))
        if k >= count - columns:
            ax.set_xlabel(label("horizon T", curve.unit("horizon")))
    handles = [
        Line2D(
            [], [], color=DATA, marker=".", label=f"{symbol}(T)" + (" ± 2 standard errors" if error is not None else "")
        ),
        Line2D([], [], color=MODEL, linestyle="--", label="value used"),
    ]
    if np.isfinite(chosen[0]):
        handles.append(Line2D([], [], color=MODEL, linestyle=":", label="its horizon"))
    legend(axes, handles)
    return axes


def _draw_modes_by_horizon(curve: Curve, ax: Any) -> np.ndarray:
    """Draw Phi_k(T); with chosen horizons each value is marked where it was taken, and the curve faint beyond."""
    axes = panels(1, 1, 3.1, ax, width=0.8 * WIDTH)
    ax, horizon, used, chosen = axes[0], curve["horizon"], curve.model[0], curve["chosen"]
    top, marked = _HEADROOM * float(np.max(used)), bool(np.isfinite(chosen).all())
    before_pole = np.logical_and.accumulate((curve.data > 0) & (curve.data < 2 * top), axis=0)
    phi = np.where(before_pole, curve.data, np.nan).T  # beyond a pole the curve means nothing
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.92, len(used)))
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    for k, colour in enumerate(colours):
        if marked:
            kept = horizon <= chosen[k]
            ax.plot(horizon, phi[k], color=colour, linewidth=1.0, alpha=0.35)
            ax.plot(np.append(horizon[kept], chosen[k]), np.append(phi[k][kept], used[k]), color=colour, linewidth=1.8)
            ax.plot(chosen[k], used[k], "o", color=colour, markeredgecolor="black", markersize=7, zorder=3)
        else:
            ax.plot(horizon, phi[k], color=colour, marker=".")
            ax.axhline(used[k], color=colour, linestyle="--", linewidth=1.2)
        place = (chosen[k] if marked else horizon[-1], used[k])
        look = {"xytext": (7, 5), "textcoords": "offset points", "fontsize": 8, "bbox": box, "zorder": 4}
        ax.annotate(f"k = {curve['mode'][k]}", place, **look)
    ax.set(xlim=(0, (1.02 if marked else 1.1) * horizon[-1]), ylim=(0, top))
    per, symbol = plain(curve.unit("horizon")) or "time", str(curve["symbol"]) if "symbol" in curve else "Φ"
    ax.set(xlabel=label("horizon T", curve.unit("horizon")), ylabel=f"{symbol}$_k$(T) [1/{per}]")
    looks: list[tuple[str, dict[str, Any]]] = (
        [("value used, at the chosen horizon", {"marker": "o"}), ("longer horizons", {"alpha": 0.4, "linewidth": 1.0})]
        if marked
        else [(f"{symbol}$_k$(T)", {"marker": "."}), ("value used", {"linestyle": "--"})]
    )
    ax.legend(handles=[Line2D([], [], color="#444444", label=t, **look) for t, look in looks], loc="upper right")
    return axes
