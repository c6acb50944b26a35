"""The results of many fits as one table: a DataFrame, a Dataset, Parquet and NetCDF files."""

import importlib.util
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from ..._core import files

_FACTS = ("closure", "level", "samples", "dt", "time_unit", "seconds", "failure")


def to_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return one line per series: numbers with their standard errors, then what is known of the fit.

    A column that a series does not have, another variable perhaps, is NaN there.
    """
    lines = [{**row.get("columns", {}), **{fact: row.get(fact) for fact in _FACTS}} for row in rows]
    columns = list(dict.fromkeys(key for line in lines for key in line if key not in _FACTS))
    frame = pd.DataFrame(lines, index=pd.Index([row["name"] for row in rows], name="series"))
    frame = frame.reindex(columns=[*columns, *_FACTS])
    numbers = [*columns, "samples", "dt", "seconds"]
    frame[numbers] = frame[numbers].astype(float)
    texts = [fact for fact in _FACTS if fact not in numbers]
    frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), "")
    return frame


def table_to_dataset(frame: pd.DataFrame) -> xr.Dataset:
    """Return the table with one variable (series,) per column."""
    data = xr.Dataset.from_dataframe(frame)
    return data.assign_attrs(source=f"effective-langevin {version('effective-langevin')}")


def write_table(frame: pd.DataFrame, path: Path) -> list[Path]:
    """Write PATH.nc, and PATH.parquet where pyarrow is there; each file appears once complete."""
    written = [path.with_suffix(".nc")]
    with files.replaced(written[0]) as temporary:
        files.write_netcdf(table_to_dataset(frame), temporary)
    if importlib.util.find_spec("pyarrow"):
        written.append(path.with_suffix(".parquet"))
        with files.replaced(written[1]) as temporary:
            frame.to_parquet(temporary)
    return written
