"""Files made by hand to break a reader: pickles, bombs, absurd headers, odd shapes and times, pipes and devices."""

import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

import effective_langevin as el

from ..robustness import Case
from .corruption import SAMPLES, sample

X, T = sample()
Make = Callable[[Path], Any]


class Marked:
    """An object whose pickle writes a file when it is loaded."""

    def __reduce__(self) -> tuple:
        return os.system, ("touch EXECUTED",)


def header(shape: tuple[int, ...], values: np.ndarray = X) -> bytes:
    """Return a .npy file whose header announces another shape than it holds."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue() + values.tobytes()


def npy(values: Any) -> Make:
    return lambda path: np.save(path, values, allow_pickle=True)


def npz(**arrays: Any) -> Make:
    return lambda path: np.savez(path, **arrays)


def content(raw: bytes | str) -> Make:
    return lambda path: path.write_bytes(raw.encode() if isinstance(raw, str) else raw)


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Make:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", compression) as file:
            for name, raw in members.items():
                file.writestr(name, raw)

    return make


def repeated_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for values in (X, 1000 + X):
            file.writestr("x.npy", header(X.shape, values))


def encrypted(path: Path) -> None:
    np.savez(path, x=X)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x03\x04") + 6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)


def bomb(path: Path) -> None:
    """32 MB of zeros in 32 kB, with a header that announces 8 GB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("x.npy", "w", force_zip64=True) as out:
        out.write(header((10**9, 1), X[:0]))
        for _ in range(8):
            out.write(bytes(1 << 22))


def hdf5(fill: Callable[[h5py.File], Any]) -> Make:
    def make(path: Path) -> None:
        with h5py.File(path, "w") as file:
            fill(file)
            file.attrs["dt"] = 0.1

    return make


def fill_from_elsewhere(file: h5py.File) -> None:
    secret = Path(file.filename).with_name("secret.txt")
    secret.write_bytes(b"not for the reader " * 20)
    file.create_dataset("x", shape=(300, 1), dtype="u1", external=[(str(secret), 0, 300)])


def netcdf_from_elsewhere(file: h5py.File) -> None:
    fill_from_elsewhere(file)
    file["time"] = T
    file["time"].make_scale("time")
    file["x"].dims[0].attach_scale(file["time"])


def map_from_elsewhere(file: h5py.File) -> None:
    other = Path(file.filename).with_name("other.h5")
    with h5py.File(other, "w") as source:
        source["x"] = X
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(other, "x", X.shape)
    file.create_virtual_dataset("x", layout)


def link_elsewhere(file: h5py.File) -> None:
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as source:
        source["x"] = X
    file["x"] = h5py.ExternalLink("other.h5", "/x")


def netcdf_link(file: h5py.File) -> None:
    link_elsewhere(file)
    file["h"], file["time"] = X[:, 0], T
    file["time"].make_scale("time")
    file["h"].dims[0].attach_scale(file["time"])


def circular(file: h5py.File) -> None:
    group = file.create_group("g")
    group["loop"], group["hard"], file["x"] = h5py.SoftLink("/g"), file["/"], X


def announce(file: h5py.File) -> None:
    file.create_dataset("x", (10**11, 2), "f8", chunks=(1000, 2))


def with_units(units: Any) -> Make:
    def fill(file: h5py.File) -> None:
        file["x"] = X
        file["x"].attrs["units"] = units

    return hdf5(fill)


def huge_dimension(file: h5py.File) -> None:
    time, values = (file.create_dataset(n, shape=(10**10,), dtype="f8", chunks=(1000,)) for n in ("time", "T"))
    time.make_scale("time")
    values.dims[0].attach_scale(time)


def netcdf(path: Path) -> None:
    xr.Dataset({"T": ("time", X[:, 0])}, {"time": T}).to_netcdf(path, engine="scipy")


