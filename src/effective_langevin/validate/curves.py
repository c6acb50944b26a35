"""Curves: one statistic of data and model side by side, with standard errors and labelled axes."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """One statistic of data and model, with labelled axes.

    `curve["lag"]` is the coordinate of that name.

    Parameters
    ----------
    dims : tuple of str
        Name of each axis of `data` and `model`.
    data, model : array
        The statistic of the data and of the simulated paths, in the same shape.
    data_error, model_error : array, optional
        Standard errors, where there are enough samples for them.
    coords : dict of str to (dims, values)
        Coordinates: labels and numbers along the axes named in their `dims`.
    units : dict of str to str
        Units of coordinates, and of the values under "value".
    """

    dims: tuple[str, ...]
    data: np.ndarray
    model: np.ndarray
    data_error: np.ndarray | None = None
    model_error: np.ndarray | None = None
    coords: Mapping[str, tuple[tuple[str, ...], Any]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self.coords[name][1])

    def __contains__(self, name: str) -> bool:
        return name in self.coords

    def __repr__(self) -> str:
        shape = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, np.shape(self.data)))
        return f"Curve({shape}; coords {', '.join(self.coords)})"

    @property
    def sides(self) -> tuple[tuple[np.ndarray, np.ndarray | None], ...]:
        """Values and errors of the data, then of the model."""
        return (self.data, self.data_error), (self.model, self.model_error)

    @property
    def labels(self) -> list[str]:
        return [str(name) for name in self["variable"]]

    def unit(self, name: str) -> str:
        """Return the unit of a coordinate, "" if it has none."""
        return self.units.get(name, "")


class LazyCurves(Mapping[str, Curve]):
    """Curves by name, each computed when it is first asked for; makers that return None have nothing to show.

    `makers` returns them by name: it is kept in their place, so that curves can be pickled.
    """

    def __init__(self, makers: Callable[[], Mapping[str, Callable[[], Curve | None]]]):
        self._makers, self._made = makers, {}

    def get(self, name: str, default: Any = None) -> Any:
        """Return the curve, or `default` if there is none."""
        if name not in self._made and name in (makers := self._makers()):
            self._made[name] = makers[name]()
        found = self._made.get(name)
        return default if found is None else found

    def __getitem__(self, name: str) -> Curve:
        found = self.get(name)
        if found is None:
            raise KeyError(f"There is no curve {name!r}. There are: {', '.join(self)}.")
        return found

    def __contains__(self, name: object) -> bool:
        return self.get(str(name)) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._makers() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def curve_of(result: Any, name: str) -> Curve:
    """Return the curve of that name of a validation, or the curve that was given in its place."""
    return result if isinstance(result, Curve) else result.curves[name]


def basin_name(angle: str) -> str:
    """Return the name of the curve that holds the basins of an angle; names in a file have no slash."""
    return f"basins_{angle.replace('/', '_')}"


def to_dataset(curves: Mapping[str, Curve], attributes: Mapping[str, Any]) -> "xr.Dataset":
    """Collect curves in one dataset: `NAME` (source, ...) and `NAME_se`, with labelled dimensions and units.

    A dimension keeps its name while its coordinate is the same in all curves; otherwise it becomes `NAME_dimension`.
    """
    import xarray as xr

    dataset = xr.Dataset(coords={"source": ["data", "model"]}, attrs=dict(attributes))
    for name, curve in curves.items():
        sizes = dict(zip(curve.dims, np.shape(curve.data)))
        for along, values in curve.coords.values():
            sizes |= dict(zip(along, np.shape(values)))
        keys = {dim: dim if _fits(dataset, dim, size, curve) else f"{name}_{dim}" for dim, size in sizes.items()}
        keys |= {key: f"{name}_{key}" for key in curve.coords if key not in sizes}
        dims = ["source", *(keys[dim] for dim in curve.dims)]
        unit = {"units": curve.unit("value")}
        layout = json.dumps({"dims": curve.dims, "keys": keys, "coords": list(curve.coords)})
        dataset[name] = (dims, np.array([curve.data, curve.model]), {**unit, "layout": layout})
        if curve.data_error is not None and curve.model_error is not None:
            dataset[f"{name}_se"] = (dims, np.array([curve.data_error, curve.model_error]), unit)
        for key, (along, values) in curve.coords.items():
            attrs = {"units": curve.unit(key)} if np.asarray(values).dtype.kind != "M" else {}  # dates have no unit
            dataset.coords[keys[key]] = ([keys[dim] for dim in along], np.asarray(values), attrs)
    return dataset


def _fits(dataset: "xr.Dataset", dim: str, size: int, curve: Curve) -> bool:
    """Tell whether a dimension of a curve can be that of the same name in the dataset."""
    if dim not in dataset.sizes:
        return True
    if dim in curve and dim in dataset.coords:
        return np.array_equal(dataset.coords[dim].values, curve[dim])
    return dim not in curve and dim not in dataset.coords and dataset.sizes[dim] == size


def from_dataset(dataset: "xr.Dataset") -> dict[str, Curve]:
    """Read back what `to_dataset` collected."""
    curves = {}
    for name, values in dataset.data_vars.items():
        if "layout" not in values.attrs:
            continue
        layout = json.loads(values.attrs["layout"])
        own = {key: label for label, key in layout["keys"].items()}
        found = {label: dataset.coords[layout["keys"][label]] for label in layout["coords"]}
        errors = dataset[f"{name}_se"].values if f"{name}_se" in dataset else (None, None)
        coords = {label: (tuple(own[str(d)] for d in c.dims), c.values) for label, c in found.items()}
        units = {label: c.attrs["units"] for label, c in {**found, "value": values}.items() if c.attrs.get("units")}
        curves[str(name)] = Curve(tuple(layout["dims"]), *values.values, *errors, coords=coords, units=units)
    return curves
