import dataclasses
import inspect
import json
import operator
import re

import numpy as np
import pytest
from oracles.processes import autoregressive, ornstein_uhlenbeck, random_walk, real, with_noise

import effective_langevin as el
from effective_langevin._core.format import listed, measured, percent
from effective_langevin.diagnose.finding import Finding, plain

SERIOUS = ("warning", "stop")


def serious(diagnosis):
    return {f.name for f in diagnosis.findings if f.level in SERIOUS}


def number(diagnosis, finding, name):
    found = diagnosis.finding(finding).numbers[name]
    return np.asarray(found.value), np.asarray(found.error)


@pytest.fixture(scope="module")
def wells_diagnosis(wells_series):
    return el.diagnose(wells_series)


@pytest.fixture(scope="module")
def linear_diagnosis(linear_series):
    return el.diagnose(linear_series)


@pytest.fixture(scope="module")
def smooth_chaos():
    system = el.systems.KuramotoSivashinsky(grid=64, stride=2)
    return el.diagnose(system.simulate(duration=500.0, dt=0.1, members=4, seed=0, burn_in=500.0))


def test_a_linear_diffusion_is_fine(linear_diagnosis):
    found = linear_diagnosis
    assert found.regime == "diffusive"
    assert serious(found) == set()
    assert found.finding("linear Markov test").level == "ok"
    times, errors = number(found, "sample size", "integral_times")
    # Integral of e^{-A t} C: A^-1 C, over C, in days.
    system = el.systems.OrnsteinUhlenbeck.rotating(2)
    exact = np.diag(np.linalg.solve(system.drift_matrix, system.covariance)) / np.diag(system.covariance)
    assert (np.abs(times - exact) < 4 * errors + 0.03 * exact).all()
    assert " d" in found.finding("sample size").meaning


def test_wells_sampled_finely_are_fine(wells_diagnosis):
    assert wells_diagnosis.regime == "diffusive"
    assert serious(wells_diagnosis) == set()
    # The linear test fails, as it should, and the partition says why.
    assert wells_diagnosis.finding("linear Markov test").level == "note"
    assert "nonlinear motion, not memory" in wells_diagnosis.finding("linear Markov test").advice
    assert wells_diagnosis.finding("Markov test").level == "ok"


def test_wells_sampled_coarsely_are_called_too_coarse(wells_series):
    found = el.diagnose(wells_series.thin(10))
    assert found.regime == "coarse"
    assert serious(found) == {"sampling interval"}
    assert "too coarse" in found.finding("sampling interval").meaning
    assert found.finding("measurement noise").level == "ok"


def test_smooth_chaos_is_ballistic(smooth_chaos):
    assert smooth_chaos.regime == "ballistic"
    slope, error = number(smooth_chaos, "regime", "slope")
    assert abs(slope - 1) < max(4 * error, 0.3)
    assert "horizon" in smooth_chaos.finding("regime").advice
    # The mean of the field is conserved.
    assert "constant" in smooth_chaos.finding("redundant variables").meaning


def test_a_random_walk_is_not_stationary():
    found = el.diagnose(random_walk(5000))
    assert found.finding("stationarity").level == "stop"
    assert found.findings[0].name == "stationarity"
    assert found.level == "stop"
    assert "random walk" in found.finding("stationarity").meaning


def test_a_seasonal_series_is_called_seasonal():
    time = np.arange(7300)
    values = autoregressive(7300, 10.0)[0] + 1.2 * np.sin(2 * np.pi * time / 365.25)[:, None]
    found = el.diagnose(el.TimeSeries(values, 1.0, time_unit="day"))
    assert found.finding("seasonality").level == "warning"
    periods, errors = number(found, "seasonality", "periods")
    assert abs(periods[0] - 365.25) < 2 * errors[0]
    assert "day" in found.finding("seasonality").meaning


def test_white_noise_is_called_white_noise():
    found = el.diagnose(el.TimeSeries(np.random.default_rng(0).normal(size=(5000, 2)), 0.1))
    assert found.regime == "white noise / unresolved"
    assert found.finding("regime").level == "stop"


def test_measurement_noise_is_named_with_its_size(wells):
    clean = wells.simulate(duration=200.0, dt=0.02, members=10, seed=4)
    assert el.diagnose(clean).regime == "diffusive"
    found = el.diagnose(with_noise(clean, 0.05))
    assert found.regime == "measurement noise"
    assert "measurement noise" in serious(found)
    share, error = number(found, "measurement noise", "noise_percent_of_std")
    assert (np.abs(share - 5 / np.sqrt(1.0025)) < 3 * error).all()
    assert (error < 1).all()
    # It is not taken for coarse sampling.
    assert found.finding("sampling interval").level == "ok"


def test_noise_on_smooth_motion_is_noise():
    position = np.cumsum(autoregressive(30_000, 20.0)[0], axis=0)
    position = position - np.convolve(np.pad(position[:, 0], 500, mode="edge"), np.ones(1001) / 1001, "valid")[:, None]
    smooth = el.TimeSeries(position, 0.1)
    assert el.diagnose(smooth).regime == "ballistic"
    assert el.diagnose(with_noise(smooth, 0.1)).regime == "measurement noise"


