"""One good file per format, cut at many places and with flipped bits: it is read, or refused in one sentence."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import xarray as xr

import effective_langevin as el

from ..robustness import Case

SAMPLES, CUTS = 300, 30
_ENDS = 600  # bytes at both ends of a file, where its structure is noted


def sample() -> tuple[np.ndarray, np.ndarray]:
    """Return a small series (time, 2) and its times."""
    rng = np.random.default_rng(0)
    return np.cumsum(rng.normal(size=(SAMPLES, 2)), axis=0) / 10, 0.1 * np.arange(SAMPLES)


def _write_npy(folder: Path, x: np.ndarray, _: np.ndarray) -> None:
    np.save(folder / "a.npy", x)


def _write_npz(folder: Path, x: np.ndarray, _: np.ndarray) -> None:
    np.savez(folder / "plain.npz", x=x, dt=0.1, variables=np.array(["T", "h"]))
    np.savez_compressed(folder / "packed.npz", x=x, dt=0.1, variables=np.array(["T", "h"]))


def _write_csv(folder: Path, x: np.ndarray, times: np.ndarray) -> None:
    np.savetxt(folder / "a.csv", np.c_[times, x], delimiter=",", header="time,T [K],h", comments="")


def _write_h5(folder: Path, x: np.ndarray, _: np.ndarray) -> None:
    with h5py.File(folder / "plain.h5", "w") as file:
        file["x"], file["dt"] = x, 0.1
        file.create_dataset("variables", data=["T", "h"])
        file["x"].attrs["units"] = "K"
    with h5py.File(folder / "packed.h5", "w") as file:
        file.create_dataset("x", data=x, chunks=(50, 2), compression="gzip")
        file["dt"] = 0.1


def _as_dataset(x: np.ndarray, times: np.ndarray) -> xr.Dataset:
    columns = {"T": ("time", x[:, 0], {"units": "K"}), "h": ("time", x[:, 1])}
    return xr.Dataset(columns, {"time": ("time", times, {"units": "days since 2000-01-01"})})


def _write_nc(folder: Path, x: np.ndarray, times: np.ndarray) -> None:
    _as_dataset(x, times).to_netcdf(folder / "a.nc", engine="h5netcdf")


def _write_nc3(folder: Path, x: np.ndarray, times: np.ndarray) -> None:
    _as_dataset(x, times).to_netcdf(folder / "a.nc", engine="scipy", format="NETCDF3_CLASSIC")


def _write_zarr(folder: Path, x: np.ndarray, times: np.ndarray) -> None:
    _as_dataset(x, times).to_zarr(folder / "a.zarr", consolidated=False)


def _write_parquet(folder: Path, x: np.ndarray, times: np.ndarray) -> None:
    pd.DataFrame({"time": times, "T": x[:, 0], "h": x[:, 1]}).to_parquet(folder / "a.parquet")


def _damage(raw: bytes, k: int, cuts: int, rng: np.random.Generator) -> bytes:
    """Cut the first copies, and flip one or eight bytes or bits of the others, half of them near an end."""
    if k < cuts or not raw:
        return raw[: len(raw) * k // cuts]
    out = bytearray(raw)
    for _ in range(1 if k % 3 else 8):
        near = rng.random() < 0.5
        place = int(rng.integers(min(_ENDS, len(out)) if near else len(out)))
        place = len(out) - 1 - place if near and rng.random() < 0.3 else place
        out[place] ^= 1 << int(rng.integers(8)) if k % 2 else int(rng.integers(1, 256))
    return bytes(out)


def _copies(source: Path, folder: Path, count: int, rng: np.random.Generator) -> Iterator[Path]:
    """Yield damaged copies of a file, or of a store in which one file is damaged."""
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
    for k in range(count):
        copy = folder / f"bad{source.suffix}"
        if source.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy)
        hurt = files[k % len(files)]
        target = copy / hurt.relative_to(source) if source.is_dir() else copy
        target.write_bytes(_damage(hurt.read_bytes(), k, min(CUTS, count // 4), rng))
        yield copy


def _read(path: Path) -> None:
    """Read a file; what comes must be a series of both variables, and not much longer than the one that was written."""
    series = el.read(path, dt=0.1 if path.suffix == ".npy" else None, missing=[])
    assert series.n_samples + series.dropped <= 2 * SAMPLES * SAMPLES, f"{series!r} from a file of {SAMPLES} rows"
    assert series.dimension == 2 or path.suffix == ".csv", f"{series!r} from a file of two variables"
    assert np.isfinite(series.stacked()).all()


def _corrupt(write: Callable[[Path, np.ndarray, np.ndarray], None], folder: Path, count: int) -> Iterator[Case]:
    good = folder / "good"
    good.mkdir(exist_ok=True)
    write(good, *sample())
    sources = sorted(good.iterdir())
    rng = np.random.default_rng(1)
    for source in sources:
        yield Case(f"{source.name} as it is", partial(_read, source), "right")
        for k, path in enumerate(_copies(source, folder, -(-count // len(sources)), rng)):
            yield Case(f"{source.name} {k}", partial(_read, path))


npy = partial(_corrupt, _write_npy)
npz = partial(_corrupt, _write_npz)
csv = partial(_corrupt, _write_csv)
h5 = partial(_corrupt, _write_h5)
nc = partial(_corrupt, _write_nc)
nc3 = partial(_corrupt, _write_nc3)
zarr = partial(_corrupt, _write_zarr)
parquet = partial(_corrupt, _write_parquet)
