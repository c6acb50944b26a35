"""Named arrays: .npz, .npy and HDF5 files, dictionaries and bare arrays.

The samples are the array `x` (or `values`, `data`, `samples`), (time, var) or (member, time, var), or the arrays named
in `variables`. Beside them may stand `dt`, `dt_unit` or `time_unit`, `time`, `variables` or `names`, and `units`.
"""

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from ..series import check_orientation
from .clock import Stamps, is_stamp_like
from .records import ReadOptions, Record, find_time

_MAIN = ("x", "values", "data", "samples")
_NOTES = {"dt": ("dt",), "dt_unit": ("dt_unit", "time_unit"), "names": ("variables", "names"), "units": ("units",),
          "periods": ("angle_periods",)}  # fmt: skip
_NO_MEMBER = "the first of three axes counts the members."


def read_numpy(path: Path, options: ReadOptions) -> list[Record]:
    """Read a .npy file, whose `dt` or stamps come from the caller, or the named arrays of a .npz file."""
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            with loaded:
                loaded = {name: loaded[name] for name in loaded}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error):
            raise DataError(
                f"{path} is not a numpy file, or holds Python objects, which are not read: save plain arrays."
            ) from error
        raise DataError(f"{path} is not a readable numpy file: {error}.") from error
    return (from_array if isinstance(loaded, np.ndarray) else from_mapping)(loaded, str(path), options)


def read_hdf5(path: Path, options: ReadOptions) -> list[Record]:
    """Datasets by their full name ("run/x"); units from their attribute, `dt` also from an attribute of the file."""
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError(f"{path} is not a readable HDF5 file: {error}.") from error
    with file:
        found: dict[str, Any] = {}
        file.visititems(lambda name, node: found.update({name: node}) if isinstance(node, h5py.Dataset) else None)
        units = {name: _text(node.attrs["units"]) for name, node in found.items() if "units" in node.attrs}
        notes = {k: _decoded(np.asarray(v)) for k, v in file.attrs.items() if any(k in n for n in _NOTES.values())}
        try:
            return from_mapping({**notes, **found}, str(path), options, units)
        except OSError as error:
            raise DataError(f"{path} is damaged: {error}.") from error


def from_mapping(
    arrays: Mapping[str, Any], where: str, options: ReadOptions, units: Mapping[str, str] | None = None
) -> list[Record]:
    """Records of named arrays; `units` are units by the name of the array."""
    units = dict(units or {})
    notes = {note: _note(arrays, keys) for note, keys in _NOTES.items()}
    time = find_time(options, list(arrays), where)
    reserved = {time, *(key for keys in _NOTES.values() for key in keys)}
    candidates = {n: a for n, a in arrays.items() if n not in reserved and np.ndim(a) > 0 and a.dtype.kind in "fiubc"}
    labels = None if notes["names"] is None else [str(n) for n in np.atleast_1d(notes["names"])]
    chosen, columns = _chosen(candidates, labels, where, options)
    values = _side_by_side({n: np.asarray(candidates[n]) for n in chosen}, where)
    if values.ndim == 2 and len(chosen) == 1 and labels is None:
        check_orientation([values], named=False)
    names, unit_list = _described(chosen, values.shape[-1], labels, notes["units"], units, candidates)
    periods = _periods(notes["periods"], len(names), where)
    if columns is not None:
        values = values[..., columns]
        names, unit_list, periods = ([label[c] for c in columns] for label in (names, unit_list, periods))
    stamps = None if time is None else Stamps(_decoded(np.asarray(arrays[time])), time, units.get(time, ""))
    if is_stamp_like(options.time):
        stamps = Stamps(np.asarray(options.time))
    dt = None if notes["dt"] is None else _stated_dt(notes["dt"], where)
    unit = "" if notes["dt_unit"] is None else _text(notes["dt_unit"])
    whole = Record(values, where, tuple(names), tuple(unit_list), tuple(periods), stamps, dt, unit)
    return _as_records(values, where, whole)


def from_array(values: Any, where: str, options: ReadOptions) -> list[Record]:
    """Records of a bare array: (time,), (time, var) or (member, time, var)."""
    checks.not_given("variables", options.variables, f"{where} has no names to pick from. Name them with `names`.")
    checks.not_given("member", options.member, _NO_MEMBER)
    array = checks.real_samples(values, f"The data of {where}")
    stamps = Stamps(np.asarray(options.time)) if is_stamp_like(options.time) else None
    if isinstance(options.time, str):
        checks.known_names("time", options.time, [], where)
    array = array[:, None] if array.ndim == 1 else array
    return _as_records(array, where, Record(array, where, stamps=stamps))


