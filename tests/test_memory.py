"""Models with memory: the equation of motion comes out by itself, and all results speak of the observed variables."""

import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.comparison import tabulate
from effective_langevin.estimate.closure.evidence import Candidate, MemoryChoice
from effective_langevin.estimate.closure.residual import ResidualDiffusion
from effective_langevin.estimate.closure.smoothing import choose_width
from effective_langevin.estimate.mobility.evidence import HorizonEvidence
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.fit import _default_score
from effective_langevin.memory import _SPARED, _candidates, _folds, as_memory, name_memory

FRICTION = 0.5


def observed(states, dt):
    """Return the series of x alone, from states (member, time, (x, v))."""
    return el.TimeSeries(np.asarray(states, float)[..., :1], dt, names=["x"])


def linear_oscillator(dt, samples, friction=FRICTION, seed=1):
    """Return exact samples of dv = (-x - friction v) dt + sqrt(2 friction) dW; variances of x and v are one."""
    from scipy.linalg import expm

    step = expm(dt * np.array([[0.0, 1.0], [-1.0, -friction]]))
    noise = np.linalg.cholesky(np.eye(2) - step @ step.T)
    draw, members = np.random.default_rng(seed), 40
    state, states = draw.normal(size=(members, 2)), []
    for _ in range(samples // members):
        states.append(state)
        state = state @ step.T + draw.normal(size=state.shape) @ noise.T
    return np.array(states).transpose(1, 0, 2)


def slopes_of_drift(model):
    """Return the slopes of the force on v, by x and by v."""
    states = model.states[:200]
    return np.linalg.lstsq(np.column_stack([states, np.ones(200)]), model.drift(states), rcond=None)[0][:2, 1]


@pytest.fixture(scope="module")
def oscillator():
    """A model of an underdamped oscillator seen through x, and its series."""
    series = observed(linear_oscillator(0.1, 20_000), 0.1)
    return el.fit(series, memory="velocity", score=el.Gaussian(), check="off"), series


def test_the_equation_of_motion_comes_out_by_itself(oscillator):
    """Exact: D of v is the friction, < v^2 > one; four standard errors of D, of force and friction 4 x 2 %."""
    model, _ = oscillator
    phi, error = model.mobility.matrix, model.mobility.standard_error
    assert abs(phi[1, 1] - FRICTION) < 4 * error[1, 1]
    assert error[1, 1] < 0.05 * FRICTION
    assert slopes_of_drift(model) == pytest.approx([-1.0, -FRICTION], rel=0.08)


def test_noise_acts_on_the_velocity_alone(oscillator):
    model, _ = oscillator
    diffusion = model.diffusion(model.states[:5])
    assert np.array_equal(diffusion[:, 0], np.zeros((5, 2)))
    assert np.array_equal(diffusion[:, :, 0], np.zeros((5, 2)))
    assert model.current(model.states[:5])[:, 0] == pytest.approx(model.states[:5, 1], rel=1e-5)


def test_results_speak_of_the_observed_variables(oscillator):
    model, series = oscillator
    assert model.simulate(1.0, members=2, seed=1).names == ("x",)
    assert model.forecast(series.segments[0][None], 1.0, members=3).values.shape == (1, 3, 10, 1)
    assert model.circulation().frequency.size == 0
    produced = model.entropy_production()
    assert abs(produced.value) < 0.01  # reversible: v changes its sign


def test_a_start_needs_the_observed_past_alone(oscillator):
    model, series = oscillator
    history = series.segments[0][:8]
    from_history = model.forecast(history[None], [0.1], members=400, seed=1).values.mean()
    from_series = model.forecast(el.TimeSeries(history, 0.1, names=["x"]), [0.1], members=400, seed=1).values.mean()
    assert from_history == from_series
    with pytest.raises(el.DataError, match="leaves nothing"):
        model.forecast(history[None, :2], [0.1])


@pytest.mark.slow
def test_forecasts_know_how_well_the_velocity_is_known(oscillator):
    """Without the error of the velocity, the spread at one sampling interval is too small by a fifth.

    One step per interval would make it 12 % too large. Three standard errors of a ratio from 1000 starts.
    """
    model, series = oscillator
    found = el.hindcast(model, series, [0.1, 0.5, 1.0], members=20, starts=1000).scores["model"]
    assert found.spread[:, 0] == pytest.approx(found.rmse[:, 0], rel=0.07)


def test_a_model_with_memory_is_stored(oscillator, tmp_path):
    model, _ = oscillator
    model.save(tmp_path / "m.safetensors")
    again = el.load(tmp_path / "m.safetensors")
    assert again.space == model.space
    assert np.array_equal(again.drift(model.states[:9]), model.drift(model.states[:9]))


@pytest.mark.slow
def test_validation_and_report_speak_of_the_observed_variables(oscillator, tmp_path):
    model, series = oscillator
    found = el.validate(model, series, members=64)
    assert found.data.names == found.paths.names == ("x",)
    assert found.verdict.level in ("good", "usable", "undecided")
    found.report(tmp_path / "report.html")
    assert "dx/dt" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("dt", "friction"), [(0.05, 0.5), (0.1, 1.0), (0.2, 1.0)])
