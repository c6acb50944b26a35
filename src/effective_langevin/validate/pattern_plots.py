"""Patterns (EOFs) behind the components of a PCA: maps of fields, lines of sections, bars of other variables."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.errors import ArgumentError
from ..data.fields import Field, find_fields
from ..data.preprocess.pca import FittedPCA
from ..model import LangevinModel
from .style import DATA, GREY, WIDTH, colour_bar, label, panels, short, styled

if TYPE_CHECKING:
    from .validation import Validation

_COMPONENTS, _COLUMNS = 6, 3
_FILLED = 4  # a field is a map where at least one in so many points of its grid is a variable
_BARS = 40  # variables up to which each has a bar with its name


def find_patterns(model: LangevinModel) -> FittedPCA | None:
    """Return the PCA among the transforms of a model, if there is one."""
    return next((step for step in getattr(model.transform, "steps", ()) if isinstance(step, FittedPCA)), None)


@styled
def plot_patterns(result: "Validation | LangevinModel", ax: Any = None) -> np.ndarray:
    """Draw what the variables change by when a component of a PCA grows by its standard deviation (EOFs).

    Up to six components: maps of fields on a plane, lines of fields on a line, bars of other variables, with the share
    of the variance of each component. `to_xarray()` of the fitted PCA has the numbers.
    """
    model = result if isinstance(result, LangevinModel) else result.model
    pca = find_patterns(model)
    if pca is None:
        raise ArgumentError("This model has no PCA among its transforms: there are no patterns to draw.")
    count = min(_COMPONENTS, pca.vectors.shape[1])
    known = dict(zip(model.names, model.standardizer.std))
    spread = np.array([known.get(name, 1.0) for name in pca.new_names[:count]])  # 1: later transforms have changed it
    numbers = (pca.vectors * pca.scale[:, None])[:, :count] * spread
    fields = [f for f in find_fields(pca.names) if len(f.columns) > 1 and _FILLED * len(f.columns) >= np.prod(f.shape)]
    gridded = {column for field in fields for column in field.columns}
    others = [i for i in range(len(pca.names)) if i not in gridded]
    rows = len(fields) + bool(others)
    wide: dict[str, Any] = (
        {"columns": count, "blocks": [count] * rows} if rows > 1 else {"columns": min(count, _COLUMNS)}
    )
    axes = panels(count * rows, height=2.3, axes=ax, width=WIDTH, **wide)
    for k, field in enumerate(fields):
        columns = list(field.columns)
        _draw_field(axes[k * count : (k + 1) * count], field, numbers[columns].T, pca.units[columns[0]])
    if others:
        _draw_bars(axes[-count:], [label(pca.names[i], pca.units[i]) for i in others], numbers[others])
    for k, panel in enumerate(axes[:count]):
        panel.set_title(f"PC{k + 1}: {100 * pca.explained_variance[k]:.1f} %")
    return axes


def _draw_field(axes: np.ndarray, field: Field, values: np.ndarray, unit: str) -> None:
    """Draw a field (component, column) on one scale for all components; one in space at the middle of its levels."""
    dims = list(field.coordinates)[-2:]
    middle = {level: len(points) // 2 for level, points in list(field.coordinates.items())[:-2]}
    place = "".join(f" at {level} = {field.coordinates[level][at]}" for level, at in middle.items())
    words = label(f"{field.name}{place}", unit)
    values = field.on_grid(values)[(slice(None), *middle.values())]
    known = [field.coordinates[dim] for dim in dims]
    grid = [points if points.dtype.kind in "iuf" else np.arange(len(points)) for points in known]
    limit = float(np.nanmax(np.abs(values)))
    for k, ax in enumerate(axes):
        if len(dims) == 1:
            ax.plot(*grid, values[k], color=DATA)
            ax.axhline(0, **GREY)
            ax.set_ylim(-1.1 * limit, 1.1 * limit)
            ax.set_ylabel(words if k == 0 else "")
        else:
            look = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "shading": "nearest", "rasterized": True}
            shown = ax.pcolormesh(*grid[::-1], values[k], **look)
            ax.set_ylabel(short(dims[0], 24) if k == 0 else "")
            ax.grid(False)
        ax.set_xlabel(short(dims[-1], 24))
    if len(dims) == 2:
        colour_bar(shown, list(axes), pad=0.015, fraction=0.05, aspect=25).set_label(words)


def _draw_bars(axes: np.ndarray, names: list[str], numbers: np.ndarray) -> None:
    """Draw a bar for each variable, below one another, on one scale for all components."""
    places, limit = np.arange(len(names)), 1.05 * float(np.abs(numbers).max())
    for k, ax in enumerate(axes):
        ax.barh(places, numbers[:, k], color=DATA)
        ax.axvline(0, **GREY)
        ax.set_xlim(-limit, limit)
        ax.set_yticks(places, names if k == 0 and len(names) <= _BARS else [""] * len(names))
        ax.invert_yaxis()
