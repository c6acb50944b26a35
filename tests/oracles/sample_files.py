"""The same small series in every format, and what it means for two series to be the same."""

import h5py
import numpy as np
import pandas as pd
import xarray as xr

NAMES, UNITS = ["T", "h"], ["K", "m"]
DT = 0.05


def awkward(length=200, width=2, seed=0):
    """Numbers whose last bits matter, of very different size."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(length, width)) * 10.0 ** rng.integers(-9, 9, (length, width))


def assert_same(a, b):
    """Bit for bit the same series, description included."""
    assert len(a.segments) == len(b.segments)
    for one, other in zip(a.segments, b.segments):
        np.testing.assert_array_equal(one, other, strict=True)
    for field in ("dt", "names", "units", "periods", "time_unit", "dropped", "starts", "records"):
        assert getattr(a, field) == getattr(b, field), field


def write_csv(path, values, time, header=True, time_header="time [s]"):
    rows = [",".join([repr(float(t)), *("" if np.isnan(v) else repr(float(v)) for v in row)])
            for t, row in zip(time, values)]  # fmt: skip
    top = [",".join([time_header, *(f"{n} [{u}]" for n, u in zip(NAMES, UNITS))])] if header else []
    path.write_text("\n".join(top + rows) + "\n")


def as_dataset(values, time):
    data = {n: ("time", column, {"units": u}) for n, u, column in zip(NAMES, UNITS, values.T)}
    return xr.Dataset(data, {"time": ("time", time, {"units": "s"})})


def as_frame(values, time):
    frame = pd.DataFrame(values, columns=NAMES)
    frame.insert(0, "time", time)
    frame.attrs["units"] = dict(zip(["time", *NAMES], ["s", *UNITS]))
    return frame


def write_npz(path, values, time):
    np.savez(path, x=values, time=time, dt=DT, dt_unit="s", variables=NAMES, units=UNITS)


def write_h5(path, values, time):
    with h5py.File(path, "w") as file:
        for name, unit, column in zip(NAMES, UNITS, values.T):
            file[name] = column
            file[name].attrs["units"] = unit
        file["time"] = time
        file["time"].attrs["units"] = "s"


WRITERS = {
    "run.npz": write_npz,
    "run.csv": write_csv,
    "run.h5": write_h5,
    "run.nc": lambda path, values, time: as_dataset(values, time).to_netcdf(path, engine="h5netcdf"),
    "run.zarr": lambda path, values, time: as_dataset(values, time).to_zarr(path, consolidated=False),
    "run.parquet": lambda path, values, time: as_frame(values, time).to_parquet(path),
}