def zarr_without(lost: str, raw: bytes | None = None) -> Make:
    """Return how to write a store of which one file is lost or replaced."""

    def make(path: Path) -> None:
        xr.Dataset({"T": ("time", X[:, 0]), "h": ("time", X[:, 1])}, {"time": T}).to_zarr(path, consolidated=False)
        target = path / lost
        target.write_bytes(raw) if raw is not None else target.unlink()

    return make


def same(dt: float = 0.1, values: np.ndarray = X, tolerance: float = 1e-6) -> Callable[[el.TimeSeries], None]:
    """Return a check that a series holds these values at this interval."""

    def check(series: el.TimeSeries) -> None:
        found = series.stacked()
        assert found.shape == values.shape, f"{series!r} where {values.shape} was written"
        assert np.abs(found - values).max() <= tolerance, f"values differ by {np.abs(found - values).max():.3g}"
        assert abs(series.dt / dt - 1) < 1e-6, f"dt is {series.dt}, not {dt}"

    return check


GAP = np.where(np.arange(SAMPLES) < 150, 0, 900_000) + np.arange(SAMPLES)
WIDE = {"x": np.tile(X, (1, 150)), "time": GAP, "names": [f"v{i}" for i in range(300)]}
LATER = T + np.where(np.arange(SAMPLES) < 150, 0, 1e9)
BACKWARDS = np.arange(SAMPLES, 0, -1).astype("u8")
INFINITE = np.where(np.arange(SAMPLES) == 5, np.inf, T)

