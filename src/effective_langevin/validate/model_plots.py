"""Figures of a model and of how it was fitted: mobility, landscape, Stein matrix, training, smoothing width."""

from collections.abc import Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from .._core.errors import ArgumentError
from .._core.format import NO_UNITS, digits
from .._core.types import Matrix
from ..model import LangevinModel
from .curves import Curve, curve_of
from .state_fields import FIELDS, field_arrows, field_profiles
from .style import (
    DATA,
    GREY,
    MODEL,
    WIDTH,
    band,
    brief,
    colour_bar,
    heat_map,
    label,
    legend,
    panels,
    plain,
    short,
    styled,
)

if TYPE_CHECKING:
    from .validation import Validation

_ANNOTATED = 6
_GRID, _DRAWN = 81, 24
_FLAT = 1e-5
_PLANE = 2  # variables: up to so many, a constant mobility is drawn, too
_HIGH = 0.9  # share of the cells in which the potential is told from higher ones
_UNSURE = 0.25  # of the longest arrow: arrows of the data with larger errors are left out
_WELLS = LinearSegmentedColormap.from_list("wells", ["#7fb2d8", "#ffffff"])
_HEADROOM = 1.35
_LINE, _LONGER = 0.045, 6.0  # height of a line of text in the axis; length of the axis in chosen horizons


def _model(result: "Validation | LangevinModel") -> LangevinModel:
    return result if isinstance(result, LangevinModel) else result.model


@styled
def plot_mobility(result: Any, ax: Any = None) -> np.ndarray:
    """Draw Phi, its two parts and Sigma as heat maps; numbers in physical units, colours per standard deviation.

    The colours are comparable between variables of different units; the three mobilities share one scale.
    """
    model = _model(result)
    mobility, names, std = model.mobility, model.names, model.standardizer.std
    size, per = len(names), plain(model.time_unit) or "time"
    maps = [
        ("Mobility Φ", mobility.matrix, mobility.standard_error),
        ("Diffusion, symmetric part", mobility.symmetric, mobility.symmetric_error),
        ("Circulation, antisymmetric part", mobility.antisymmetric, mobility.antisymmetric_error),
        ("Noise factor Σ", mobility.noise_factor, mobility.noise_factor_error),
    ]
    axes = panels(4, 2, min(max(0.5 * size + 1.1, 2.3), 4.2), ax, width=min(max(1.7 * size + 2.6, 6.4), WIDTH))
    colours = [m / np.outer(std, std) for _, m, _ in maps[:3]] + [maps[3][1] / std[:, None]]
    limit = 1.1 * max(np.abs(c).max() for c in colours[:3])
    for k, (ax, (title, matrix, spread)) in enumerate(zip(axes, maps)):
        shown = heat_map(ax, colours[k], limit if k < 3 else 1.1 * np.abs(colours[3]).max(), names)
        ax.set_title(title)
        if np.abs(colours[k]).max() < 1e-6 * limit:
            ax.text(0.5, 0.5, "zero", transform=ax.transAxes, ha="center", va="center", color="#888888")
        elif size <= _ANNOTATED:
            _annotate(ax, matrix, spread, shown)
        bar = colour_bar(shown, ax, shrink=0.85, pad=0.02)
        bar.set_label(f"per std² [1/{per}]" if k < 3 else f"per std [1/√{per}]", fontsize=8)
    return axes


