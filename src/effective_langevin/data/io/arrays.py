"""Named arrays: .npz, .npy and HDF5 files, dictionaries and bare arrays.

The samples are the array `x` (or `values`, `data`, `samples`), (time, var) or (member, time, var), or the arrays named
in `variables`. Beside them may stand `dt`, `dt_unit` or `time_unit`, `time`, `variables` or `names`, and `units`.
"""

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from ..._core import checks
from ..._core.errors import DataError
from ..segments import check_orientation
from ..series import Label
from .by_blocks import by_blocks, stored_records
from .records import ReadOptions, Record, find_time, unit_in_name
from .times import Stamps

_MAIN = ("x", "values", "data", "samples")
_NOTES = {"dt": ("dt",), "dt_unit": ("dt_unit", "time_unit"), "names": ("variables", "names"), "units": ("units",),
          "periods": ("angle_periods",)}  # fmt: skip
_PACKING = ("_FillValue", "missing_value", "scale_factor", "add_offset")
_NOTE_KEYS = {key for keys in _NOTES.values() for key in keys}


def read_numpy(path: Path, options: ReadOptions) -> list[Record]:
    """Read a .npy file, whose `dt` or stamps come from the caller, or the named arrays of a .npz file."""
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            with zipfile.ZipFile(file) as archive:
                return from_mapping(_open_members(archive), str(path), options)
        file.seek(0)
        shape, dtype = _read_header(file, path.stat().st_size)
        if options.chunks is not None and len(shape) < 4 and dtype.kind in "fiub":
            array = np.load(path, mmap_mode="r")
            if by_blocks(options, [array]):
                checks.not_given("variables", options.variables, f"{path} has no names to pick from.")
                return stored_records(Record(array, str(path)), path, "", array, options)
        checks.fits_in_memory(math.prod(shape) * dtype.itemsize, str(path))
        file.seek(0)
        return from_array(np.lib.format.read_array(file, allow_pickle=False), str(path), options)


@dataclass(frozen=True)
class _Member:
    """An array of a .npz file, which is read when it is needed."""

    archive: zipfile.ZipFile
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        with self.archive.open(self.name) as file:
            _read_header(file, self.archive.getinfo(self.name).file_size)
        with self.archive.open(self.name) as file:
            return np.lib.format.read_array(file, allow_pickle=False)


def _open_members(archive: zipfile.ZipFile) -> dict[str, _Member]:
    names = [name for name in archive.namelist() if name.endswith(".npy")]
    checks.distinct("arrays", names)
    members = {}
    for name in names:
        with archive.open(name) as file:
            members[name.removesuffix(".npy")] = _Member(archive, name, *_read_header(file))
    return members


def _read_header(file: Any, size: float = np.inf) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and type of an array; refuse Python objects, and more numbers than `size` bytes can hold."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise DataError(f"{file.name} holds Python objects, which are not read: save plain arrays.")
    if math.prod(shape) * dtype.itemsize > size or min(shape, default=0) < 0:
        raise ValueError(f"its header announces {shape} numbers, and it has {size} bytes")
    return shape, dtype


def read_hdf5(path: Path, options: ReadOptions) -> list[Record]:
    """Read datasets by their full name ("run/x"); units are attributes, notes may be attributes of the file."""
    with h5py.File(path, "r") as file:
        found = find_datasets(file)
        noted = {name: _decode(node.attrs["units"]) for name, node in found.items() if "units" in node.attrs}
        units = {name: str(unit[0]) for name, unit in noted.items() if len(unit)}
        notes = {key: np.asarray(value) for key, value in file.attrs.items() if key in _NOTE_KEYS}
        return from_mapping({**notes, **{n: _decoded(node) for n, node in found.items()}}, str(path), options, units)