# file name, how to make it, arguments of `read` beside it; each must be refused.
REFUSED: dict[str, tuple[str, Make, dict[str, Any]]] = {
    "npy with a pickle": ("a.npy", npy(np.array([Marked(), 1], dtype=object)), {"dt": 0.1}),
    "npz with a pickle": ("a.npz", npz(x=np.array([[Marked(), 1]], dtype=object)), {"dt": 0.1}),
    "pickle called npy": ("a.npy", content(pickle.dumps(Marked())), {"dt": 0.1}),
    "npy that announces 16 TB": ("a.npy", content(header((10**12, 2))), {"dt": 0.1}),
    "npy whose size overflows": ("a.npy", content(header((2**62, 2**62))), {"dt": 0.1}),
    "npy of negative size": ("a.npy", content(header((-5, 2))), {"dt": 0.1}),
    "npy with 10 MB of header": (
        "a.npy",
        content(b"\x93NUMPY\x02\x00" + struct.pack("<I", 10**7) + b" " * 10**7),
        {"dt": 0.1},
    ),
    "npy with a nested header": (
        "a.npy",
        content(b"\x93NUMPY\x01\x00" + struct.pack("<H", 10_001) + b"(" * 5000 + b")" * 5000 + b"\n"),
        {"dt": 0.1},
    ),
    "npz that announces 16 TB": ("a.npz", archive({"x.npy": header((10**12, 2))}), {"dt": 0.1}),
    "npz bomb": ("a.npz", bomb, {"dt": 0.1}),
    "encrypted npz": ("a.npz", encrypted, {"dt": 0.1}),
    "npz with a member twice": ("a.npz", repeated_member, {"dt": 0.1}),
    "empty npz": ("a.npz", npz(), {"dt": 0.1}),
    "records with names": ("a.npz", npz(x=np.zeros(300, dtype=[("T", "f8"), ("h", "f8")])), {"dt": 0.1}),
    "two dt": ("a.npz", npz(x=X, dt=[0.1, 0.2]), {}),
    "dt is NaN": ("a.npz", npz(x=X, dt=np.nan), {}),
    "dt is a text": ("a.npz", npz(x=X, dt="0.1"), {}),
    "a number for an array": ("a.npz", npz(x=3.0), {"dt": 0.1}),
    "four axes": ("a.npz", npz(x=np.zeros((2, 2, 50, 2))), {"dt": 0.1}),
    "no rows": ("a.npz", npz(x=np.zeros((0, 2))), {"dt": 0.1}),
    "no columns": ("a.npz", npz(x=np.zeros((10, 0))), {"dt": 0.1}),
    "no members": ("a.npz", npz(x=np.zeros((0, 100, 2))), {"dt": 0.1}),
    "members without rows": ("a.npz", npz(x=np.zeros((3, 0, 2))), {"dt": 0.1}),
    "time of two axes": ("a.npz", npz(x=X, time=np.c_[T, T]), {}),
    "time without an axis": ("a.npz", npz(x=X, time=3.0), {}),
    "time without an axis, joined": ("a.npz", npz(x=X, time=3.0), {"join": True}),
    "complex times": ("a.npz", npz(x=X, time=T + 0j), {}),
    "times as texts of numbers": ("a.npz", npz(x=X, time=T.astype(str)), {}),
    "an infinite time": ("a.npz", npz(x=X, time=INFINITE), {}),
    "times that overflow": ("a.npz", npz(x=X, time=np.linspace(-0.9, 0.9, SAMPLES) * 1.79e308), {}),
    "steps of 1e-300": ("a.npz", npz(x=X, time=np.arange(SAMPLES) * 1e-300), {}),
    "a gap of 1e10 steps": ("a.npz", npz(x=X, time=LATER), {}),
    "a gap of 900 000 steps in 300 variables": ("a.npz", npz(**WIDE), {}),
    "resampling to 1e-9": ("a.npz", npz(x=X, time=T), {"resample": 1e-9}),
    "resampling to 1e9": ("a.npz", npz(x=X, time=T), {"resample": 1e9}),
    "dates for values": ("a.npy", npy(np.arange(300).astype("M8[s]")[:, None]), {"dt": 0.1}),
    "texts for values": ("a.npy", npy(X.astype("U")), {"dt": 0.1}),
    "csv called npy": ("a.npy", content("time,a\n1,2\n3,4\n"), {"dt": 0.1}),
    "npz called csv": ("a.csv", npz(x=X), {"dt": 0.1}),
    "csv called nc": ("a.nc", content("time,a\n1,2\n"), {}),
    "NetCDF 3 called h5": ("a.h5", netcdf, {}),
    "no suffix": ("a", content("1,2\n3,4"), {"dt": 0.1}),
    "compressed csv": ("a.csv.gz", content(b"\x1f\x8b"), {"dt": 0.1}),
    "folder called csv": ("a.csv", lambda path: path.mkdir(), {}),
    "empty folder called zarr": ("a.zarr", lambda path: path.mkdir(), {}),
    "file called zarr": ("a.zarr", content("x"), {}),
    "zarr without one zarr.json": ("a.zarr", zarr_without("T/zarr.json"), {}),
    "zarr with a damaged zarr.json": ("a.zarr", zarr_without("T/zarr.json", b"{"), {}),
    "pipe": ("a.csv", lambda path: os.mkfifo(path), {}),
    "endless csv": ("a.csv", lambda path: path.symlink_to("/dev/zero"), {}),
    "endless npy": ("a.npy", lambda path: path.symlink_to("/dev/zero"), {"dt": 0.1}),
    "h5 with numbers of another file": ("a.h5", hdf5(fill_from_elsewhere), {}),
    "nc with numbers of another file": ("a.nc", hdf5(netcdf_from_elsewhere), {}),
    "h5 that maps another file": ("a.h5", hdf5(map_from_elsewhere), {}),
    "h5 that links to another file": ("a.h5", hdf5(link_elsewhere), {}),
    "nc that links to another file": ("a.nc", hdf5(netcdf_link), {}),
    "h5 that announces 1.6 TB": ("a.h5", hdf5(announce), {}),
    "nc that announces 80 GB": ("a.nc", hdf5(huge_dimension), {}),
    "h5 with a compound type": ("a.h5", hdf5(lambda f: f.update({"x": np.zeros(300, [("a", "f8"), ("b", "f8")])})), {}),
    "h5 without data": ("a.h5", hdf5(lambda f: f.update({"x": h5py.Empty("f8")})), {}),
    "h5 with x twice": ("a.h5", hdf5(lambda f: f.update({"a/x": X, "b/x": X + 100})), {}),
    **{f"empty {s}": (f"a.{s}", content(b""), {"dt": 0.1})
       for s in ("nc", "h5", "npz", "npy", "csv", "parquet", "tsv", "txt", "dat", "nc4", "cdf", "hdf5", "pq")},
}  # fmt: skip

