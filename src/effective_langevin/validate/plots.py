"""Figures: every function draws curves that a validation has computed, into the axes given or into a new figure.

Each takes a `Validation` (or one of its curves, or a model where only that is drawn) and returns the axes that it drew
into; `axes[0].figure.savefig("figure.png")` writes the figure.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.ticker import MaxNLocator, NullFormatter

from .._core.format import NO_UNITS
from . import style
from .curves import Curve, curve_of
from .forecast_plots import plot_comparison, plot_forecast, plot_hindcast, plot_response
from .model_plots import (
    plot_fields,
    plot_mobility,
    plot_mobility_by_horizon,
    plot_noise_level,
    plot_stein,
    plot_training,
)
from .pattern_plots import plot_patterns
from .style import DATA, GREY, MODEL, WIDTH, band, brief, even_columns, label, legend, panels, plain, short, styled
from .views import MOST_PANELS, worst

# fmt: off
__all__ = ["plot_acf", "plot_comparison", "plot_cross_correlation", "plot_fields", "plot_forecast", "plot_hindcast",
           "plot_mobility", "plot_mobility_by_horizon", "plot_mode_acf", "plot_mode_variance", "plot_noise_level",
           "plot_original_pdf", "plot_overview", "plot_pair_density", "plot_patterns", "plot_pdf", "plot_push",
           "plot_response", "plot_return_time", "plot_sample_path", "plot_spectrum", "plot_stein", "plot_training"]
# fmt: on

_MASSES = (0.99, 0.9, 0.7, 0.5, 0.3, 0.1)
_FILL = LinearSegmentedColormap.from_list("data", ["#dcebf5", "#5fa5d0", "#00507d"])
_SIDES = ((DATA, "-"), (MODEL, "--"))
_MOST_MODES = 3 * 6
_SHOWN = 1e-5
_NAMED = 14  # letters of a name in a narrow place


def _draw_line(ax: Axes, curve: Curve, x: np.ndarray, at: Any, *, positive=False, zero=False, **labels: str) -> None:
    """Draw one curve of data and of model, its values `at` some index, with bands of two standard errors."""
    if zero:
        ax.axhline(0, **GREY)
    for (values, error), look in zip(curve.sides, _SIDES):
        band(ax, x, values[at], None if error is None else error[at], *look, positive=positive)
    ax.set(xlim=(x[0], x[-1]), **labels)


def _draw_lines(curve: Curve, lines: Sequence[dict[str, Any]], ax: Any, columns: int, height: float, **options: Any):
    """Draw a panel for each line; labels that repeat stand at the edges only."""
    axes, same = panels(len(lines), columns, height, ax), len({line["xlabel"] for line in lines}) == 1
    for k, (panel, line) in enumerate(zip(axes, lines)):
        above = same and k + columns < len(lines)
        beside = k % columns > 0 and line["ylabel"] == lines[k - 1]["ylabel"]
        shown = {"xlabel": "" if above else line["xlabel"], "ylabel": "" if beside else line["ylabel"]}
        _draw_line(panel, curve, **{**line, **shown}, **options)
    legend(axes, dashed=True)
    return axes


@styled
def plot_overview(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the comparison at a glance: paths (or fields in space and time), density and autocorrelation.

    Of several variables, the path and the autocorrelation are those that differ most, the density is a joint one.
    """
    curves = result.curves
    path, acf, pairs = curves["sample_path"], curves["acf"], curves.get("pair_density")
    v, at = int(np.argmax(acf["rmse"])), 0
    if ax is None:
        figure = style.Figure(figsize=(WIDTH, 3.3), layout="constrained")
        grid = figure.add_gridspec(2, 3, width_ratios=[1.5, 1, 1])
        places = [grid[0, 0], grid[1, 0], grid[:, 1], grid[:, 2]]
        ax = [figure.add_subplot(place) for place in places]
    axes = panels(4, 2, 2.0, ax)
    if "point" in path.dims:
        _draw_space_time(axes[:2], path, at, bar=False)
    else:
        at = path.labels.index(acf.labels[v])
        _draw_path(axes[:2], path, at, stacked=True)
    for panel, title in zip(axes, ("Data", "Model")):
        panel.set_title(title, loc="left")
    if pairs is not None and "point" not in path.dims:
        _draw_pair(axes[2], pairs, 0)
    else:
        pdf = curves.get("original_pdf") or curves["pdf"]
        at = int(np.argmax(pdf["kl"]))
        _draw_density(axes[2], pdf, at)
        axes[2].set(xlabel=label(pdf.labels[at], pdf["unit"][at]), ylim=(0, None))
    axes[2].set_title("Density", loc="left")
    _draw_line(axes[3], acf, acf["lag"], np.s_[:, v], xlabel=label("lag τ", acf.unit("lag")), zero=True)
    axes[3].set_title(f"Autocorrelation of {short(acf.labels[v], _NAMED)}", loc="left")
    legend(axes, dashed=True)
    return axes