def find_datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return the datasets of an open HDF5 file by name; refuse one whose numbers lie in another file."""
    found: dict[str, Any] = {}
    links: dict[str, Any] = {}
    file.visititems(lambda name, node: found.update({name: node}) if isinstance(node, h5py.Dataset) else None)
    file.visititems_links(lambda name, link: links.update({name: link}))
    places = [(name, link.filename) for name, link in links.items() if isinstance(link, h5py.ExternalLink)]
    for name, node in found.items():
        places += [(name, path) for path, *_ in node.external or ()]
        places += [(name, source.file_name) for source in (node.virtual_sources() if node.is_virtual else ())]
    for name, path in places:
        if path != ".":
            raise DataError(f"{name} of {file.filename} lies in another file, {path}, which is not read. Copy it.")
    return found


def _decoded(node: Any) -> Any:
    """Return a dataset as it is, or decoded where it notes a fill value, scale or offset (CF conventions)."""
    attrs = {k: np.asarray(node.attrs[k]).reshape(-1)[0] for k in _PACKING if k in node.attrs}
    if not attrs or node.dtype.kind not in "fiu":
        return node
    checks.fits_in_memory(node.nbytes, f"{node.name} of {node.file.filename}")
    packed = xr.Dataset({"x": ([f"axis{i}" for i in range(node.ndim)], node[()], attrs)})
    return xr.decode_cf(packed, decode_times=False)["x"].values


def from_array(values: Any, where: str, options: ReadOptions) -> list[Record]:
    """Return the records of a bare array: (time,), (time, var) or (member, time, var)."""
    checks.not_given("variables", options.variables, f"{where} has no names to pick from. Name them with `names`.")
    array = checks.real_samples(values, f"The data of {where}")
    record = Record(array[:, None] if array.ndim == 1 else array, where, stamps=options.stamps)
    if isinstance(options.time, str):  # a column by its number: x3
        columns = [f"x{i + 1}" for i in range(array.shape[-1])] if array.ndim == 2 else []
        column = columns.index(checks.known_names("time", options.time, columns, where)[0])
        record = replace(record, values=np.delete(array, column, 1), stamps=Stamps(array[:, column], options.time))
    return _split_members(record, options)


def from_mapping(
    arrays: Mapping[str, Any], where: str, options: ReadOptions, units: Mapping[str, str] | None = None
) -> list[Record]:
    """Return the records of named arrays; `units` holds units by the name of the array."""
    units = units or {}
    notes = {note: next((_decode(arrays[k]) for k in keys if k in arrays), None) for note, keys in _NOTES.items()}
    time = find_time(options, arrays, where)
    reserved = {time, *_NOTE_KEYS}
    candidates = {n: a for n, a in arrays.items() if n not in reserved and np.ndim(a) > 0 and a.dtype.kind in "fiubc"}
    names = None if notes["names"] is None else list(checks.distinct("names", [str(n) for n in notes["names"]]))
    chosen, by_column = _choose(candidates, names, where, options)
    stored = _stays_in_file(candidates, chosen, by_column, options)
    if not stored:
        checks.fits_in_memory(8.0 * sum(math.prod(np.shape(candidates[n])) for n in chosen), f"The samples of {where}")
    blocks = {n: np.asarray(checks.unmasked(candidates[n][..., :2, :] if stored else candidates[n])) for n in chosen}
    blocks = {n: a[:, None] if a.ndim == 1 else a for n, a in blocks.items()}
    values = _concatenate(blocks, where)
    if values.ndim == 2 and len(chosen) == 1 and names is None and not stored:
        check_orientation([values], named=False)
    labels = _label(blocks, notes, names, units, where)
    stamps = options.stamps
    if stamps is None and time is not None:
        stamps = Stamps(_decode(arrays[time], flat=False), time, units.get(time) or unit_in_name(time))
    dt_unit = "" if notes["dt_unit"] is None or not len(notes["dt_unit"]) else str(notes["dt_unit"][0])
    dt = notes["dt"]
    if dt is not None and (len(dt) != 1 or dt.dtype.kind not in "fiu" or not 0 < dt[0] < np.inf):
        raise DataError(f"`dt` in {where} is {dt!r}; it must be one positive number. Correct the file.")
    record = Record(values, where, labels, stamps, None if dt is None else float(dt[0]), dt_unit)
    if stored:
        checks.not_given("time", stamps and stamps.name, "arrays that are read by blocks are spaced by `dt`.")
        only = candidates[chosen[0]]
        return stored_records(record, Path(only.file.filename), str(only.name), only, options)
    return _split_members(record.pick(options.variables) if by_column else record, options)


def _stays_in_file(arrays: Mapping[str, Any], chosen: list[str], by_column: bool, options: ReadOptions) -> bool:
    """Tell whether the samples are one array of an HDF5 file that is read by blocks."""
    only = arrays[chosen[0]]
    simple = len(chosen) == 1 and not by_column and isinstance(only, h5py.Dataset) and only.ndim in (2, 3)
    if options.chunks is not None and not simple and by_blocks(options, [arrays[n] for n in chosen]):
        raise DataError("`chunks` needs the samples in one array (time, var) of the file.")
    return options.chunks is not None and simple and by_blocks(options, [only])


def _split_members(record: Record, options: ReadOptions) -> list[Record]:
    """Return one record, or one for each member of (member, time, var) values."""
    checks.not_given("member", options.member, "the first of three axes counts the members.")
    if record.values.ndim == 2:
        return [record]
    if record.values.ndim != 3:
        raise DataError(
            f"The data of {record.where} have {record.values.ndim} axes; they must be (time,), (time, var) or "
            "(member, time, var)."
        )
    if not record.values.size:
        raise DataError(f"The data of {record.where} are empty: their shape is {record.values.shape}.")
    members = enumerate(record.values)
    return [replace(record, values=values, where=f"{record.where} (member {i})") for i, values in members]


def _choose(
    candidates: Mapping[str, Any], names: list[str] | None, where: str, options: ReadOptions
) -> tuple[list[str], bool]:
    """Choose the arrays that hold the samples; tell whether `variables` names columns of them."""
    main = next((n for n in _MAIN if n in candidates), None)
    by_column = options.variables is not None and main is not None and set(options.variables) <= set(names or ())
    if options.variables is not None and not by_column:
        checks.known_names("variables", options.variables, [*candidates, *(names or [])], where)
        return list(checks.known_names("variables", options.variables, candidates, where)), False
    shapes = {n: np.shape(a) for n, a in candidates.items()}
    if main is not None and len(shapes[main]) > 1:
        return [main], by_column
    if main is not None:  # x beside y and z of its length
        return [n for n, shape in shapes.items() if shape == shapes[main]], by_column
    if len(shapes) == 1 or (len(set(shapes.values())) == 1 and all(len(shape) == 1 for shape in shapes.values())):
        return list(shapes), False
    listed = ", ".join(f"{n} {shape}" for n, shape in shapes.items())
    raise DataError(
        f"{where} has no array called x, and it is not clear which arrays are the samples. "
        + (f"It holds: {listed}. Pick with variables=[...]." if listed else "It holds no array of numbers.")
    )


def _concatenate(blocks: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """Return arrays as the columns of one."""
    if len({b.shape[:-1] for b in blocks.values()}) > 1:
        shapes = ", ".join(f"{n} {b.shape}" for n, b in blocks.items())
        raise DataError(f"The arrays of {where} differ in length and cannot be the columns of one series: {shapes}.")
    for name, block in blocks.items():
        checks.real_samples(block[:0], f"Array {name!r} of {where}")
    first, *others = blocks.values()
    return np.concatenate([first, *others], axis=-1) if others else first


def _label(
    blocks: Mapping[str, np.ndarray], notes: Mapping[str, Any], names: list[str] | None, units: Mapping, where: str
) -> list[Label]:
    """Label the columns: as noted beside a single array, otherwise by the names of the arrays."""
    keys = [key for key, block in blocks.items() for _ in range(block.shape[-1])]
    numbered = [f"{n}{i + 1}" if b.shape[-1] > 1 else n for n, b in blocks.items() for i in range(b.shape[-1])]
    if names is not None and len(blocks) == 1 and len(names) != len(keys):
        raise DataError(f"{where} names {len(names)} variables, but its array has {len(keys)} columns.")
    if names is None or len(blocks) > 1:
        names = numbered
    noted = [] if notes["units"] is None else [str(unit) for unit in notes["units"]]
    noted = noted if len(noted) == len(keys) else [units.get(key, "") for key in keys]
    periods = np.zeros(len(keys)) if notes["periods"] is None else notes["periods"]
    if periods.shape != (len(keys),) or periods.dtype.kind not in "fiu":
        raise DataError(
            f"`angle_periods` in {where} must be {len(keys)} numbers, NaN for a variable that is not an angle."
        )
    return [(n, unit, float(period) if period > 0 else None) for n, unit, period in zip(names, noted, periods)]


def _decode(value: Any, flat: bool = True) -> np.ndarray:
    """Return an array, of one axis or as it is; byte strings, as HDF5 stores them, become text."""
    array = np.asarray(value)
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], bytes):
        array = array.astype("S")
    array = np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
    return array.reshape(-1) if flat else array