# As above, with a check of the series that must come.
READ: dict[str, tuple[str, Make, dict[str, Any], Callable[[el.TimeSeries], None]]] = {
    "npz with a member outside": ("a.npz", archive({"../x.npy": header(X.shape)}), {"dt": 0.1}, same()),
    "npz with a bomb that nobody wants": (
        "a.npz",
        archive({"x.npy": header(X.shape), "other.npy": header((10**9, 1))}),
        {"dt": 0.1},
        same(),
    ),
    "npz with a text beside": ("a.npz", archive({"x.npy": header(X.shape), "a.txt": b""}), {"dt": 0.1}, same()),
    "a unit of dt without entries": ("a.npz", npz(x=X, dt=0.1, dt_unit=np.array([])), {}, same()),
    "numbers for units": ("a.npz", npz(x=X, dt=0.1, units=np.array([1, 2])), {}, same()),
    "names of two axes": ("a.npz", npz(x=X, dt=0.1, names=np.array([["a", "b"]])), {}, same()),
    "names in Latin-1": ("a.npz", npz(x=X, dt=0.1, names=np.array([b"\xe9t\xe9", b"b"])), {}, same()),
    "unsigned times that decrease": ("a.npz", npz(x=X, time=BACKWARDS), {}, same(1, X[::-1])),
    "whole times near 2^62": ("a.npz", npz(x=X, time=2**62 + np.arange(SAMPLES)), {}, same(1)),
    "half precision": ("a.npy", npy(X.astype("f2")), {"dt": 0.1}, same(tolerance=0.01)),
    "foreign byte order": ("a.npy", npy(X.astype(">f4")), {"dt": 0.1}, same()),
    "long double": ("a.npy", npy(X.astype("g")), {"dt": 0.1}, same()),
    "columns first": ("a.npy", npy(np.asfortranarray(X)), {"dt": 0.1}, same()),
    "a name with brackets": ("a[1].npy", npy(X), {"dt": 0.1}, same()),
    "h5 that contains itself": ("a.h5", hdf5(circular), {}, same()),
    "h5 with an empty unit": ("a.h5", with_units(h5py.Empty("f")), {}, same()),
    "h5 with no unit": ("a.h5", with_units(np.array([], dtype="S1")), {}, same()),
    "h5 with a unit in Latin-1": ("a.h5", with_units(np.bytes_(b"\xb0C")), {}, same()),
}  # fmt: skip


def _try(name: str, make: Make, options: dict[str, Any], check: Callable[[el.TimeSeries], None] | None) -> Any:
    def call(folder: Path) -> None:
        path = folder / name
        make(path)
        here = Path.cwd()
        os.chdir(folder)
        try:
            series = el.read(path, **options)
        finally:
            os.chdir(here)
            assert not (folder / "EXECUTED").exists(), "a pickle was executed"
        if check:
            check(series)

    return call


def cases(folder: Path, count: int) -> Iterator[Case]:
    """Yield every file of the two tables, each in a folder of its own."""
    table = {**{k: (*v, None) for k, v in REFUSED.items()}, **READ}
    for number, (case, (name, make, options, check)) in enumerate(table.items()):
        own = folder / str(number)
        own.mkdir(exist_ok=True)
        call = _try(name, make, options, check)
        yield Case(case, lambda call=call, own=own: call(own), "right" if check else "refused")
    for case, source in {"path with a null": "a\0b.csv", "path too long": "a" * 5000 + ".csv", "no path": ""}.items():
        yield Case(case, lambda source=source: el.read(source), "refused")