@styled
def plot_sample_path(result: Any, ax: Any = None) -> np.ndarray:
    """Draw a stretch of the data beside one of the model; fields in space and time, one above the other."""
    curve = curve_of(result, "sample_path")
    count = len(curve.labels)
    if "point" in curve.dims:
        axes = panels(2 * count, 1, 1.75, ax, width=WIDTH).reshape(-1, 2)
        for c, pair in enumerate(axes):
            _draw_space_time(pair, curve, c, bar=True)
            for panel, side in zip(pair, ("Data", "Model")):
                panel.set_title(side if count == 1 else f"{side}, {curve.labels[c]} (standardised)")
        return axes.ravel()
    axes = panels(2 * count, 2, max(1.15, 2.0 - 0.25 * count), ax).reshape(-1, 2)
    for v, row in enumerate(axes):
        _draw_path(row, curve, v)
        for panel in row:
            panel.tick_params(labelbottom=v == count - 1)
            panel.set_xlabel(panel.get_xlabel() if v == count - 1 else "")
    for panel, title in zip(axes[0], ("Data", "Model")):
        panel.set_title(title, loc="left")
    return axes


def _draw_path(axes: Any, curve: Curve, v: int, stacked: bool = False) -> None:
    """Draw one variable of data and model on one scale."""
    pieces, unit = [curve.data[:, v], curve.model[:, v]], str(curve["unit"][v])
    low, high = min(p.min() for p in pieces), max(p.max() for p in pieces)
    margin = 0.05 * (high - low)
    for ax, piece, colour in zip(axes, pieces, (DATA, MODEL)):
        time = _time_axis(ax, curve, dated=colour == DATA)
        ax.plot(time, piece, color=colour, linewidth=0.8)
        ax.set(xlim=(time[0], time[-1]), ylim=(low - margin, high + margin))
        ax.yaxis.set_major_locator(MaxNLocator(4))
    name = short(curve.labels[v], _NAMED) + (f"\n[{brief(unit)}]" if unit not in NO_UNITS else "")
    for ax in axes if stacked else axes[:1]:
        ax.set_ylabel(name)
    if stacked and "date" not in curve:
        axes[0].set_xlabel("")
        axes[0].tick_params(labelbottom=False)
    axes[1].tick_params(labelleft=stacked)


def _time_axis(ax: Axes, curve: Curve, dated: bool) -> np.ndarray:
    """Return the times of a stretch, as dates for data that have dates, and label the axis."""
    if not dated or "date" not in curve:
        ax.set_xlabel(label("time", curve.unit("time")))
        return curve["time"]
    locator = AutoDateLocator(minticks=3, maxticks=6)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return date2num(curve["date"])


def _draw_space_time(axes: Any, curve: Curve, c: int, *, bar: bool) -> None:
    """Draw one field (time, point), data above model, on one diverging scale about the mean of all."""
    pieces = [curve.data[:, c], curve.model[:, c]]
    centre = np.mean([field.mean() for side in (curve.data, curve.model) for field in np.moveaxis(side, 1, 0)])
    limit = max(float(np.quantile(np.abs(field - centre), 0.998)) for field in pieces)
    scale = {"cmap": "RdBu_r", "vmin": centre - limit, "vmax": centre + limit}
    look: dict[str, Any] = {"aspect": "auto", "origin": "lower", "interpolation": "nearest"}
    shown = None
    for ax, field in zip(axes, pieces):
        time = _time_axis(ax, curve, dated=ax is axes[0])
        shown = ax.imshow(field.T, extent=(time[0], time[-1], 0.5, field.shape[1] + 0.5), **scale, **look)
        ax.set_ylabel("grid point")
        ax.grid(False)
        ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    if "date" not in curve:
        axes[0].set_xlabel("")
        axes[0].tick_params(labelbottom=False)
    if bar:
        beside = style.colour_bar(shown, list(axes), pad=0.015, fraction=0.05, aspect=25)
        beside.set_label(label(curve.labels[c], str(curve["unit"][c])) if len(curve.labels) == 1 else "")


@styled
def plot_pdf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the stationary densities, and their full tails on a logarithmic scale, (2, variable) axes."""
    return _draw_pdf(result, "pdf", "tails", ax)


@styled
def plot_original_pdf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the densities in the variables of the series, with the transforms undone."""
    return _draw_pdf(result, "original_pdf", "original_tails", ax)