@pytest.mark.slow
def test_noise_of_an_oscillator_is_right_at_coarse_sampling(dt, friction):
    """Differences of three samples would give 2/3 of D; here the error is one of second order in friction times dt.

    So are those of friction and force, the latter with a standard error of 0.5 %. The spread of v as three differences
    see it would make the friction too large by 10 % at 0.2, and noise that is both in x and in its second difference
    the force too small by 7 %.
    """
    series = observed(linear_oscillator(dt, 100_000, friction, seed=3), dt)
    model = el.fit(series, memory=el.Velocity(), score=el.Gaussian(), check="off")
    found, error = model.mobility.matrix[1, 1], model.mobility.standard_error[1, 1]
    allowed = (friction * dt) ** 2 + 4 * error / friction
    assert abs(found / friction - 1) < allowed
    spring, damping = slopes_of_drift(model)
    assert damping == pytest.approx(-friction, rel=allowed)
    assert spring == pytest.approx(-1.0, abs=0.5 * (friction * dt) ** 2 + 0.02)


@pytest.mark.slow
def test_motion_in_a_double_well_has_its_friction_and_noise():
    system = el.systems.DoubleWellOscillator()
    states = system.simulate(400.0, dt=0.05, members=20, seed=2).values
    model = el.fit(observed(states, 0.05), memory="velocity", check="off")
    noise = model.mobility.matrix[1, 1]
    friction = noise / np.var(model.states[:, 1])
    assert noise == pytest.approx(system.friction * system.temperature, rel=0.1)
    assert friction == pytest.approx(system.friction, rel=0.1)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        ("none", None),
        ("velocity", el.Velocity()),
        ("velocity:2", el.Velocity(2)),
        ("delays:3", el.Delays(3)),
        ("auto", "auto"),
    ],
)
def test_memory_is_known_by_name(given, meant):
    assert as_memory(given) == meant


def test_names_of_memories_are_read_back():
    for memory in (None, el.Velocity(), el.Velocity(2), el.Delays(4, 2)):
        assert as_memory(name_memory(memory)) == memory


@pytest.mark.parametrize("given", ["speed", "delays", "delays:0", "delays:2:x", "velocity:0", "velocity:1:2", 3])
def test_other_memories_are_refused(given):
    with pytest.raises(el.ArgumentError, match="Argument `memory` must be"):
        as_memory(given)


def test_memory_is_refused_where_it_means_nothing():
    series = el.TimeSeries(np.random.default_rng(0).normal(size=(400, 2)), 0.1, periods=[None, 6.0])
    with pytest.raises(el.ArgumentError, match="angles"):
        el.fit(series, memory="velocity", check="off")
    line = el.TimeSeries(series.values[:, :1], 0.1)
    with pytest.raises(el.ArgumentError, match="StateDependent"):
        el.fit(line, memory="velocity", mobility=el.LogCorrelation(), check="off")


@pytest.mark.slow
def test_velocities_of_a_rough_series_are_warned_of():
    series = el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(200.0, dt=0.1, seed=1)
    with pytest.warns(el.EstimateWarning, match="not smooth"):
        el.fit(series, memory="velocity", score=el.Gaussian(), check="off")


