"""Tables, labelled arrays and names that mean something else than they seem: text, dates, calendars, masks, units."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import effective_langevin as el
from effective_langevin.data.io.write import write

from ..robustness import MANY, Case
from .files import SAMPLES, T, X, same

Check = Callable[[el.TimeSeries], None] | str  # or "refused", "either"
NORMAL = np.random.default_rng(2).normal(size=(1500, 1))
MASKED = np.ma.masked_array(np.where((np.arange(SAMPLES) // 10 == 5)[:, None], -9999.0, X), X * 0 + 0)
MASKED[50:60] = np.ma.masked
KEPT = np.r_[X[:50], X[60:]]


def lines(separator: str = ",", number: Callable[[float], str] = lambda v: repr(float(v))) -> list[str]:
    return [separator.join(number(v) for v in (t, *row)) for t, row in zip(T, X)]


def table(head: str = "time,T,h\n", end: str = "\n", **how: Any) -> str:
    return head + end.join(lines(**how))


def changed(row: int, text: str) -> str:
    """Return a table of which one row is replaced."""
    rows = lines()
    rows[row] = text
    return "time,T,h\n" + "\n".join(rows)


def pairs(first: Any, second: Any) -> str:
    return "\n".join(f"{a},{b}" for a, b in zip(first, second))


def with_comma(value: float) -> str:
    return f"{value:.5f}".replace(".", ",")


def dated(pattern: str, frequency: str = "D", start: str = "2000-01-15", name: str = "date", count: int = 400) -> str:
    dates = pd.date_range(start, periods=count, freq=frequency).strftime(pattern)
    return f"{name},T\n" + "\n".join(f"{d},{v!r}" for d, v in zip(dates, NORMAL[:, 0].tolist()))


def gapped(dt: float, segments: int, dropped: int, values: np.ndarray) -> Callable[[el.TimeSeries], None]:
    def check(series: el.TimeSeries) -> None:
        same(dt, values)(series)
        assert (len(series.segments), series.dropped) == (segments, dropped), f"{series!r}"

    return check


def wide(columns: int, rows: int) -> str:
    cells = np.random.default_rng(0).normal(size=(rows, columns)).round(3).astype(str)
    return ",".join(f"v{i}" for i in range(columns)) + "\n" + "\n".join(",".join(row) for row in cells)


DAILY = same(1, NORMAL[:400])
# name -> text or bytes, arguments of `read`, what must come
TEXTS: dict[str, tuple[str | bytes, dict[str, Any], Check]] = {
    "byte order mark": ("\ufeff" + table(), {}, same()),
    "lines that end with CR LF": (table("time,T,h\r\n", "\r\n"), {}, same()),
    "lines that end with CR": (table("time,T,h\r", "\r"), {}, same()),
    "UTF-16": (table().encode("utf-16"), {}, "refused"),
    "Latin-1": ("time,T\u00e9,h\n".encode("latin-1") + table("").encode(), {}, "refused"),
    "semicolons": (table("time;T;h\n", separator=";"), {}, same()),
    "semicolons and decimal commas": (table("time;T;h\n", separator=";", number=with_comma), {}, same(tolerance=1e-5)),
    "tabs and decimal commas": (table("time\tT\th\n", separator="\t", number=with_comma), {}, same(tolerance=1e-5)),
    "blanks and decimal commas": (table("", separator=" ", number=with_comma), {"dt": 0.1}, "refused"),
    "one column of decimal commas": ("\n".join(with_comma(v) for v in X[:, 0]), {"dt": 0.1}, "refused"),
    "one named column of decimal commas": ("T\n" + "\n".join(with_comma(v) for v in X[:, 0]), {"dt": 0.1}, "refused"),
    "thousands in quotes": ('time,T\n0,"1,234.5"\n1,"1,235.5"\n2,"1,236.5"\n', {}, "refused"),
    "thousands with blanks": ("time,T\n0,1 234\n1,1 235\n2,1 236\n", {}, "refused"),
    "thousands with underscores": ("time,T\n0,1_000\n1,1_001\n2,\n", {}, "refused"),
    "a row too long": (changed(7, lines()[7] + ",9"), {}, "refused"),
    "a row too short": (changed(7, "0.7,1"), {}, "refused"),
    "a comma at the end of each row": ("time,T,h,\n" + "\n".join(row + "," for row in lines()), {}, same()),
    "quotes": ('"time","T, in K","h"\n' + "\n".join('"' + r.replace(",", '","') + '"' for r in lines()), {}, same()),
    "a line break in a quoted name": (table('"time","T\nK","h"\n'), {}, "refused"),
    "a quote that is not closed": (table('time,"T,h\n'), {}, "refused"),
    "a name twice": (table("time,T,T\n"), {}, "refused"),
    "a name twice with two units": (table("time,T [K],T [C]\n"), {}, "refused"),
    "null bytes": (table().replace("0.5,", "0.5\0,"), {}, "refused"),
    "a null byte in a name": (table("time,T\0,h\n"), {}, "refused"),
    "an escape sequence in a name": (table("time,\x1b[31mT,h\n"), {}, "refused"),
    "a cell of 200 000 digits": ("time,T,h\n" + "9" * 200_000 + ",1,2\n0,1,x\n", {}, "refused"),
    "infinity": (changed(3, "0.3,inf,1"), {}, "refused"),
    "1e400": (changed(3, "0.30000000000000004,1e400,1"), {}, "refused"),
    "one -9999": (changed(3, "0.30000000000000004,-9999,1"), {}, "refused"),
    "hexadecimal numbers": ("time,T\n0,0x10\n1,0x11\n2,0x12\n", {}, "refused"),
    "an error of a spreadsheet": ("time,T\n0,1\n1,#DIV/0!\n2,3\n", {}, "refused"),
    "a comment between rows": (table().replace("\n0.5,", "\n# nothing\n0.5,"), {}, same()),
    "a form feed in a row": (table().replace("\n0.5,", "\n0.5\x0c,"), {}, "refused"),
    "Arabic digits": ("time,T\n0,\u0661\n1,\u0662\n2,\u0663\n", {}, "refused"),
    "a minus sign of Unicode": ("time,T\n0,\u22121\n1,\u22122\n2,3\n", {}, "refused"),
    "numbers for names": ("2001,2002\n" + pairs(*X.T), {"dt": 0.1}, "refused"),
    "NaN for names": ("nan,NA\n" + pairs(*X.T), {"dt": 0.1}, same()),
    "a first row of zeros": ("0,0,0\n" + "\n".join(lines()[1:]), {"time": "x1"}, same(0.1, np.r_[0 * X[:1], X[1:]])),
    "T beside t": ("T,t\n" + pairs(X[:, 0], T), {}, same(0.1, X[:, :1])),
    "dates": (dated("%Y-%m-%d"), {}, DAILY),
    "dates as 20000115": (dated("%Y%m%d"), {}, DAILY),
    "months as 200001": (dated("%Y%m", "MS"), {}, DAILY),
    "months as 2000.01": (dated("%Y.%m", "MS", name="time"), {}, DAILY),
    "dates as 01/15/2000": (dated("%m/%d/%Y"), {}, DAILY),
    "dates as 15.01.2000": (dated("%d.%m.%Y"), {}, DAILY),
    "dates as 02/01/2000, day or month": (dated("%m/%d/%Y", "MS", "2000-01-01"), {}, "refused"),
    "ends of months": (dated("%Y-%m-%d", "ME"), {}, DAILY),
    "weeks as 2021-W01": ("time,T\n" + pairs([f"2021-W{i:02d}" for i in range(1, 52)], X[:, 0]), {}, "refused"),
    "seconds since 1970": ("timestamp,T\n" + pairs(1_700_000_000 + 600 * T, X[:, 0]), {}, same(60, X[:, :1])),
    "hours, minutes, seconds": ("time,T\n" + pairs([f"00:{i:02d}:00" for i in range(60)], X[:, 0]), {}, "refused"),
    "a date twice": (dated("%Y-%m-%d").replace("2000-01-17", "2000-01-16"), {}, "refused"),
}  # fmt: skip


def hourly_in_berlin() -> str:
    dates = pd.date_range("2021-03-20", periods=500, freq="h", tz="Europe/Berlin")
    return "time,T\n" + "\n".join(f"{d.isoformat()},{v!r}" for d, v in zip(dates, NORMAL[:, 0].tolist()))


def without_leap_days() -> tuple[str, np.ndarray]:
    dates = pd.date_range("1999-01-01", periods=1500)
    kept = ~((dates.month == 2) & (dates.day == 29))
    rows = [f"{d.date()},{v!r}" for d, v in zip(dates[kept], NORMAL[kept, 0].tolist())]
    return "date,T\n" + "\n".join(rows), NORMAL[kept]


def model_dates(calendar: str, start: str = "2000-01-01", frequency: str = "D", count: int = 900) -> xr.Dataset:
    times = xr.date_range(start, periods=count, freq=frequency, calendar=calendar, use_cftime=True)
    return xr.Dataset({"T": ("time", NORMAL[:count, 0])}, {"time": times})


def counted(units: str, times: np.ndarray | None = None, **attrs: Any) -> xr.Dataset:
    times = np.arange(300.0) if times is None else times
    return xr.Dataset({"T": ("time", NORMAL[: len(times), 0])}, {"time": ("time", times, {"units": units, **attrs})})


def one(values: np.ndarray = X[:, 0], **attrs: Any) -> xr.Dataset:
    return xr.Dataset({"T": ("time", values, attrs)}, {"time": T})


def filled(code: float) -> np.ndarray:
    return np.where(np.arange(SAMPLES) // 10 == 5, code, X[:, 0])


PACKED = {"T": {"dtype": "i2", "scale_factor": 1e-3, "add_offset": 1.0, "_FillValue": -32768}}
AS_YMD = pd.date_range("2000-01-15", periods=400).strftime("%Y%m%d").astype(float).to_numpy()
COLUMN = X[:, :1]
WITHOUT = gapped(0.1, 2, 10, KEPT[:, :1])
# name -> file name, dataset, encoding, what must come
NETCDF: dict[str, tuple[str, xr.Dataset, dict[str, Any], Check]] = {
    "years of 365 days": ("a.nc", model_dates("noleap"), {}, same(1, NORMAL[:900])),
    "years of 360 days": ("a.nc", model_dates("360_day"), {}, same(1, NORMAL[:900])),
    "months of 30 days": ("a.nc", model_dates("360_day", "2000-01-16", "MS", 300), {}, same(1, NORMAL[:300])),
    "autumn of 1582": ("a.nc", model_dates("standard", "1582-09-01", count=100), {}, same(1, NORMAL[:100])),
    "the year 20000": ("a.nc", model_dates("noleap", "20000-01-01", count=100), {}, same(1, NORMAL[:100])),
    "months since 1950": ("a.nc", counted("months since 1950-01-01"), {}, same(1, NORMAL[:300])),
    "middles of months": ("a.nc", counted("months since 1950-01-01", np.arange(300) + 0.5), {}, same(1, NORMAL[:300])),
    "years since 1700": ("a.nc", counted("years since 1700-01-01"), {}, same(1, NORMAL[:300])),
    "day as %Y%m%d.%f": ("a.nc", counted("day as %Y%m%d.%f", AS_YMD), {}, DAILY),
    "days since yesterday": ("a.nc", counted("days since yesterday"), {}, same(1, NORMAL[:300])),
    "a calendar of the Maya": ("a.nc", counted("days since 2000-01-01", calendar="mayan"), {}, same(1, NORMAL[:300])),
    "packed": ("a.nc", one(), PACKED, same(0.1, COLUMN, 1e-3)),
    "packed, called h5": ("a.h5", one(), PACKED, same(0.1, COLUMN, 1e-3)),
    "fill values": ("a.nc", one(filled(np.nan)), {"T": {"_FillValue": -9999.0}}, WITHOUT),
    "fill values, called h5": ("a.h5", one(filled(np.nan)), {"T": {"_FillValue": -9999.0}}, WITHOUT),
    "missing_value": ("a.nc", one(filled(-999.0), missing_value=-999.0), {}, WITHOUT),
    "the usual fill value, not noted": ("a.nc", one(filled(9.969209968386869e36)), {}, "refused"),
    "values outside the valid range": ("a.nc", one(filled(-999.0), valid_min=-100.0), {}, "refused"),
    "a second dimension of the length of time": ("a.nc", one().assign(h=("tine", X[:, 1])), {}, "refused"),
    "nothing along time": ("a.nc", xr.Dataset({"T": 3.0}), {}, "refused"),
    "no times": ("a.nc", xr.Dataset({"T": ("time", X[:, 0])}), {}, "refused"),
    "no samples": ("a.nc", xr.Dataset({"T": ("time", X[:0, 0])}, {"time": T[:0]}), {}, "refused"),
}  # fmt: skip


def frame(values: Any, **index: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": values}, **index)


def columns(names: Any) -> pd.DataFrame:
    return pd.DataFrame(X).set_axis(names, axis=1)


def in_units(first: str, second: str) -> list[xr.Dataset]:
    return [one(units=first), one(units=second)]


NULLABLE = pd.Series(X[:, 0]).astype("Float64").where(np.arange(SAMPLES) // 10 != 5)
ROWS = pd.MultiIndex.from_product([[0, 1], 0.1 * np.arange(150)], names=["member", "time"])
BERLIN = pd.date_range("2021-03-20", periods=SAMPLES, freq="h", tz="Europe/Berlin")
JITTER = 0.007 * np.random.default_rng(0).uniform(-1, 1, SAMPLES)
# name -> source, arguments of `read`, what must come
OBJECTS: dict[str, tuple[Any, dict[str, Any], Check]] = {
    "a mask": (MASKED, {"dt": 0.1}, gapped(0.1, 2, 10, KEPT)),
    "a mask in a dictionary": ({"T": MASKED[:, 0]}, {"dt": 0.1}, WITHOUT),
    "x beside y": ({"x": X[:, 0], "y": X[:, 1]}, {"dt": 0.1}, same()),
    "three names for two columns": ({"x": X, "names": np.array(["a", "b", "c"])}, {"dt": 0.1}, "refused"),
    "a name twice": ({"x": X, "names": np.array(["a", "a"])}, {"dt": 0.1}, "refused"),
    "a name given twice": (X, {"dt": 0.1, "names": ["a", "a"]}, "refused"),
    "a variable asked for twice": ({"T": X[:, 0]}, {"dt": 0.1, "variables": ["T", "T"]}, "refused"),
    "a column twice": (columns(["a", "a"]), {"dt": 0.1}, "refused"),
    "columns of two levels": (columns(pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])), {"dt": 0.1}, same()),
    "rows of two levels": (pd.DataFrame({"T": X[:, 0]}, index=ROWS), {}, gapped(0.1, 2, 0, COLUMN)),
    "nullable numbers": (frame(NULLABLE), {"dt": 0.1}, WITHOUT),
    "sparse numbers": (frame(pd.arrays.SparseArray(X[:, 0])), {"dt": 0.1}, same(0.1, COLUMN)),
    "truth values with None": (frame(pd.Series([True, None] * 150)), {"dt": 0.1}, "refused"),
    "a time zone": (frame(X[:, 0], index=BERLIN), {}, same(1, COLUMN)),
    "periods": (frame(X[:, 0], index=pd.period_range("2000-01", periods=SAMPLES, freq="M")), {}, same(1, COLUMN)),
    "durations": (frame(X[:, 0], index=pd.timedelta_range("0s", periods=SAMPLES, freq="100ms")), {}, same(100, COLUMN)),
    "an empty table": (pd.DataFrame(), {"dt": 1.0}, "refused"),
    "members in turn": (
        pd.DataFrame({"member": np.tile([0, 1], 150), "T": X[:, 0]}), {"dt": 0.1},
        gapped(0.1, 2, 0, np.r_[X[::2, :1], X[1::2, :1]])),
    "complex numbers": (xr.DataArray(X + 0j, dims=("time", "v"), coords={"time": T}), {}, "refused"),
    "lists of unequal length": ([[1, 2], [3]], {"dt": 0.1}, "refused"),
    "lists": (X.tolist(), {"dt": 0.1}, same()),
    "a generator": ((row for row in X), {"dt": 0.1}, "refused"),
    "times that decrease": ({"x": X, "time": T[::-1].copy()}, {}, same(0.1, X[::-1])),
    "times off by 7 %": ({"x": X, "time": T + JITTER}, {}, "refused"),
    "a time without an axis": ({"x": X, "time": np.array(True)}, {}, "refused"),
    "no members": (np.zeros((0, 4, 2)), {"dt": 0.1}, "refused"),
    "no rows, joined": ({"x": np.zeros(0), "time": np.zeros((0, 0, 3))}, {"join": True}, "refused"),
    "members without rows, joined": (
        {"values": np.zeros((2, 0, 2)), "time": np.zeros((2, 0, 2))}, {"join": True}, "refused"),
    "kelvin and degrees": (in_units("K", "degC"), {}, "refused"),
    "dt in days, asked for in hours": ({"x": X, "dt": 0.1, "dt_unit": "day"}, {"time_unit": "hour"}, same(2.4)),
    "dt in days and in seconds": (
        [{"x": X, "dt": 0.1, "dt_unit": "day"}, {"x": X, "dt": 0.1, "dt_unit": "s"}], {}, "refused"),
    "dt in days and in hours": (
        [{"x": X, "dt": 0.1, "dt_unit": "day"}, {"x": X, "dt": 2.4, "dt_unit": "hour"}], {},
        gapped(0.1, 2, 0, np.r_[X, X])),
    "another dt than noted": ({"x": X, "dt": 0.1}, {"dt": 0.2}, "refused"),
    "records that overlap, joined": ([{"x": X, "time": T}, {"x": X, "time": T + 15}], {"join": True}, "refused"),
}  # fmt: skip

NAMES = (
    "T", "time", "member", "t", "date", "start", "variable", "dt", "x", "units", "a/b", ".", "..", "", " ", "a\nb",
    'a"b', "a,b", "T [K]", "#a", "nan", "1", "θ₀ 温度 😀", "a\0b", "a\ud800", "<b>x</b>", "T_bnds", "n" * 5000, "a\tb",
    "a\rb", "ensemble", "a\u2028b", "a ", "\x1b[31mred",
)  # fmt: skip


SUFFIXES = ("nc", "zarr", "h5", "npz", "csv", "parquet")


def _round_trip(path: Path, name: str) -> None:
    """Write a series with this name and read it back."""
    series = el.TimeSeries(X.reshape(2, 150, 2), 0.1, names=[name, "h"], units=["K", "m"], time_unit="day")
    write(series, path)
    found = el.read(path, variables=series.names if path.suffix == ".zarr" else None)
    assert (found.names, found.units) == (series.names, series.units), f"{found.names} {found.units}"
    np.testing.assert_allclose(found.stacked(), series.stacked())
    assert len(found.segments) == 2, f"{found!r}"


def _read(source: Any, options: dict[str, Any], expected: Check) -> None:
    series = el.read(source, **options)
    if callable(expected):
        expected(series)


def _case(name: str, expected: Check, call: Callable[[], None]) -> Case:
    return Case(name, call, expected if isinstance(expected, str) else "right")


def cases(folder: Path, count: int) -> Iterator[Case]:
    """Yield texts, NetCDF files and objects of the tables above, and names written and read."""
    leap, kept = without_leap_days()
    texts = {
        **TEXTS,
        f"{100 * count} columns": (wide(100 * count, 5), {"dt": 1.0}, "either"),
        "summer time": (hourly_in_berlin(), {}, same(1, NORMAL[:500])),
        "29 February left out": (leap, {}, gapped(1, 2, 1, kept)),
    }
    for number, (name, (text, options, expected)) in enumerate(texts.items()):
        path = folder / f"{number}.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        yield _case(f"text: {name}", expected, lambda p=path, o=options, e=expected: _read(p, o, e))
    for number, (name, (file, data, encoding, expected)) in enumerate(NETCDF.items()):
        path = folder / f"{number}_{file}"
        data.to_netcdf(path, engine="h5netcdf", encoding=encoding)
        yield _case(f"NetCDF: {name}", expected, lambda p=path, e=expected: _read(p, {}, e))
    for name, (source, options, expected) in OBJECTS.items():
        yield _case(f"object: {name}", expected, lambda s=source, o=options, e=expected: _read(s, o, e))
    for number, name in enumerate(NAMES):
        for suffix in SUFFIXES if count >= MANY else SUFFIXES[number % len(SUFFIXES) :][:1]:
            path = folder / f"name{number}.{suffix}"
            yield Case(f"name {name[:20]!r} to {suffix}", lambda p=path, n=name: _round_trip(p, n))