def _draw_pdf(result: Any, name: str, tails: str, ax: Any) -> np.ndarray:
    curve = curve_of(result, name)
    places = worst(curve["kl"], MOST_PANELS)
    far = None if isinstance(result, Curve) else result.curves.get(tails)
    count = len(places)
    columns = 2 if count == 1 else even_columns(count)
    blocks = [range(start, min(start + columns, count)) for start in range(0, count, columns)]
    order = [(p, scale) for block in blocks for scale in ("linear", "log") for p in block]
    rows = None if count == 1 else [len(block) for block in blocks for _ in range(2)]
    axes = panels(2 * count, columns, 2.5 if count == 1 else 1.9, ax, blocks=rows)
    placed = {}
    for panel, (p, scale) in zip(axes, order):
        v, log = places[p], scale == "log"
        _draw_density(panel, *((far, p) if log and far is not None else (curve, v)), log=log)
        panel.set_xlabel(label(curve.labels[v], curve["unit"][v]) if log or count == 1 else "")
        panel.set_ylabel(("density (log)" if log else "density") if p % columns == 0 or count == 1 else "")
        placed[scale, p] = panel
    legend(axes)
    return np.array([[placed[scale, p] for p in range(count)] for scale in ("linear", "log")], dtype=object)


def _draw_density(ax: Axes, curve: Curve, v: int, *, log: bool = False) -> None:
    """Draw one density of data and model; on a logarithmic scale with bands of two standard errors."""
    edges, data, model = curve["edges"][v], curve.data[v], curve.model[v]
    ax.stairs(data, edges, fill=True, color=DATA, alpha=0.15 if log else 0.3, linewidth=0)
    ax.stairs(data, edges, color=DATA, linewidth=1.2)
    ax.stairs(model, edges, color=MODEL, linewidth=1.4)
    ax.set_xlim(edges[0], edges[-1])
    ax.xaxis.set_major_locator(MaxNLocator(5))
    if not log:
        ax.set_ylim(bottom=0)
        return
    ax.set_yscale("log")
    ax.set_ylim(0.5 * data[data > 0].min(), 2 * max(data.max(), model.max()))
    for (values, error), colour in zip(curve.sides, (DATA, MODEL)):
        if error is not None:
            low, high = np.maximum(values[v] - 2 * error[v], 1e-300), values[v] + 2 * error[v]
            steps = {"step": "post", "alpha": 0.2, "linewidth": 0, "color": colour}
            ax.fill_between(edges, np.append(low, low[-1]), np.append(high, high[-1]), **steps)


@styled
def plot_pair_density(result: Any, ax: Any = None) -> np.ndarray:
    """Draw joint densities of pairs: data filled, model as contours at the same levels.

    The levels enclose 99, 90, 70, 50, 30 and 10 % of the data.
    """
    curve = curve_of(result, "pair_density")
    columns = min(len(curve.data), 3)
    axes = panels(len(curve.data), columns, 0.8 * min(WIDTH / columns, 4.2), ax)
    for k, panel in enumerate(axes):
        _draw_pair(panel, curve, k)
    legend(axes)
    return axes


def _draw_pair(ax: Axes, curve: Curve, k: int) -> None:
    x, y = (0.5 * (edges[1:] + edges[:-1]) for edges in (curve["x_edges"][k], curve["y_edges"][k]))
    levels = style.enclosing_levels(curve.data[k], _MASSES)
    ax.contourf(x, y, curve.data[k].T, [*levels, curve.data[k].max() * 1.001], cmap=_FILL)
    ax.contour(x, y, curve.model[k].T, levels, colors=MODEL, linewidths=1.3)
    across, along = (label(str(curve[f"{a}_name"][k]), str(curve[f"{a}_unit"][k])) for a in "xy")
    ax.set(xlabel=across, ylabel=along)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))


@styled
def plot_acf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw autocorrelations with bands of two standard errors."""
    curve = curve_of(result, "acf")
    places = worst(curve["rmse"], MOST_PANELS)
    return _draw_acfs(curve, {v: short(curve.labels[v], 24) for v in places}, even_columns(len(places)), ax)


@styled
def plot_mode_acf(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the autocorrelations of the Fourier modes that hold most of the variance."""
    curve = curve_of(result, "mode_acf")
    several, titles = len(set(curve["channel"])) > 1, {}
    for p in [p for p, channel in enumerate(curve["channel"]) if channel < 3][:_MOST_MODES]:
        mode = f"mode {curve['mode'][p]} ({100 * curve['share'][p]:.0f} %"
        titles[p] = f"{curve['field'][p]}, {mode})" if several else f"{mode} of the variance)"
    return _draw_acfs(curve, titles, min(3, len(titles)), ax)


def _draw_acfs(curve: Curve, titles: dict[int, str], columns: int, ax: Any) -> np.ndarray:
    """Draw the autocorrelations at the places that have a title, on one scale."""
    places, same = list(titles), {"xlabel": label("lag τ", curve.unit("lag")), "ylabel": "autocorrelation"}
    lines = [{"x": curve["lag"], "at": np.s_[:, v], "title": title, **same} for v, title in titles.items()]
    axes = _draw_lines(curve, lines, ax, columns, 2.7 if len(lines) == 1 else 2.1, zero=True)
    lowest = min(0.0, *(float(np.nanmin(values[:, places])) for values, _ in curve.sides)) - 0.04
    for panel in axes:
        panel.set_ylim(lowest, 1.04)
    return axes


