"""Series that are read by blocks: the same samples, statistics and models as in memory, for every size of a block."""

from itertools import pairwise

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import effective_langevin as el
from effective_langevin.data import lazy
from effective_langevin.data.lazy import Rows, joined, stretches
from effective_langevin.data.provenance import hash_samples
from effective_langevin.estimate.score.preconditioning import covariance_matrix
from effective_langevin.statistics.integral_time import error_groups, integral_times
from effective_langevin.statistics.lags import autocovariances, lagged_moments
from effective_langevin.statistics.regime import classify_short_times


def values_with_gaps(length=900, seed=0):
    rng = np.random.default_rng(seed)
    values = 5.0 + np.cumsum(rng.normal(size=(length, 2)), axis=0) * 0.05 + rng.normal(size=(length, 2))
    values[200:203], values[450, 1] = np.nan, np.nan
    return values


def read_by(values, block):
    return Rows(lambda first, stop: np.array(values[first:stop], float), values.shape, block)


@pytest.fixture(params=["npy", "h5", "nc", "zarr"])
def file(request, tmp_path):
    values, path = values_with_gaps(), tmp_path / f"run.{request.param}"
    times = ("time", 0.5 * np.arange(len(values)), {"units": "day"})
    labelled = xr.Dataset({"a": ("time", values[:, 0]), "b": ("time", values[:, 1])}, {"time": times})
    if request.param == "npy":
        np.save(path, values)
    elif request.param == "h5":
        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=values, chunks=(128, 2))
    elif request.param == "nc":
        labelled.to_netcdf(path)
    else:
        pytest.importorskip("zarr")
        labelled.to_zarr(path)
    return path


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_read_by_blocks_is_the_file_in_memory(file):
    dt = 0.5 if file.suffix in (".npy", ".h5") else None
    whole, blocks = el.read(file, dt=dt), el.read(file, dt=dt, chunks=77)
    assert blocks.is_lazy
    assert not whole.is_lazy
    assert repr(blocks) == repr(whole)
    assert (blocks.starts, blocks.records, blocks.units) == (whole.starts, whole.records, whole.units)
    assert all(np.array_equal(a[:], b) for a, b in zip(blocks.segments, whole.segments, strict=True))
    assert hash_samples(blocks) == hash_samples(whole)


def test_missing_time_stamps_cut_a_file_that_is_read_by_blocks(tmp_path):
    kept = np.delete(np.arange(400), [90, 91, 300])
    data = xr.Dataset({"a": ("time", np.sin(kept) + 0.1 * np.cos(0.1 * kept**2))}, {"time": 0.25 * kept})
    data.to_netcdf(tmp_path / "gaps.nc")
    whole, blocks = (el.read(tmp_path / "gaps.nc", chunks=chunks) for chunks in (None, 64))
    assert [len(s) for s in blocks.segments] == [90, 208, 99]
    assert (blocks.starts, blocks.dropped, blocks.records) == (whole.starts, whole.dropped, whole.records)


def test_times_that_are_not_uniform_are_refused(tmp_path):
    times = np.arange(300.0)
    times[200:] += 0.4
    xr.Dataset({"a": ("time", np.sin(times))}, {"time": times}).to_netcdf(tmp_path / "uneven.nc")
    with pytest.raises(el.DataError, match="not uniform"):
        el.read(tmp_path / "uneven.nc", chunks=64)


def test_small_files_are_loaded_unless_a_size_is_asked_for(file, monkeypatch):
    dt = 0.5 if file.suffix in (".npy", ".h5") else None
    assert not el.read(file, dt=dt, chunks="auto").is_lazy
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 1000)
    assert el.read(file, dt=dt, chunks="auto").is_lazy


def test_arrays_of_dask_stay_where_they_are(monkeypatch):
    dask = pytest.importorskip("dask.array")
    values = values_with_gaps()
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 1000)
    plain = el.TimeSeries(dask.from_array(values, chunks=(100, 2)), dt=0.5)
    labelled = el.read(xr.DataArray(values, dims=("time", "var"), name="x").chunk({"time": 100}), dt=0.5)
    assert plain.is_lazy
    assert labelled.is_lazy
    for series in (plain, labelled):
        assert np.array_equal(np.concatenate(list(series.blocks())), el.TimeSeries(values, 0.5).stacked())


def test_what_does_not_fit_is_refused_with_the_way_out(monkeypatch):
    series = el.TimeSeries(read_by(values_with_gaps(), 50), dt=0.5)
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 200)
    with pytest.raises(el.DataError, match="excerpt"):
        series.stacked()
    part = series.excerpt()
    assert not part.is_lazy
    assert part.n_samples * part.dimension <= 50


