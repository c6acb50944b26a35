"""Paths that are written as they are simulated: memory does not grow with their number and length."""

import os
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core import checkpoints, checks, keys, progress
from .._core.errors import DivergenceError, EstimateWarning
from .._core.types import Paths, Samples
from ..data import TimeSeries
from ..execution.batches import count_cores, on_all_cores
from ..simulate.ensemble import Carry, Units
from ..simulate.forcing import Forced
from . import storage
from .simulation import as_observed, step_map

if TYPE_CHECKING:
    from ..data.io.store import Store, StoredPaths
    from .langevin import LangevinModel

_MOST = 1 << 27  # bytes of the states that a call on a GPU returns
_SLICE = 1 << 20  # numbers that are brought to physical units together
_FAR = 1e3  # spreads from zero at which single precision is not enough
_PAUSE = 5.0  # seconds between two notes of how far the paths are
_TRIED = 512


def write_paths(
    model: "LangevinModel",
    states: Samples,
    frames: int,
    *,
    dt: float,
    key: jax.Array,
    out: str | os.PathLike[str],
    overwrite: bool,
    denoise: bool | None,
    transformed: bool,
    begin: tuple[float, ...],
    origin: str | None,
    noise: np.ndarray | None,
    **driven: Any,
) -> "StoredPaths":
    """Simulate into a Zarr store, unit of members by unit; a run that was interrupted goes on where it was."""
    from ..data.io.store import Layout, Store, StoredPaths, as_store

    path = as_store(out)
    checks.not_given("noise", noise, "with `out`, noise is drawn from `seed`.")
    advance, counted, sizes = step_map(model, states, frames, dt=dt, **driven)
    drawn = keys.named(key, "noise")
    units = Units(advance, counted, drawn, sizes, _MOST)
    writer = _Writer(model, dt, np.array(begin), denoise, transformed)
    tried = writer.convert(model.standardizer.to_standard(model.states[:_TRIED])[None], 0, 0)
    far = np.abs(tried.stacked().mean(axis=0)) > _FAR * tried.stacked().std(axis=0)
    shape = (units.members, frames + 1, units.size, units.per_call, tried.dimension)
    layout = Layout(*shape, dt, tuple(begin), "float64" if far.any() else "float32", origin)
    pushes = np.asarray(advance.pushes) if isinstance(advance, Forced) else None
    how = (sizes, driven["stepper"], denoise, transformed, layout, version("effective-langevin"), jax.__version__)
    digest = checkpoints.digest((storage.fingerprint(model), how), (drawn, states, pushes))
    diverged = _fill(Store(path, layout, digest, overwrite), units, writer)
    what = f"{units.members} members diverged at step {sizes.step:g}"
    if len(diverged) == units.members:
        raise DivergenceError(f"All {what}. Give a smaller `step`.")
    if len(diverged):
        text = f"{len(diverged)} of {what} and are NaN from then on. Give a smaller `step`."
        warnings.warn(text, EstimateWarning, stacklevel=4)
    return StoredPaths(path, units.members, frames + 1, tried.names, len(diverged))


class _Writer:
    """From standardised states to physical values, a few members at a time."""

    def __init__(self, model: "LangevinModel", dt: float, begin: np.ndarray, denoise: bool | None, transformed: bool):
        self.model, self.dt, self.begin, self.how = model, dt, begin, (denoise, transformed)

    def convert(self, paths: Paths, member: int, sample: int) -> TimeSeries:
        """Return paths (member, time, var) that begin with this member and sample."""
        starts = self.begin[member : member + len(paths)] + self.dt * sample
        return as_observed(self.model, paths, self.dt, starts, *self.how)

    def write(self, store: "Store", paths: Paths, member: int, sample: int) -> None:
        """Write paths (time, member, var); what is not finite becomes NaN."""
        paths = np.moveaxis(paths, 0, 1)[..., : self.model.dimension]
        finite = np.all(np.isfinite(paths), axis=2, keepdims=True)
        few = max(1, _SLICE // (paths.shape[1] * paths.shape[2]))
        values, series = None, None
        for first in range(0, len(paths), few):
            part = slice(first, first + few)
            filled = np.where(finite[part], paths[part], 0.0)
            series = self.convert(filled, member + first, sample)
            found = np.stack(series.segments)
            if values is None:
                values = np.empty((*paths.shape[:2], found.shape[-1]), store.layout.dtype)
            values[part] = np.where(finite[part], found, np.nan)
        if series is not None and values is not None:
            store.write(series, values, member, sample)


def _fill(store: "Store", units: Units, writer: _Writer) -> np.ndarray:
    """Step the units, as many at a time as there are cores; return the members that diverged."""
    diverged, noted = [int(member) for member in store.done.get("diverged", ())], time.monotonic()
    with progress.task("Simulating", units.count * units.calls) as tick:
        for group, call, carries in _left(store, units, tick):
            while call < units.calls:
                before, call = call, min(call + store.layout.calls, units.calls)
                carries = _advance(store, units, writer, group, carries, range(before, call))
                tick(len(group) * (call - before))
                if time.monotonic() - noted > _PAUSE and call < units.calls:
                    states, lasts = (np.stack([np.asarray(part) for part in parts]) for parts in zip(*carries))
                    store.keep(unit=group[0], call=call, states=states, lasts=lasts, diverged=diverged)
                    noted = time.monotonic()
            for unit, (state, _) in zip(group, carries):
                first, stop = units.range(unit)
                lost = ~np.all(np.isfinite(np.asarray(state)[: stop - first]), axis=1)
                diverged += (first + np.flatnonzero(lost)).tolist()
            store.keep(unit=group[-1] + 1, call=0, diverged=diverged)
    store.finish(diverged)
    return np.array(diverged)


def _left(store: "Store", units: Units, tick: progress.Advance) -> Iterator[tuple[range, int, list[Carry]]]:
    """Yield groups of units that are left, the first perhaps from the middle of its paths on."""
    first, call = int(store.done.get("unit", 0)), int(store.done.get("call", 0))
    tick(first * units.calls)
    if call:
        states, lasts = store.done["states"], store.done["lasts"]
        group = range(first, first + len(states))
        tick(len(group) * call)
        yield group, call, [units.place(unit, *kept) for unit, *kept in zip(group, states, lasts)]
        first = group.stop
    while first < units.count:
        group = range(first, min(first + count_cores(), units.count))
        yield group, 0, [units.start(unit) for unit in group]
        first = group.stop


def _advance(
    store: "Store", units: Units, writer: _Writer, group: range, carries: list[Carry], calls: range
) -> list[Carry]:
    """Run some calls and write what they saved, after the state from which they began: the last is left to the next."""
    sizes = [stop - first for first, stop in map(units.range, group)]
    saved = [[np.asarray(state)[None, :size]] for (state, _), size in zip(carries, sizes)]
    for call in calls:
        found = on_all_cores(units.run, group, carries, [call] * len(group))
        carries = [carry for carry, _ in found]
        for kept, (_, part) in zip(saved, found):
            kept.append(part)
    sample = calls.start * units.per_call
    end = store.layout.samples if calls.stop == units.calls else calls.stop * units.per_call
    for unit, kept in zip(group, saved):
        writer.write(store, np.concatenate(kept)[: end - sample], units.range(unit)[0], sample)
    return carries