def test_noise_is_told_without_a_partition_where_sampling_is_fine():
    values = np.concatenate([autoregressive(8000, 30.0, seed=k)[0] for k in range(8)], axis=1)
    noisy = with_noise(el.TimeSeries(values, 1.0), 0.3)
    found = el.diagnose(noisy)
    assert found.regime == "measurement noise"
    assert "Markov test" not in {f.name for f in found.findings}
    assert el.diagnose(el.TimeSeries(values, 1.0)).regime == "diffusive"


def test_a_position_with_its_velocity_is_mixed():
    """dx = v dt, dv = -(x + v) dt + noise: x is smooth, v is not."""
    rng, h = np.random.default_rng(0), 0.02
    x = v = 0.0
    path = []
    for kick in np.sqrt(2 * h) * rng.normal(size=60_000):
        x, v = x + h * v, v - h * (x + v) + kick
        path.append((x, v))
    found = el.diagnose(el.TimeSeries(np.array(path)[::5], 5 * h, names=["x", "v"]))
    assert found.regime == "mixed"
    assert "(x)" in found.finding("regime").meaning


def test_heavy_tails_are_reported():
    values = np.random.default_rng(0).standard_t(2.5, size=(20_000, 1))
    assert el.diagnose(el.TimeSeries(values, 1.0)).finding("tails").level == "warning"


def test_records_with_a_start_up_phase_are_not_stationary():
    values = autoregressive(400, 10.0, members=40) + 3 * np.exp(-np.arange(400) / 40)[:, None]
    found = el.diagnose(el.TimeSeries(values, 1.0)).finding("stationarity")
    assert found.level in SERIOUS
    assert "since the start" in found.meaning


@pytest.mark.slow
def test_false_alarms_are_rare(wells_series):
    """Warnings or stops about series that are as they should be: 2 of 960 were measured, 1 % is allowed for."""
    made = [ornstein_uhlenbeck(3000, 10.0, seed=seed, dt=0.1) for seed in range(20)]
    made += [el.TimeSeries(list(wells_series.segments[k : k + 2]), wells_series.dt) for k in range(0, 10, 2)]
    assert sum(bool(serious(el.diagnose(series))) for series in made) <= 1


@pytest.mark.integration
def test_eeg_is_not_stationary(shared_data):
    found = el.diagnose(real(shared_data("eeg_eye_state.npz")))
    assert found.finding("stationarity").level in SERIOUS
    assert "not stationary" in found.finding("stationarity").meaning


@pytest.mark.integration
def test_enso_is_too_small_a_sample_with_a_yearly_cycle_of_its_variance(shared_data):
    found = el.diagnose(real(shared_data("enso_xro.npz")))
    assert found.finding("sample size").level in SERIOUS
    assert "too small" in found.finding("sample size").advice
    periods, _ = number(found, "seasonality", "periods")
    assert np.abs(periods - 12).max() < 0.2
    assert "variance of" in found.finding("seasonality").meaning


@pytest.mark.integration
def test_the_gaps_of_nao_are_counted(shared_data):
    """18 dates are skipped and 2 are NaN: on a daily grid, 20 rows are missing."""
    path = shared_data("nao_daily.npz")
    data = np.load(path)
    days = (data["time"] - data["time"][0]).astype(int)
    daily = np.full((days[-1] + 1, 1), np.nan)
    daily[days] = data["x"].reshape(-1, 1)
    found = el.diagnose(real(path, values=daily))
    assert found.finding("gaps").numbers["dropped_rows"].value == 20
    assert "20 rows" in found.finding("gaps").meaning
    assert found.regime == "ballistic"


@pytest.mark.integration
def test_fish_have_measurement_noise_and_hard_edges(shared_data):
    found = el.diagnose(real(shared_data("fish_schooling.npz")))
    assert found.regime == "measurement noise"
    assert found.finding("edges").level == "note"
    assert found.finding("gaps").numbers["dropped_rows"].value == 16


@pytest.mark.integration
def test_dihedrals_are_angles_sampled_coarsely(shared_data):
    found = el.diagnose(real(shared_data("alanine_dipeptide.npz")))
    assert found.regime == "coarse"
    assert {"sampling interval", "edges"} <= serious(found)
    assert "angle" in found.finding("edges").meaning
    assert found.finding("stationarity").level == "ok"


def test_findings_come_with_the_most_serious_first(smooth_chaos):
    order = ["stop", "warning", "note", "ok"]
    levels = [order.index(f.level) for f in smooth_chaos.findings]
    assert levels == sorted(levels)
    assert smooth_chaos.level == order[levels[0]]


def test_the_summary_says_everything_with_advice_where_it_is_needed(smooth_chaos):
    text = smooth_chaos.summary()
    flat = " ".join(text.split())
    assert text.startswith("Regime: ballistic.")
    for finding in smooth_chaos.findings:
        assert finding.meaning in flat
        if finding.advice:
            assert (f"-> {finding.advice}" in flat) == (finding.level != "ok")
    assert max(len(line) for line in text.splitlines()) <= 110