def test_text_is_not_read_by_blocks(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n2\n3\n")
    with pytest.raises(el.DataError, match="Zarr"):
        el.read(tmp_path / "a.csv", dt=1.0, chunks="auto")


@settings(max_examples=40, deadline=None)
@given(
    block=st.integers(1, 1000),
    cuts=st.lists(st.integers(0, 900), max_size=4),
    stride=st.integers(1, 50),
    seed=st.integers(0, 2**16),
)
def test_rows_are_those_of_the_array(block, cuts, stride, seed):
    values, rng = values_with_gaps(), np.random.default_rng(seed)
    edges = sorted({0, 900, *cuts})
    rows = joined([read_by(values, block).window(a, b) for a, b in pairwise(edges)])
    first, stop = np.sort(rng.integers(0, 901, 2))
    some = rng.integers(-900, 900, 20)
    np.testing.assert_array_equal(rows[first:stop], values[first:stop])
    np.testing.assert_array_equal(rows[::stride], values[::stride])
    np.testing.assert_array_equal(rows.every(stride)[:], values[::stride])
    np.testing.assert_array_equal(rows[some], values[some])
    np.testing.assert_array_equal(rows.map(lambda x: x * 2)[first:stop, 1], 2 * values[first:stop, 1])
    np.testing.assert_array_equal(rows[-1], values[-1])


@settings(max_examples=25, deadline=None)
@given(
    block=st.integers(1, 1000),
    gaps=st.sets(st.integers(0, 899), max_size=5),
    groups=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_statistics_do_not_depend_on_the_blocks(block, gaps, groups, seed):
    values = values_with_gaps(seed=seed)
    values[list(gaps)] = np.nan
    whole, blocks = el.TimeSeries(values, 0.5), el.TimeSeries(read_by(values, block), 0.5)
    assert [len(s) for s in blocks.segments] == [len(s) for s in whole.segments]
    units = [el.Standardizer.from_series(s) for s in (whole, blocks)]
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(units[1], name), getattr(units[0], name), rtol=1e-12)
    pair = [s.map(units[0].to_standard) for s in (whole, blocks)]

    def same(statistic):
        np.testing.assert_allclose(*(statistic(s) for s in pair), rtol=1e-10, atol=1e-12)

    lags = [0, 1, 2, 5, 40]
    same(lambda s: lagged_moments(s.segments, s.segments, lags, groups).sums)
    same(lambda s: lagged_moments(s.segments, s.segments, lags, groups).pairs)
    same(lambda s: autocovariances(s.segments, 60))
    same(lambda s: integral_times(s.segments, s.dt))
    same(lambda s: error_groups(s.segments, s.dt))
    same(lambda s: classify_short_times(s.segments).slope)
    same(lambda s: covariance_matrix(s.stacked_rows(np.float32)))
    for parts in zip(*(s.split() for s in pair)):
        np.testing.assert_array_equal(*(np.concatenate([x[:] for x in part.segments]) for part in parts))


def test_pieces_of_work_do_not_change_sums(monkeypatch):
    from effective_langevin.statistics import lags

    values = values_with_gaps()[:200]
    whole = lagged_moments([values], [values], [0, 3, 17], 3)
    monkeypatch.setattr(lags, "_TASK", 13)
    pieces = lagged_moments([read_by(values, 29)], [read_by(values, 29)], [0, 3, 17], 3)
    np.testing.assert_allclose(pieces.sums, whole.sums, rtol=1e-12)
    np.testing.assert_array_equal(pieces.pairs, whole.pairs)


def test_an_excerpt_is_spread_over_all_segments():
    found = stretches([np.zeros((500, 1)), np.zeros((700, 1))], 100, number=10)
    starts = [first + 500 * k for k, first, _ in found]
    assert sum(stop - first for _, first, stop in found) <= 100
    assert starts[0] == 0
    assert starts[-1] > 1100
    assert np.ptp(np.diff(starts)) <= 1


@pytest.mark.parametrize("mobility", [None, el.QuadraticVariation()])
def test_the_model_is_that_of_the_series_in_memory(mobility):
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(500.0, dt=0.1, seed=3)
    blocks = el.TimeSeries(read_by(series.values, 700), 0.1)
    one, other = (el.fit(s, score=el.Gaussian(), mobility=mobility) for s in (series, blocks))
    np.testing.assert_allclose(other.mobility.matrix, one.mobility.matrix, rtol=1e-9)
    np.testing.assert_allclose(other.mobility.standard_error, one.mobility.standard_error, rtol=1e-6)
    assert other.provenance["sha256"] == one.provenance["sha256"]
    assert np.array_equal(other.states, one.states)
    assert other.score.evidence.extra["read"] == "4000 samples by blocks"
    levels = [{f.name: f.level for f in model.diagnosis.findings} for model in (one, other)]
    assert levels[0] == levels[1]


@pytest.mark.slow
def test_a_strategy_that_needs_an_array_is_given_a_bounded_number_of_samples(monkeypatch):
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(1000.0, dt=0.1, seed=3)
    blocks = el.TimeSeries(read_by(series.values, 700), 0.1)
    monkeypatch.setattr(lazy, "MOST_NUMBERS", 1 << 15)
    strategy = el.KGMM(noise_level=0.3, cells=50, max_draws=4, steps=200)
    model = el.fit(blocks, score=strategy, mobility=el.IntegratedResponse(), check="off")
    assert model.score.evidence.extra["drawn"] == "4096 of 8000 training samples, at random"
    assert np.allclose(model.mobility.matrix, el.fit(series, score=el.Gaussian()).mobility.matrix, atol=0.1)