def test_the_evidence_of_a_choice_is_stored():
    tried = (Candidate("none", 1.0, 0.2, 0.01), Candidate("delays:2:3", float("inf"), float("inf"), float("nan")))
    choice = MemoryChoice("none", "it is best", (0.1,), 20, tried)
    plain = choice.to_dict()
    assert plain["candidates"][1]["loss"] is None
    assert MemoryChoice.from_dict(plain).candidates[1].loss == float("inf")
    assert choice.rows()[1][:2] == ("2 delays of 3 steps", "members diverged")


def test_memories_are_described_in_words():
    named = {
        "velocity:2": "velocities and accelerations",
        "velocity:3": "3 derivatives",
        "delays:2:1": "2 delays of a step",
    }
    assert {kind: MemoryChoice.describe(kind) for kind in named} == named


def test_noise_on_hidden_variables_forgets_the_smoothing_at_the_speed_of_motion():
    """Exact: D = width^2 times speed where the rest is less, the rest itself where it is more, zero on x."""
    found = np.array([[5.0, 1.0, 1.0], [1.0, 1e-6, 0.0], [1.0, 0.0, 7.0]])
    rest = ResidualDiffusion(lambda weights: found, 1, HorizonEvidence("residual", np.ones(1)), False)
    lifted = rest.on_hidden(1, np.array([0.01, 0.01, 0.04]), np.array([3.0, 5.0, 10.0])).estimate(np.ones(1))
    assert lifted == pytest.approx(np.diag([0.0, 0.05, 7.0]), abs=1e-12)


def test_the_score_of_a_thin_set_has_one_more_layer():
    """A narrow width makes a steep score, whose pull to the set two layers leave too weak. Others stay cheap."""
    time = 0.05 * np.arange(20_000)
    curved = np.column_stack([np.cos(time), np.sin(time), np.cos(2 * time)])
    rough = np.random.default_rng(1).normal(size=(20_000, 3))
    layers = []
    for values in (curved, rough):
        series = el.TimeSeries(values, 0.05)
        score = _default_score(series, StateSpace.of(series, NoSymmetry()).with_hidden(1))
        layers.append((score.noise_level < 0.1, len(score.network.hidden)))
    assert layers == [(True, 3), (False, 2)]


def test_the_width_beside_a_thin_set_hides_one_percent_of_the_velocity():
    """Noise of width w hides w^2 / (1 + w^2) of a circle's velocity, half of it where the circle is seen twice: 0.5 %.

    Of the velocity of cos 2 t, which is in cos t sin t alone, it hides about 4 w^2: 4 %.
    """
    time = 0.05 * np.arange(4000)
    twice = np.column_stack([np.cos(time), np.sin(time), np.cos(time + 0.5), np.sin(time + 0.5)])
    assert choose_width(el.TimeSeries(twice, 0.05)) == 0.1
    curved = np.column_stack([np.cos(time), np.sin(time), np.cos(2 * time)])
    assert choose_width(el.TimeSeries(curved, 0.05)) < 0.1
    rough = np.random.default_rng(1).normal(size=(4000, 2))
    assert choose_width(el.TimeSeries(rough, 0.05)) == 0.1


@pytest.mark.parametrize(("samples", "stretches"), [(386, 2), (100, 1), (100_000, 10)])
def test_short_records_hold_out_fewer_and_longer_stretches(samples, stretches):
    """Every stretch has the past of five samples and the leads of one three times over."""
    series = el.TimeSeries(np.random.default_rng(1).normal(size=samples), 1.0)
    ((train, test),) = _folds(series, 6, 1)
    assert train.n_samples == pytest.approx(0.8 * samples, abs=2)
    assert len(test.segments) == stretches or stretches < 10
    assert min(len(segment) for segment in test.segments) >= min(18, 0.2 * samples)
    assert test.segments[0] == pytest.approx(series.split(0.2, len(test.segments))[1].segments[0])


def test_every_sample_of_a_short_record_is_held_out_once():
    series = el.TimeSeries([np.arange(150.0)[:, None], np.arange(150.0, 380.0)[:, None]], 1.0)
    folds = _folds(series, 5, 5)
    held_out = np.sort(np.concatenate([test.stacked()[:, 0] for _, test in folds]))
    assert np.array_equal(held_out, np.arange(380.0))
    for train, test in folds:
        both = np.sort(np.concatenate([train.stacked()[:, 0], test.stacked()[:, 0]]))
        assert np.array_equal(both, np.arange(380.0))
        assert all(
            np.array_equal(t, part[:, 0] - 150 * r) for part, t, r in zip(test.segments, test.times, test.records)
        )


@pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")
def test_the_memory_of_a_short_record_is_chosen_by_forecasts_from_all_of_it():
    """A damped oscillation of 14 samples in 300: every fifth is held out in turn, where one fifth has 50 starts."""
    draw, x = np.random.default_rng(0), [0.0, 0.0]
    for _ in range(400):
        x.append(1.6 * x[-1] - 0.8 * x[-2] + draw.normal())
    linear = {"score": el.Gaussian(), "mobility": el.LogCorrelation(), "check": "off"}
    choice = el.fit(el.TimeSeries(x[-300:], 1.0), memory="auto", **linear).mobility.evidence.memory
    assert choice.kind.startswith("delays")
    assert choice.starts > 180


def test_a_memory_that_is_less_simple_must_save_one_percent_of_the_error():
    draw = np.random.default_rng(0).normal(size=(200, 1))
    scores = {"none": 1 + 0.1 * draw, "velocity:2": 0.03 + 0.001 * draw, "delays:5:7": 0.025 + 0.001 * draw}
    assert tabulate(scores, np.ones(1), "").simplest == "delays:5:7"
    assert tabulate(scores, np.ones(1), "", _SPARED).simplest == "velocity:2"
    scores["velocity:2"] += 0.02
    assert tabulate(scores, np.ones(1), "", _SPARED).simplest == "delays:5:7"


def test_delays_are_tried_where_sampling_is_coarse_or_the_record_short():
    fine, coarse = (el.TimeSeries(np.sin(step * np.arange(4000.0)), 1.0) for step in (0.02, 0.4))
    assert [name_memory(m) for m in _candidates(coarse, True)][:4] == ["none", "delays:1:1", "velocity", "velocity:2"]
    assert [name_memory(m) for m in _candidates(fine, True)][:3] == ["none", "velocity", "velocity:2"]
    assert [name_memory(m) for m in _candidates(fine, False)] == ["none", "delays:1:1", "delays:3:1"]


def test_auto_finds_no_memory_where_there_is_none():
    series = el.systems.OrnsteinUhlenbeck([[1.0]]).simulate(300.0, dt=0.1, seed=4)
    model = el.fit(series, memory="auto", score=el.Gaussian(), mobility=el.LogCorrelation())
    assert model.mobility.evidence.memory.kind == "none"
    assert model.names == series.names
    assert model.provenance["memory"] == "none"


@pytest.mark.slow
def test_auto_finds_the_velocity_of_an_oscillator():
    series = observed(linear_oscillator(0.1, 8_000), 0.1)
    model = el.fit(series, memory="auto", score=el.Gaussian())
    choice = model.mobility.evidence.memory
    assert choice.kind == "velocity"
    assert model.names == ("x", "dx/dt")
    losses = {tried.kind: tried.loss for tried in choice.candidates}
    assert losses["velocity"] < 0.8 * losses["none"]


@pytest.mark.slow
def test_chaos_in_three_variables_is_found_from_one():
    """Lorenz-63 without noise, 100 000 samples of x: its steady state and correlations come from (x, v, a).

    ACF errors of 0.03 at 200 000 samples, sampling error 0.02 to 0.03; with (x, v) 0.06. The spread within 3 %.
    """
    states = el.systems.StochasticLorenz63(noise=0.0).simulate(125.0, dt=0.01, members=8, seed=3).values
    series = observed(states, 0.01)
    model = el.fit(series, memory="velocity:2", seed=1, check="off")
    assert model.score.noise_level == 0.05
    diffusion = model.diffusion(model.states[:1])[0]
    assert np.array_equal(diffusion[0], np.zeros(3))
    found = el.validate(model, series, seed=2)
    assert found.comparison.diverged == 0
    assert found.metrics["acf_rmse"] < 0.05 + found.metrics["acf_rmse_floor"]
    assert found.paths.stacked().std() == pytest.approx(series.stacked().std(), rel=0.03)
