"""What all figures share: colours, style, panels, legends and labels."""

from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .._core.errors import ArgumentError
from .._core.format import NO_UNITS, brief_unit
from .._core.types import Matrix

DATA, MODEL = "#0072B2", "#D55E00"  # two colours that all kinds of colour vision tell apart (Okabe and Ito)
GREY: dict[str, Any] = {"color": "#888888", "linewidth": 0.8}  # a line at zero
WIDTH = 9.4
_BELOW = 0.05  # a band that would reach zero on a logarithmic scale ends at this fraction of the curve
STYLE = Path(__file__).with_name("report.mplstyle")

_ARGUMENTS = """
    Parameters
    ----------
    result : Validation
        The validation, one of its curves, or what the first line names; a LangevinModel, if only that is drawn.
    ax : Axes or array of Axes, optional
        Where to draw, one for each panel; by default a new figure.

    Returns
    -------
    array of Axes
        `axes.flat[0].figure` is the figure.
    """


def styled(draw):
    """Draw with the style of the package, without touching the settings of the session; complete the docstring."""

    @wraps(draw)
    def inner(*args, **kwargs):
        with matplotlib.style.context(STYLE):
            return draw(*args, **kwargs)

    inner.__doc__ = f"{draw.__doc__.rstrip()}\n{_ARGUMENTS}"
    return inner


def panels(count: int, columns: int, height: float, axes: Any, *, blocks: Sequence[int] | None = None, width=None):
    """Return the axes given, or `count` new ones in rows of `columns` (or of the lengths in `blocks`)."""
    if axes is not None:
        given = np.asarray(axes, dtype=object).ravel()
        if len(given) != count:
            raise ArgumentError(f"Argument `ax` must hold {count} axes, but got {len(given)}.")
        return given
    rows = blocks or [columns] * (count // columns) + [count % columns] * (count % columns > 0)
    size = (width or min(WIDTH, 4.8 * columns), height * len(rows) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(len(rows), columns)
    return np.array([figure.add_subplot(grid[r, c]) for r, n in enumerate(rows) for c in range(n)], dtype=object)


def even_columns(count: int) -> int:
    """Return the number of columns, at most four, that fills rows most evenly."""
    return -(-count // -(-count // 4))


def band(ax: Axes, x, y, error, colour: str, dashes: str, marker: str = "", positive: bool = False) -> None:
    """Draw a curve with a band of two standard errors; on a logarithmic scale the band stays `positive`."""
    if error is not None:
        low = np.maximum(y - 2 * error, _BELOW * y) if positive else y - 2 * error
        ax.fill_between(x, low, y + 2 * error, color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, y, dashes, color=colour, marker=marker)


def colour_bar(shown: Any, axes: Any, **options: Any) -> Any:
    """Draw a colour bar without a frame."""
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    bar = figure.colorbar(shown, ax=axes, **options)
    bar.outline.set_visible(False)
    return bar


def legend(axes: np.ndarray, handles: Sequence[Any] | None = None, *, dashed: bool = False) -> None:
    """Draw one legend per figure, above the panels; inside the first panel when the figure is not ours."""
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


def label(name: str, unit: str) -> str:
    """Write a name with its unit."""
    return f"{short(name, 24)} [{brief(unit)}]" if unit not in NO_UNITS else short(name, 24)


def brief(unit: str) -> str:
    """Write a unit as it stands beside an axis."""
    return short(brief_unit(unit), 16)


def short(name: str, limit: int = 10) -> str:
    """Shorten a name to its two ends, since numbers often stand last."""
    kept = limit // 2
    return plain(name if len(name) <= limit else f"{name[: limit - kept - 1]}…{name[-kept:]}")


def plain(text: str) -> str:
    """Keep matplotlib from reading a dollar sign as mathematics."""
    return text.replace("$", r"\$")


def enclosing_levels(density: Matrix, masses: Sequence[float]) -> np.ndarray:
    """Return the levels whose superlevel sets hold the given fractions of the mass, rising."""
    ordered = np.sort(density.ravel())[::-1]
    held = np.cumsum(ordered) / ordered.sum()
    return np.unique(np.maximum(ordered[np.searchsorted(held, masses).clip(max=len(held) - 1)], ordered[0] * 1e-9))


def heat_map(ax: Axes, matrix: Matrix, limit: float, names: Sequence[str], every: int | None = None):
    """Draw a matrix in colours from -limit to limit, with about a dozen names along its edges."""
    shown = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    ticks = range(0, len(names), every or max(1, -(-len(names) // 12)))
    flat = len(names) <= 6 or max(len(names[k]) for k in ticks) <= 2
    ax.set_xticks(ticks, [short(names[k]) for k in ticks], rotation=0 if flat else 60)
    ax.set_yticks(ticks, [short(names[k]) for k in ticks])
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return shown
