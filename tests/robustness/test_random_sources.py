"""Random tables, dictionaries and arrays: a series comes, or an error of the package; nothing else."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import effective_langevin as el

EASY = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True}
CELLS = [
    "1", "-2.5", "nan", "", "NA", "1e5", "1e999", "2020-01-01", "2020-01-02T00:00", "x", '"', "'", "#", "inf", "0x1",
    "1_0", " ", "\t", "T [K]", "time", "t", "member", "24:00", "\u0661", "1,5", "None", "-", "+", ".", "1.", "[", "]",
    "20200101", "W01", "2020-W01-1",
]  # fmt: skip
KINDS = st.one_of(
    arrays.floating_dtypes(),
    arrays.integer_dtypes(),
    arrays.boolean_dtypes(),
    arrays.datetime64_dtypes(),
    arrays.timedelta64_dtypes(),
    arrays.unicode_string_dtypes(max_len=3),
    arrays.byte_string_dtypes(max_len=3),
    arrays.complex_number_dtypes(),
)
ARRAYS = arrays.arrays(KINDS, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
NAMES = st.sampled_from(["x", "values", "time", "t", "dt", "dt_unit", "names", "variables", "units", "y", "T"])
CELL = st.one_of(st.sampled_from(CELLS), st.text(st.characters(codec="utf-8"), max_size=4))
TABLES = st.tuples(
    st.lists(st.lists(CELL, max_size=5), max_size=6),
    st.sampled_from([",", ";", "\t", " "]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([None, 0.1]),
)
MAPPINGS = st.tuples(
    st.dictionaries(NAMES, ARRAYS, max_size=5),
    st.fixed_dictionaries(
        {
            "dt": st.sampled_from([None, 0.1]),
            "variables": st.sampled_from([None, ["T"], ["x"]]),
            "time": st.sampled_from([None, False, "time"]),
            "resample": st.sampled_from([None, True, 0.05]),
            "join": st.booleans(),
        }
    ),
)
SERIES = st.tuples(
    ARRAYS,
    st.one_of(st.none(), st.floats(), st.integers(-3, 3), st.text(max_size=2)),
    st.one_of(st.none(), st.lists(st.text(max_size=2), max_size=3)),
    st.one_of(st.floats(), st.lists(st.floats(), max_size=3)),
)


def check(call):
    """Run a call; an error of the package is an answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            series = call()
        except el.EffectiveLangevinError:
            return
    assert np.isfinite(series.stacked()).all()
    assert repr(series).isprintable()


def try_tables(count, folder):
    @settings(max_examples=count, **EASY)
    @given(TABLES)
    def run(table):
        rows, separator, end, dt = table
        path = folder / "a.csv"
        path.write_bytes(end.join(separator.join(row) for row in rows).encode())
        check(lambda: el.read(path, dt=dt))

    run()


def try_mappings(count, folder):
    run = given(MAPPINGS)(lambda drawn: check(lambda: el.read(drawn[0], **drawn[1])))
    settings(max_examples=count, **EASY)(run)()


def try_series(count, folder):
    run = given(SERIES)(lambda drawn: check(lambda: el.TimeSeries(*drawn[:2], names=drawn[2], start=drawn[3])))
    settings(max_examples=count, **EASY)(run)()


@pytest.mark.parametrize("attempt", [try_tables, try_mappings, try_series])
def test_a_random_source_is_read_or_refused(attempt, tmp_path):
    attempt(25, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", [try_tables, try_mappings, try_series])
def test_a_thousand_random_sources_are_read_or_refused(attempt, tmp_path):
    attempt(1000, tmp_path)
