"""Figures of forecasts, of their scores, of responses, and of models compared."""

from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .style import DATA, MODEL, WIDTH, band, even_columns, label, legend, panels, plain, styled

_BANDS = ((0.05, 0.95, 0.2), (0.25, 0.75, 0.35))
_WAYS = {
    "model": (MODEL, "-", "model"),
    "linear": (DATA, "--", "linear inverse model"),
    "persistence": ("#777777", ":", "persistence"),
    "climatology": ("#777777", "-.", "climatology"),
}
_MOST_PANELS = 12


@styled
def plot_forecast(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the first start of a Forecast: median of each variable, bands of 50 % and 90 %, and two members."""
    count = min(len(result.names), _MOST_PANELS)
    axes = panels(count, even_columns(count), 2.3, ax)
    x = np.concatenate([[0.0], result.leads])
    levels = sorted({0.5, *(level for *pair, _ in _BANDS for level in pair)})
    found = dict(zip(levels, result.quantiles(levels)[:, 0]))
    for v, panel in enumerate(axes):

        def from_start(values: np.ndarray, v: int = v) -> np.ndarray:
            return np.concatenate([[result.states[0, v]], values[:, v]])

        for low, high, alpha in _BANDS:
            edges = (from_start(found[level]) for level in (low, high))
            panel.fill_between(x, *edges, color=MODEL, alpha=alpha, linewidth=0)
        for member in result.values[0, :2]:
            panel.plot(x, from_start(member), color=MODEL, linewidth=0.6, alpha=0.7)
        panel.plot(x, from_start(found[0.5]), color=MODEL)
        panel.plot(0, result.states[0, v], "o", color=DATA, markersize=4, clip_on=False, zorder=4)
        panel.set(xlim=(0, x[-1]), xlabel=label("lead", result.time_unit))
        panel.set_ylabel(label(result.names[v], result.units[v]))
    handles = [
        Line2D([], [], color=DATA, marker="o", linestyle="", markersize=4, label="start"),
        Line2D([], [], color=MODEL, label="median"),
        Patch(color=MODEL, alpha=0.5, label="50 %"),
        Patch(color=MODEL, alpha=0.2, label="90 %"),
    ]
    legend(axes, handles)
    return axes


@styled
def plot_hindcast(result: Any, ax: Any = None) -> np.ndarray:
    """Draw a Hindcast against the lead: RMSE and CRPS of all ways to forecast, and the coverage of the bands."""
    axes = panels(3, 3, 2.7, ax, width=WIDTH)
    for panel, part in zip(axes, ("rmse", "crps")):
        for way, (colour, dashes, _) in _WAYS.items():
            panel.plot(result.leads, result.pooled(way, part), dashes, color=colour)
        panel.set_ylabel(f"{part.upper()} [standard deviations]")
        panel.set_ylim(bottom=0)
    for way in ("model", "linear"):
        colour, dashes, _ = _WAYS[way]
        axes[2].plot(result.leads, result.pooled(way, "coverage"), dashes, color=colour)
    axes[2].axhline(result.level, color="#888888", linewidth=0.8)
    axes[2].set(ylim=(0.5, 1.0), ylabel=f"outcomes within the {100 * result.level:g} % band")
    for panel in axes:
        panel.set_xlabel(f"lead [{plain(result.time_unit)}]" if result.time_unit else "lead")
    _name_lines(axes, *_WAYS.values())
    return axes


@styled
def plot_response(result: Any, ax: Any = None) -> np.ndarray:
    """Draw a Response against the lead, from fluctuations and from simulations, with bands of two standard errors."""
    axes = panels(len(result.names), even_columns(len(result.names)), 2.5, ax)
    for i, panel in enumerate(axes):
        band(panel, result.leads, result.fluctuation[:, i], result.fluctuation_error[:, i], DATA, "-")
        band(panel, result.leads, result.simulation[:, i], result.simulation_error[:, i], MODEL, "--")
        panel.axhline(0, color="#888888", linewidth=0.8)
        panel.set(xlabel=label("time after the push", result.time_unit))
        panel.set_ylabel(f"change of {label(result.names[i], '')}")
    _name_lines(axes, (DATA, "-", "fluctuations"), (MODEL, "--", "pushed simulations"))
    return axes


@styled
def plot_comparison(result: Any, ax: Any = None) -> np.ndarray:
    """Draw the energy score of every model of a Comparison against the lead, relative to the first."""
    axes = panels(1, 1, 2.7, ax)
    for name, score in zip(result.names, result.by_lead):
        axes[0].plot(result.leads, score / result.by_lead[0], marker="o", markersize=4, label=plain(name))
    axes[0].set(xlabel=label("lead", result.time_unit), ylabel=f"energy score / {plain(result.names[0])}")
    axes[0].legend()
    return axes


def _name_lines(axes: np.ndarray, *lines: tuple[Any, Any, str]) -> None:
    legend(axes, [Line2D([], [], color=c, linestyle=d, label=words) for c, d, words in lines])
