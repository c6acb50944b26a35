"""Figures of spectra and return times: these functions only draw, `spectra` and `extremes` compute."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from .style import DATA, MODEL, band, even_columns, label, legend, panels, plain, short, styled

_BELOW = 0.05  # a band that would reach zero on a logarithmic scale ends at this fraction of the curve


@styled
def plot_spectra(
    frequency: np.ndarray,
    data: np.ndarray,
    model: np.ndarray,
    *,
    data_error: np.ndarray | None = None,
    model_error: np.ndarray | None = None,
    names: Sequence[str],
    units: Sequence[str],
    time_unit: str = "",
    axes=None,
) -> np.ndarray:
    """Power spectral densities (frequency, var) on logarithmic scales, with bands of two standard errors."""
    columns = even_columns(len(names))
    axes = panels(len(names), columns, 2.5 if len(names) < 4 else 2.1, axes)
    for v, ax in enumerate(axes):
        for curve, error, colour, dashes in ((data, data_error, DATA, "-"), (model, model_error, MODEL, "--")):
            _positive_band(ax, frequency, curve[:, v], None if error is None else error[:, v], colour, dashes)
        ax.set(xscale="log", yscale="log", xlim=(frequency[0], frequency[-1]), title=short(names[v], 24))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        seen = np.concatenate([data[:, v], model[:, v]])
        ax.set_ylim(0.5 * seen[seen > 0].min(), 2.5 * seen.max())
        if v + columns >= len(names):
            ax.set_xlabel(label("frequency", f"1/{time_unit}" if time_unit else ""))
        per = f"{units[v]}² {time_unit}".strip() if units[v] else ""
        if v % columns == 0 or units[v] != units[v - 1]:
            ax.set_ylabel("power density" + (f" [{plain(per)}]" if per else ""))
    legend(axes, dashed=True)
    return axes


@styled
def plot_return_times(
    levels: np.ndarray,
    data: np.ndarray,
    model: np.ndarray,
    *,
    data_error: np.ndarray | None = None,
    model_error: np.ndarray | None = None,
    names: Sequence[str],
    units: Sequence[str],
    time_unit: str = "",
    axes=None,
) -> np.ndarray:
    """Mean time between upward crossings of every level, (var, level), with bands of two standard errors."""
    columns = even_columns(len(names))
    axes = panels(len(names), columns, 2.5 if len(names) < 4 else 2.1, axes)
    for v, ax in enumerate(axes):
        for curve, error, colour, dashes in ((data, data_error, DATA, "-"), (model, model_error, MODEL, "--")):
            _positive_band(ax, levels[v], curve[v], None if error is None else error[v], colour, dashes)
        ax.set(yscale="log", xlim=(levels[v][0], levels[v][-1]), xlabel=label(names[v], units[v]))
        if v % columns == 0:
            ax.set_ylabel(label("time between crossings", time_unit))
    legend(axes, dashed=True)
    return axes


def _positive_band(ax: Axes, x, y, error, colour: str, dashes: str) -> None:
    """A curve on a logarithmic scale with its band."""
    if error is not None:
        ax.fill_between(x, np.maximum(y - 2 * error, _BELOW * y), y + 2 * error, color=colour, alpha=0.2, linewidth=0)
    band(ax, x, y, None, colour, dashes)