@styled
def plot_fields(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the landscape and what moves on it, with bands of two standard errors and increments of the data.

    Of one variable: the potential -ln p (of a validation), drift and diffusion against the state. Of more: drift on the
    potential and current, as arrows in the plane of two variables, then current and, if it depends on the state,
    diffusion against one variable; all are means over the states in a cell. Increments over one interval are biased at
    coarse sampling.
    """
    model = _model(result)
    if model.fields is None and model.dimension > _PLANE:
        raise ArgumentError("This model has a constant mobility: there are no fields to draw.")
    known = {} if isinstance(result, LangevinModel) else result.curves
    lines = known.get("field_profiles") or field_profiles(model, None)
    arrows = known.get("field_arrows")
    if arrows is None or "drift" not in arrows:  # an older file has arrows of the current only
        arrows = field_arrows(model, None)
    density = known.get("original_pdf" if model.space.angles else "pdf") if model.dimension == 1 else None
    before = 2 if arrows is not None else int(density is not None)
    axes = _field_panels(len(lines.data), before, ax)
    handles = [Line2D([], [], color=MODEL, label="model, band of 2 standard errors")]
    if np.isfinite(lines.data).any():
        words = f"increments of the data at dt = {lines['interval']:g} {plain(model.time_unit)}".strip()
        handles.append(Line2D([], [], color=DATA, marker="o", linestyle="", markersize=4, label=words))
    legend(axes, handles)
    if arrows is not None:
        _draw_arrows(axes[0], arrows, "Drift on the potential −ln p", ((arrows["drift"], MODEL, 0.006),))
        sides = ((arrows.model, MODEL, 0.006), (arrows.data, DATA, 0.003))
        _draw_arrows(axes[1], arrows, "Current ν", sides, trace_per=plain(model.time_unit) or "time")
    elif density is not None:
        _draw_potential(axes[0], density)
    for k, panel in enumerate(axes[before:]):
        _draw_profile(panel, lines, k, model)
    return axes


def _field_panels(lines: int, before: int, ax: Any) -> np.ndarray:
    """Return axes for the two planes, if any, above the lines; all in one row otherwise."""
    if ax is not None or before < 2:
        return panels(lines + before, lines + before, 2.7, ax)
    figure = Figure(figsize=(WIDTH, 6.2), layout="constrained")
    above, below = figure.add_gridspec(2, 1, height_ratios=[1.9, 1.0])
    grids = above.subgridspec(1, 2), below.subgridspec(1, lines)
    return np.array([figure.add_subplot(place) for grid in grids for place in grid], dtype=object)


def _draw_potential(ax: Axes, curve: Curve) -> None:
    """Draw -ln p of one variable, of data and model, above its least value in the data."""
    x = 0.5 * (curve["edges"][0, 1:] + curve["edges"][0, :-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = -np.log(curve.data[0].max())
        for (density, error), look in zip(curve.sides, ((DATA, "-"), (MODEL, "--"))):
            value = np.where(density[0] > 0, -np.log(density[0]) - zero, np.nan)
            band(ax, x, value, None if error is None else error[0] / density[0], *look)
    ax.set(xlim=(x[0], x[-1]), xlabel=label(curve.labels[0], curve["unit"][0]), ylabel="potential −ln p")


def _draw_profile(ax: Axes, curve: Curve, k: int, model: LangevinModel) -> None:
    """Draw one entry of a field against one variable."""
    quantity, x = str(curve["quantity"][k]), curve["state"][k]
    value, error = curve.model[k], curve.model_error[k] if curve.model_error is not None else None
    if model.dimension == 1:
        low, period = np.append(model.space.lowest, 0.0)[0], model.space.periods[0]
        start, stop = (low, low + period) if period else np.quantile(model.states, (0.005, 0.995))
        x = np.linspace(start, stop, _GRID)
        value = FIELDS[quantity](model, x[:, None], 0)
        error = np.std([FIELDS[quantity](m, x[:, None], 0) for m in islice(model.replicas(), _DRAWN)], axis=0)
    ax.axhline(0, **GREY)
    band(ax, x, value, error, MODEL, "-")
    spread = None if curve.data_error is None else 2 * curve.data_error[k]
    ax.errorbar(curve["state"][k], curve.data[k], spread, fmt="o", color=DATA, markersize=3, linewidth=1, zorder=3)
    unit, per, name = brief(curve["unit"][k]), plain(model.time_unit) or "time", short(curve["variable"][k])
    whose = f" of {name}" if model.dimension > 1 else ""
    symbol = {"drift": "drift", "current": f"ν{whose}", "diffusion": f"D{whose}" if whose else "diffusion D"}[quantity]
    power = "²" if quantity == "diffusion" and unit not in NO_UNITS else ""
    margin = 0.03 * (x[-1] - x[0])
    ax.set(xlabel=label(curve["against"][k], curve["against_unit"][k]), xlim=(x[0] - margin, x[-1] + margin))
    ax.set_ylabel(f"{symbol} [{unit or '1'}{power}/{per}]")


def _draw_arrows(ax: Axes, curve: Curve, title: str, sides: Sequence[tuple], trace_per: str = "") -> None:
    """Draw velocities in the plane of two variables, on the potential, or on the trace of D if that varies."""
    trace, (x, y) = curve["trace"].T, curve["edges"]
    varies = np.isfinite(trace).any() and np.nanmax(trace) - np.nanmin(trace) > _FLAT * np.nanmax(trace)
    if trace_per and varies:
        shown = ax.pcolormesh(x, y, trace, cmap="Greys", vmin=0, vmax=2 * np.nanmax(trace))
        words = f"trace of D, per std² [1/{trace_per}]"
    else:
        middles = (0.5 * (edge[1:] + edge[:-1]) for edge in curve["grid"])
        heights = np.linspace(0, np.quantile(curve["potential"], _HIGH), 13)
        shown = ax.contourf(*middles, curve["potential"].T, heights, cmap=_WELLS, extend="max")
        words = "−ln p above its least value"
    bar = colour_bar(shown, ax, pad=0.02, location="bottom", aspect=40, format="%.3g")
    bar.set_label(words, fontsize=8)
    bar.ax.xaxis.set_major_locator(MaxNLocator(6))
    centres = np.meshgrid(*(0.5 * (edge[1:] + edge[:-1]) for edge in (x, y)), indexing="ij")
    width = np.array([x[1] - x[0], y[1] - y[0]])
    # The longest arrow of the model is as long as 1.6 cells.
    lengths = np.linalg.norm(sides[0][0] / width, axis=-1)
    longest = np.quantile(lengths[np.isfinite(lengths)], 0.98) if np.isfinite(lengths).any() else 0.0
    longest = longest or 1.0  # no sample, or no motion, in any cell
    for values, colour, thickness in sides:
        known = np.ones(values.shape[:2], bool)
        if colour == DATA and curve.data_error is not None:
            known = np.linalg.norm(curve.data_error / width, axis=-1) < _UNSURE * longest
        parts = np.moveaxis(np.where(known[..., None], values, np.nan) / longest * 1.6, -1, 0)
        ax.quiver(*centres, *parts, angles="xy", scale_units="xy", scale=1, color=colour, width=thickness)
    names, units = curve["component"], curve["unit"]
    ax.set(xlim=x[[0, -1]], ylim=y[[0, -1]], xlabel=label(names[0], units[0]), ylabel=label(names[1], units[1]))
    ax.set_title(title, loc="left")


@styled
def plot_noise_level(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the held-out loss of every smoothing width tried, above the smallest, and the one chosen."""
    score = _model(result).score
    choice, chosen = score.evidence.noise_level_choice, score.learned_level
    if choice is None:
        raise ArgumentError("The smoothing width of this score was given, not chosen: there are no losses to draw.")
    axes = panels(1, 1, 2.7, ax)
    ax = axes[0]
    level, loss, error = (
        np.asarray(part) for part in (choice.noise_level, choice.held_out_loss, choice.standard_error)
    )
    order = np.argsort(level)
    ax.errorbar(level[order], loss[order], error[order], color=DATA, marker="o", capsize=3)
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
    ax.set(xlabel="smoothing width σ (in standard deviations)", ylabel="held-out loss above the best")
    ax.legend(loc="best")
    return axes


@styled
def plot_training(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the training loss and the held-out loss after every epoch, with the epoch kept.

    The axis leaves out the first tenth of the training, unless the losses span decades.
    """
    evidence = _model(result).score.evidence
    losses, held_out, steps = evidence.loss_curve, evidence.held_out_loss_curve or (), evidence.training_steps
    if losses is None:
        raise ArgumentError("This score was not trained: there is no loss to draw.")
    axes = panels(1, 1, 2.7, ax)
    ax, end, values = axes[0], steps or 100, np.array([*losses, *held_out])
    place = end * (np.arange(len(losses)) + 0.5) / len(losses)
    ax.plot(place, losses, color=DATA, linewidth=1.0, label="training")
    if len(held_out):
        epochs, best = end * np.arange(1, len(held_out) + 1) / len(held_out), int(np.argmin(held_out))
        ax.plot(epochs, held_out, color=MODEL, marker="." if len(held_out) <= 40 else "", label="held out")
        kept = {"markersize": 8, "clip_on": False, "label": f"kept: epoch {best + 1}"}
        ax.plot(epochs[best], held_out[best], "o", color=MODEL, **kept)
        ax.legend(loc="best")
        place = np.concatenate([place, epochs])
    if 0 < 20 * values.min() < values.max():
        ax.set_yscale("log")
    else:
        later = values[place > 0.1 * end]
        margin = 0.08 * max(later.max() - later.min(), 1e-3 * abs(later.max()))
        ax.set_ylim(later.min() - margin, later.max() + margin)
        if values[0] > 1.2 * later.max():
            corner = {"xycoords": "axes fraction", "va": "top", "fontsize": 8, "color": DATA}
            ax.annotate(f"← from {values[0]:.3g}", (0.25, 0.98), **corner)
    ax.set(xlim=(0, end), xlabel="training step" if steps else "training done (%)", ylabel="loss")
    return axes


@styled
def plot_stein(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the Stein matrix and its distance from minus the identity, as heat maps."""
    model = _model(result)
    stein, names = model.score.stein, model.names
    axes = panels(2, 2, min(max(0.3 * len(names), 2.6), 3.6), ax, width=WIDTH)
    for ax, title, matrix in zip(axes, ("⟨s xᵀ⟩", "⟨s xᵀ⟩ + 1: zero if exact"), (stein, stein + np.eye(len(stein)))):
        shown = heat_map(ax, matrix, float(np.abs(matrix).max()) or 1.0, names)
        ax.set_title(title)
        colour_bar(shown, ax, shrink=0.85, pad=0.02)
    return axes


def _annotate(ax: Axes, matrix: Matrix, error: Matrix | None, shown) -> None:
    """Write numbers into the cells, dark on light and light on dark."""
    luminance = shown.cmap(shown.norm(shown.get_array()))[..., :3] ** 2.2 @ (0.2126, 0.7152, 0.0722)
    for (i, j), value in np.ndenumerate(matrix):
        number, spread = digits(value, None if error is None else float(error[i, j]))
        text = number.replace("-", "−") + (f"\n± {spread}" if spread else "")
        colour = "white" if luminance[i, j] < 0.18 else "black"
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=8.5 if len(matrix) < 5 else 7)


@styled
def plot_mobility_by_horizon(result: Any, ax: Any = None) -> np.ndarray:
    """Draw Phi(T) against the horizon T, with the value used: the largest entries, or the leading Fourier modes.

    Beside a current that depends on the state, it is the diffusion that is drawn.
    """
    curve = curve_of(result, "mobility_by_horizon")
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


def _apart(values: np.ndarray, least: float) -> np.ndarray:
    """Return the values, raised where one is less than `least` above the one beneath it."""
    order, found = np.argsort(values), np.array(values, float)
    for below, above in pairwise(order):
        found[above] = max(found[above], found[below] + least)
    return found


def _draw_modes_by_horizon(curve: Curve, ax: Any) -> np.ndarray:
    """Draw Phi_k(T); with chosen horizons each value is marked where it was taken, and the curve faint beyond."""
    axes = panels(1, 1, 3.1, ax, width=0.8 * WIDTH)
    ax, horizon, used, chosen = axes[0], curve["horizon"], curve.model[0], curve["chosen"]
    top, marked = _HEADROOM * float(np.max(used)), bool(np.isfinite(chosen).all())
    before_pole = np.logical_and.accumulate((curve.data > 0) & (curve.data < 2 * top), axis=0)
    phi = np.where(before_pole, curve.data, np.nan).T  # beyond a pole the curve means nothing
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.92, len(used)))
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    heights = _apart(used, _LINE * top)
    for k, colour in enumerate(colours):
        if marked:
            kept = horizon <= chosen[k]
            ax.plot(horizon, phi[k], color=colour, linewidth=1.0, alpha=0.35)
            ax.plot(np.append(horizon[kept], chosen[k]), np.append(phi[k][kept], used[k]), color=colour, linewidth=1.8)
            ax.plot(chosen[k], used[k], "o", color=colour, markeredgecolor="black", markersize=7, zorder=3)
        else:
            ax.plot(horizon, phi[k], color=colour, marker=".")
            ax.axhline(used[k], color=colour, linestyle="--", linewidth=1.2)
        place = (chosen[k] if marked else horizon[-1], heights[k])
        look = {"xytext": (7, -3), "textcoords": "offset points", "fontsize": 8, "bbox": box, "zorder": 4}
        ax.annotate(f"k = {curve['mode'][k]}", place, **look)
    end = min(1.02 * horizon[-1], _LONGER * float(chosen.max())) if marked else 1.1 * horizon[-1]
    ax.set(xlim=(0, end), ylim=(0, top))
    per, symbol = plain(curve.unit("horizon")) or "time", str(curve["symbol"]) if "symbol" in curve else "Φ"
    ax.set(xlabel=label("horizon T", curve.unit("horizon")), ylabel=f"{symbol}$_k$(T) [1/{per}]")
    looks: list[tuple[str, dict[str, Any]]] = (
        [("value used, at the chosen horizon", {"marker": "o"}), ("longer horizons", {"alpha": 0.4, "linewidth": 1.0})]
        if marked
        else [(f"{symbol}$_k$(T)", {"marker": "."}), ("value used", {"linestyle": "--"})]
    )
    ax.legend(handles=[Line2D([], [], color="#444444", label=t, **look) for t, look in looks], loc="upper right")
    return axes
