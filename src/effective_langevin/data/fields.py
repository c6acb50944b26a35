"""Variables that are points of a field: "sst(lat=-20.0, lon=160.0)" says where on the grid it lies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_POINT = re.compile(r"^(?P<name>.+)\((?P<place>[^()=,]+=[^()=,]+(?:, [^()=,]+=[^()=,]+)*)\)$")
_LATITUDES = ("lat", "latitude", "nav_lat", "y_lat")


@dataclass(frozen=True, eq=False)
class Field:
    """A field: the coordinates of its grid, and where on it the `columns` of a series lie."""

    name: str
    coordinates: dict[str, np.ndarray]
    columns: tuple[int, ...]
    places: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of grid points along each dimension."""
        return tuple(len(values) for values in self.coordinates.values())

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., column) on the grid, (..., *shape), NaN where there is no variable."""
        grid = np.full((*values.shape[:-1], *self.shape), np.nan)
        grid[(..., *self.places)] = values
        return grid


def name_point(name: str, place: dict[str, Any]) -> str:
    """Name the variable at a grid point: T(lat=10, lon=20)."""
    return f"{name}(" + ", ".join(f"{dimension}={value}" for dimension, value in place.items()) + ")"


def find_fields(names: Sequence[str]) -> list[Field]:
    """Find the fields among the variables by their names; variables that are no grid points are in none."""
    groups: dict[tuple, list[tuple[int, list[str]]]] = {}
    for column, name in enumerate(names):
        match = _POINT.match(name)
        if match:
            pairs = [pair.split("=") for pair in match["place"].split(", ")]
            key = (match["name"], *(dimension for dimension, _ in pairs))
            groups.setdefault(key, []).append((column, [value for _, value in pairs]))
    return [_field(name, dimensions, points) for (name, *dimensions), points in groups.items()]


def _field(name: str, dimensions: Sequence[str], points: list[tuple[int, list[str]]]) -> Field:
    coordinates, places = {}, []
    for dimension, texts in zip(dimensions, zip(*(place for _, place in points))):
        known = list(dict.fromkeys(texts))
        try:
            values = np.array([float(text) for text in known])
            order = np.argsort(values)[:: -1 if len(values) > 1 and values[0] > values[1] else 1]
        except ValueError:
            values, order = np.array(known), np.arange(len(known))
        rank = {known[i]: k for k, i in enumerate(order)}
        coordinates[dimension] = values[order]
        places.append(np.array([rank[text] for text in texts]))
    return Field(name, coordinates, tuple(column for column, _ in points), tuple(places))


def area_weights(names: Sequence[str]) -> np.ndarray:
    """Return sqrt(cos(latitude)) of each variable, the root of its area; 1 where there is no latitude."""
    weights = np.ones(len(names))
    for field in find_fields(names):
        for (dimension, values), place in zip(field.coordinates.items(), field.places):
            if dimension.lower() in _LATITUDES and values.dtype.kind == "f" and np.abs(values).max() <= 90:
                cosine = np.maximum(np.cos(np.deg2rad(values)), 1e-6)
                weights[list(field.columns)] = np.sqrt(cosine[place])
    return weights


def summarize(names: Sequence[str]) -> list[str]:
    """Return the names, with "sst(lat, lon)" in place of the grid points of a field."""
    large = [field for field in find_fields(names) if len(field.columns) > 4]
    first = {f.columns[0]: f"{f.name}({', '.join(f.coordinates)})" for f in large}
    inside = {column for f in large for column in f.columns}
    return [first.get(i, name) for i, name in enumerate(names) if i in first or i not in inside]