def test_every_serious_finding_says_what_to_do(smooth_chaos):
    found = [*smooth_chaos.findings, *el.diagnose(random_walk(3000)).findings]
    assert all(f.advice for f in found if f.level != "ok")
    assert all(f.meaning.endswith(".") for f in found)


def test_a_diagnosis_is_plain_data_for_json(wells_diagnosis, smooth_chaos):
    for diagnosis in (wells_diagnosis, smooth_chaos, el.diagnose(random_walk(3000))):
        text = json.dumps(diagnosis.to_dict(), allow_nan=False)
        back = json.loads(text)
        assert back["regime"] == diagnosis.regime
        assert [f["name"] for f in back["findings"]] == [f.name for f in diagnosis.findings]
        assert len(text) < 1e6


def test_what_is_not_finite_is_none_in_plain_data():
    assert plain({"a": np.array([1.0, np.nan]), "b": np.float64(np.inf), "c": (np.int64(2), "x")}) == {
        "a": [1.0, None],
        "b": None,
        "c": [2, "x"],
    }


def test_a_diagnosis_cannot_be_changed(wells_diagnosis):
    with pytest.raises(dataclasses.FrozenInstanceError):
        wells_diagnosis.regime = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        wells_diagnosis.findings[0].level = "ok"
    assert isinstance(wells_diagnosis.findings[0], Finding)


def test_an_unknown_finding_is_answered_with_those_there_are(wells_diagnosis):
    with pytest.raises(KeyError, match="stationarity"):
        wells_diagnosis.finding("stationary")


def test_the_same_series_gets_the_same_diagnosis(linear_series, linear_diagnosis):
    assert el.diagnose(linear_series).to_dict() == linear_diagnosis.to_dict()


def test_units_do_not_matter(linear_series, linear_diagnosis):
    other = el.diagnose(linear_series.map(lambda x: 1e3 * x - 7))
    levels = [{f.name: f.level for f in d.findings} for d in (linear_diagnosis, other)]
    assert levels[0] == levels[1]


def test_what_cannot_be_diagnosed_is_refused_with_a_reason():
    with pytest.raises(el.ArgumentError, match="Argument `series`"):
        el.diagnose(np.zeros((100, 2)))
    with pytest.raises(el.DataError, match="63 usable samples"):
        el.diagnose(el.TimeSeries(np.random.default_rng(0).normal(size=63), 1.0))
    with pytest.raises(el.DataError, match="gap-free stretch"):
        el.diagnose(el.TimeSeries(np.random.default_rng(0).normal(size=(20, 8, 1)), 1.0))
    with pytest.raises(el.DataError, match="constant"):
        el.diagnose(el.TimeSeries(np.column_stack([np.arange(100.0), np.ones(100)]), 1.0))


@pytest.mark.parametrize("samples", [64, 80, 130])
def test_the_shortest_series_get_an_answer(samples):
    for values in (autoregressive(samples, 3.0)[0], np.random.default_rng(0).normal(size=(samples, 5))):
        found = el.diagnose(el.TimeSeries(values, 1.0))
        assert found.summary()
        json.dumps(found.to_dict(), allow_nan=False)


def test_numbers_are_written_to_what_their_error_allows():
    assert measured(0.70312, 0.0214, "s") == "0.703 ± 0.021 s"
    assert measured(1234.5, 120.0) == "1234 ± 120"
    assert measured(0.70312) == "0.703"
    assert measured(12345.6) == "12346"
    assert measured(np.nan) == "unknown"
    assert measured(0.5, 1e-17) == "0.5"
    assert percent(0.1234, 0.0021) == "12.34 ± 0.21 %"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefg")) == "a, b, c, d and 3 more"


def test_a_diagnosis_comes_back_from_plain_data(smooth_chaos):
    content = json.loads(json.dumps(smooth_chaos.to_dict()))
    back = el.Diagnosis.from_dict(content)
    assert back.to_dict() == content
    assert back.summary() == smooth_chaos.summary()


def test_a_diagnosis_and_its_findings_print_in_one_line(smooth_chaos):
    count = len(smooth_chaos.findings)
    assert repr(smooth_chaos) == f"Diagnosis('ballistic', level={smooth_chaos.level!r}, {count} findings)"
    finding = smooth_chaos.finding("regime")
    assert repr(finding) == f"Finding('regime', 'warning': {finding.meaning})"


def test_the_calls_that_the_advice_names_exist():
    """Every `el.name(...)` in the sources of the checks can be looked up."""
    from effective_langevin.diagnose import marginals, markov, regime, sample_size, seasonality, stationarity

    for module in (marginals, markov, regime, sample_size, seasonality, stationarity):
        named = re.findall(r"`[^`]*?\bel\.([\w.]+)\(", inspect.getsource(module))
        assert named
        for path in named:
            assert callable(operator.attrgetter(path)(el)), path