@styled
def plot_cross_correlation(result: Any, ax: Any = None) -> np.ndarray:
    """Draw rho_ij(tau) of x_i(t + tau) with x_j(t) for every pair; a curve that is not even shows circulation."""
    curve = curve_of(result, "cross_correlation")
    names, tau = [short(name, _NAMED) for name in curve.labels], curve["lag"]
    parts = {name: getattr(curve, name) for name in ("data", "model", "data_error", "model_error")}
    # rho_ij(-tau) = rho_ji(tau)
    both = {n: None if s is None else np.concatenate([s[:0:-1].swapaxes(1, 2), s]) for n, s in parts.items()}
    same = {"xlabel": label("lag τ", curve.unit("lag")), "ylabel": "cross-correlation"}
    lines = [
        {"title": f"{names[i]}(t + τ) with {names[j]}(t)", "at": np.s_[:, i, j], **same}
        for i, j in combinations(range(len(names)), 2)
    ]
    x = np.concatenate([-tau[:0:-1], tau])
    axes = _draw_lines(replace(curve, **both), lines, ax, min(len(lines), 3), 2.3, zero=True, x=x)
    for panel in axes:
        panel.axvline(0, **GREY)
        low, high = panel.get_ylim()
        panel.set_ylim(min(low, -0.1), max(high, 0.1))
    return axes


@styled
def plot_push(result: Any, ax: Any = None) -> np.ndarray:
    """Draw what is left in the mean of a small push on each variable, by the fluctuation-dissipation relation."""
    curve = curve_of(result, "response")
    same = {"xlabel": label("time after the push", curve.unit("lag")), "ylabel": "share that is left"}
    titles = [f"push on {short(name, 24)}" for name in curve.labels]
    lines = [{"x": curve["lag"], "at": np.s_[:, v, v], "title": title, **same} for v, title in enumerate(titles)]
    return _draw_lines(curve, lines, ax, even_columns(len(lines)), 2.7 if len(lines) == 1 else 2.1, zero=True)


@styled
def plot_spectrum(result: Any, ax: Any = None) -> np.ndarray:
    """Draw power spectral densities on logarithmic scales, with bands of two standard errors."""
    curve = curve_of(result, "spectrum")
    time_unit, lines = curve.unit("frequency").removeprefix("1/"), []
    same = {"x": curve["frequency"], "xlabel": label("frequency", curve.unit("frequency"))}
    for v, (name, unit) in enumerate(zip(curve.labels, curve["unit"])):
        power = f" [{brief(unit)}² {plain(time_unit)}".rstrip() + "]" if unit not in NO_UNITS else ""
        lines.append({"at": np.s_[:, v], "title": short(name, 24), "ylabel": f"power density{power}", **same})
    axes = _draw_lines(curve, lines, ax, even_columns(len(lines)), 2.5 if len(lines) < 4 else 2.1, positive=True)
    for v, panel in enumerate(axes):
        panel.set(xscale="log", yscale="log")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.yaxis.set_minor_formatter(NullFormatter())
        seen = np.concatenate([curve.data[:, v], curve.model[:, v]])
        panel.set_ylim(0.5 * seen[seen > 0].min(), 2.5 * seen.max())
    return axes


@styled
def plot_return_time(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the mean time between upward crossings of every level, with bands of two standard errors."""
    curve = curve_of(result, "return_time")
    along = label("return time", curve.unit("value"))
    lines = [
        {"x": curve["levels"][v], "at": v, "xlabel": label(name, curve["unit"][v]), "ylabel": along}
        for v, name in enumerate(curve.labels)
    ]
    axes = _draw_lines(curve, lines, ax, even_columns(len(lines)), 2.5 if len(lines) < 4 else 2.1, positive=True)
    for panel in axes:
        panel.set_yscale("log")
    return axes


@styled
def plot_mode_variance(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the variance of each Fourier mode of standardised fields; values below 1e-5 of the largest are cut."""
    curve = curve_of(result, "mode_variance")
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
            place = {"xytext": (3, -11), "textcoords": "offset points", "fontsize": 8}
            ax.annotate("smoothing width squared", (mode[0], noise[0]), color="#555555", **place)
        ax.set(yscale="log", xlabel="Fourier mode k", title=curve.labels[c])
        ax.set_ylim(0.5 * min(float(np.nanmin(s)) for s in seen), 3 * top)
        ax.set_ylabel("variance (standardised)" if c == 0 else "")
        ax.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    legend(axes, dashed=True)
    return axes