def _as_records(values: np.ndarray, where: str, whole: Record) -> list[Record]:
    """One record, or one per member of a three-axis array."""
    if values.ndim == 2:
        return [whole]
    if values.ndim != 3:
        raise DataError(
            f"The data of {where} have {values.ndim} axes; they must be (time,), (time, var) or (member, time, var)."
        )
    return [replace(whole, values=member, where=f"{where} (member {i})") for i, member in enumerate(values)]


def _chosen(
    candidates: Mapping[str, Any], labels: list[str] | None, where: str, options: ReadOptions
) -> tuple[list[str], list[int] | None]:
    """The arrays that hold the samples, and the columns of them that were asked for (None: all)."""
    checks.not_given("member", options.member, _NO_MEMBER)
    main = next((n for n in _MAIN if n in candidates), None)
    if options.variables is not None:
        if main is not None and labels is not None and set(options.variables) <= set(labels):
            return [main], [labels.index(v) for v in options.variables]
        known = [*candidates, *(labels or [])]
        wanted = checks.known_names("variables", options.variables, known, where)
        return list(checks.known_names("variables", wanted, candidates, where)), None
    if main is not None:
        return [main], None
    lengths = {np.shape(a)[0] for a in candidates.values() if np.ndim(a) == 1}
    if len(candidates) == 1 or (len(lengths) == 1 and all(np.ndim(a) == 1 for a in candidates.values())):
        return list(candidates), None
    shapes = ", ".join(f"{n} {tuple(np.shape(a))}" for n, a in candidates.items())
    raise DataError(
        f"{where} has no array called x, and it is not clear which arrays are the samples. "
        + (f"It holds: {shapes}. Pick with variables=[...]." if shapes else "It holds no array of numbers.")
    )


def _side_by_side(arrays: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """Arrays as the columns of one; a single array is taken as it is."""
    blocks = [a[:, None] if a.ndim == 1 else a for a in arrays.values()]
    if len({b.shape[:-1] for b in blocks}) > 1:
        shapes = ", ".join(f"{n} {a.shape}" for n, a in arrays.items())
        raise DataError(f"The arrays of {where} differ in length and cannot be the columns of one series: {shapes}.")
    for name, block in arrays.items():
        checks.real_samples(block[:0], f"Array {name!r} of {where}")
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=-1)


def _described(
    chosen: list[str], width: int, labels: list[str] | None, noted: Any, units: Mapping[str, str], arrays: Mapping
) -> tuple[list[str], list[str]]:
    """Names and units, one per column: as noted beside a main array, otherwise from the names of the arrays."""
    widths = [1 if np.ndim(arrays[n]) == 1 else np.shape(arrays[n])[-1] for n in chosen]
    keys = [key for key, count in zip(chosen, widths) for _ in range(count)]
    numbered = [f"{n}{i + 1}" if w > 1 else n for n, w in zip(chosen, widths) for i in range(w)]
    names = labels if len(chosen) == 1 and labels is not None and len(labels) == width else numbered
    beside = [] if noted is None else [_text(u) for u in np.atleast_1d(noted)]
    return names, beside if len(beside) == width else [units.get(k, "") for k in keys]


def _note(arrays: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((_decoded(np.asarray(arrays[k])) for k in keys if k in arrays), None)


def _periods(noted: Any, width: int, where: str) -> list[float | None]:
    """The periods noted beside the samples, NaN or 0 for a variable that is not an angle."""
    if noted is None:
        return [None] * width
    if np.shape(noted) != (width,) or noted.dtype.kind not in "fiu":
        raise DataError(f"`angle_periods` in {where} must be {width} numbers, NaN for a variable that is not an angle.")
    return [float(period) if period > 0 else None for period in noted]


def _stated_dt(value: Any, where: str) -> float:
    if np.size(value) != 1 or np.asarray(value).dtype.kind not in "fiu" or not 0 < np.asarray(value).item() < np.inf:
        raise DataError(f"`dt` in {where} is {value!r}; it must be one positive number. Pass `dt` and repair the file.")
    return float(np.asarray(value).item())


def _decoded(array: np.ndarray) -> np.ndarray:
    """Byte strings, as HDF5 stores them, as text."""
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], bytes):
        array = array.astype("S")
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _text(value: Any) -> str:
    return str(_decoded(np.asarray(value)).reshape(-1)[0])
