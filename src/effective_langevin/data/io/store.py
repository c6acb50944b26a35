"""Paths that are written block by block into a Zarr store, as long and as many as the disk can hold."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..._core import checks, files
from ..._core.errors import ArgumentError, DataError
from ..._core.format import count, listed
from ..._core.types import Paths
from ..fields import summarize
from ..series import TimeSeries
from .records import needs
from .xarray import NOTES, UNFINISHED, as_variables, member_axes, open_labelled

_BLOCK = 1 << 22  # numbers of all variables that are written together


@dataclass(frozen=True)
class StoredPaths:
    """Simulated paths in a Zarr store; `open` shows them without reading them all.

    A member that diverged is NaN from then on; `diverged` says how many did.
    """

    path: Path
    members: int
    samples: int
    names: tuple[str, ...]
    diverged: int = 0

    def open(self) -> Any:
        """Open the store; values are read where they are asked for.

        Returns
        -------
        xarray.Dataset
            One variable (member, time) per name, (member, time, ...) per field.
        """
        return open_labelled(self.path)

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> "StoredPaths":
        """Return what is in a complete store.

        Parameters
        ----------
        path : path
            A Zarr store written by `simulate(..., out=...)`.

        Returns
        -------
        StoredPaths
        """
        place = as_store(path)
        if not place.is_dir() or (place / UNFINISHED).exists():
            raise DataError(f"{place} is no complete store of simulated paths. Simulate with out={str(place)!r}.")
        with open_labelled(place) as data:
            if not {"member", "time"} <= set(data.sizes):
                raise DataError(f"{place} holds no simulated paths: it has no dimensions member and time.")
            found = cls(place, data.sizes["member"], data.sizes["time"], tuple(map(str, data.data_vars)))
        return replace(found, diverged=len(found.lost))

    @property
    def lost(self) -> list[int]:
        """Numbers of the members that diverged."""
        with self.open() as data:
            return np.ravel(data.attrs.get("diverged_members", [])).astype(int).tolist()

    def load(self, members: Sequence[int] | range) -> TimeSeries:
        """Read the paths of some members; those that diverged are left out.

        Parameters
        ----------
        members : sequence of int
            Numbers of the members, from 0 on.

        Returns
        -------
        TimeSeries
        """
        from . import read

        with self.open() as data:
            lost = set(self.lost)
            kept = [member for member in members if member not in lost]
            ordered = data[list(self.names)] if set(self.names) <= set(map(str, data.data_vars)) else data
            return read(ordered.isel(member=kept).load(), member="member")

    def __repr__(self) -> str:
        size = f"{count(self.members, 'path')} of {count(self.samples, 'sample')}"
        lost = f"; {self.diverged} diverged" if self.diverged else ""
        return f"StoredPaths({size} of {listed(summarize(self.names))}{lost}: {self.path})"

    def summary(self) -> str:
        """Return what is in the store, as text."""
        return repr(self)


@dataclass(frozen=True)
class Layout:
    """Shape and labels of a store: `unit` members are written together, in blocks of whole calls of the integrator."""

    members: int
    samples: int
    unit: int
    per_call: int
    variables: int
    dt: float
    starts: tuple[float, ...]
    dtype: str
    origin: str | None = None

    @property
    def calls(self) -> int:
        """Calls of which the samples are written together."""
        most = _BLOCK // (self.unit * self.per_call * self.variables)
        return max(1, min(most, -(-self.samples // self.per_call)))

    def label(self, series: TimeSeries, values: Paths) -> xr.Dataset:
        """Return values (member, time, var) as a variable (member, time, ...) for every name or field."""
        names, reserved = series.names, {"member": None, "time": None, "start": None}
        if any("/" in name or not name.strip(".") for name in names):  # no name of a variable in a store
            labels = {"variable": list(names), "units": ("variable", list(series.units))}
            return xr.Dataset({"state": (("member", "time", "variable"), values)}, labels)
        return xr.Dataset(as_variables(series, values, ("member", "time"), reserved, True))

    def axes(self, series: TimeSeries) -> dict[str, Any]:
        """Return the coordinates of all members and samples; `start` where members begin at different times."""
        one = len(set(self.starts)) == 1
        times = (self.starts[0] if one else 0.0) + self.dt * np.arange(self.samples)
        return member_axes(series, self.members, times, None if one else np.array(self.starts), self.origin)


class Store:
    """A Zarr store that is being written; a file in it says so, and how far it is."""

    def __init__(self, path: Path, layout: Layout, digest: str, overwrite: bool):
        needs("zarr", "zarr", path)
        self.path, self.layout, self.digest = path, layout, digest
        self.unfinished = path / UNFINISHED
        self.group: Any = None
        self.done = self._begin(overwrite)

    def _begin(self, overwrite: bool) -> dict[str, np.ndarray]:
        """Return where an interrupted run with the same settings stood; make place for a new one."""
        if not self.path.parent.is_dir():
            raise ArgumentError(f"Cannot write {self.path}: the folder {self.path.parent} does not exist.")
        if not self.path.exists():
            return {}
        before = self._read_progress()
        if before is not None and str(before["digest"]) == self.digest:
            for torn in self.path.rglob("*.partial"):  # Zarr leaves the block in which it was killed
                if torn.is_file():
                    torn.unlink()
            return before
        if not overwrite:
            what = "exists already" if before is None else "holds part of a simulation with other settings"
            raise ArgumentError(f"{self.path} {what}. Choose another `out`, or pass overwrite=True (--overwrite).")
        shutil.rmtree(self.path) if self.path.is_dir() else self.path.unlink()
        return {}

    def _read_progress(self) -> dict[str, np.ndarray] | None:
        try:
            with np.load(self.unfinished) as file:
                return dict(file)
        except (OSError, ValueError, EOFError, KeyError):
            return None

    def keep(self, **state: Any) -> None:
        """Note how far the paths are: unit and sample, and what is needed to go on from there."""
        with files.replaced(self.unfinished) as temporary, temporary.open("wb") as file:
            np.savez(file, digest=np.array(self.digest), **state)

    def write(self, series: TimeSeries, values: Paths, member: int, sample: int) -> None:
        """Write values (member, time, var) of the variables of a series from this member and sample on."""
        labelled = self.layout.label(series, values)
        where = slice(member, member + values.shape[0]), slice(sample, sample + values.shape[1])
        group = self._open(series, labelled)
        for name, array in labelled.items():
            group[str(name)][where] = array.values

    def _open(self, series: TimeSeries, labelled: xr.Dataset) -> Any:
        """Return the group; the first time, make its arrays, labelled as the first block is."""
        if self.group is None:
            import zarr

            if not self.path.exists():
                with files.replaced(self.path) as temporary:
                    self._create(series, labelled, temporary)
            self.group = zarr.open_group(self.path, mode="r+")
        return self.group

    def _create(self, series: TimeSeries, labelled: xr.Dataset, path: Path) -> None:
        import zarr

        layout = self.layout
        xr.Dataset(coords={**labelled.coords, **layout.axes(series)}, attrs=NOTES).to_zarr(path, consolidated=False)
        group = zarr.open_group(path, mode="r+")
        for name, array in labelled.items():
            rest = array.shape[2:]
            group.create_array(
                str(name),
                shape=(layout.members, layout.samples, *rest),
                chunks=(min(layout.unit, layout.members), min(layout.calls * layout.per_call, layout.samples), *rest),
                dtype=layout.dtype,
                fill_value=np.nan,
                compressors=None,  # random digits do not become smaller
                dimension_names=[str(dimension) for dimension in array.dims],
                attributes={str(key): note for key, note in array.attrs.items()},
            )
        with (path / UNFINISHED).open("wb") as file:
            np.savez(file, digest=np.array(self.digest), unit=0, call=0)

    def finish(self, diverged: Sequence[int]) -> None:
        """Note the members that diverged, and that the store is complete."""
        attributes = self.path / "zarr.json"
        content = json.loads(attributes.read_text())
        content["attributes"]["diverged_members"] = [int(member) for member in diverged]
        with files.replaced(attributes) as temporary:
            temporary.write_text(json.dumps(content, indent=2))
        self.unfinished.unlink()


def as_store(path: str | os.PathLike[str]) -> Path:
    """Return the path of a store; only Zarr is written block by block."""
    found = Path(path)
    if found.suffix.lower() != ".zarr":
        raise checks.refused("out", "a path that ends in .zarr", str(path), "Only Zarr is written by blocks.")
    return found
