import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm

import effective_langevin as el
from effective_langevin.estimate.score import Score, ScoreFit
from effective_langevin.estimate.space import StateSpace


@pytest.mark.parametrize("shape", [(2,), (5, 2), (3, 4, 2), (0, 2)])
def test_states_of_any_shape_give_values_of_that_shape(linear_model, shape):
    x = np.random.default_rng(0).normal(size=shape) + 10
    assert linear_model.score_function(x).shape == shape
    assert linear_model.drift(x).shape == shape
    assert linear_model.diffusion(x).shape == (*shape[:-1], 2, 2)


def test_values_do_not_depend_on_how_states_are_arranged(wells_model, wells_series):
    x = wells_series.stacked()[:12]
    whole = wells_model.drift(x)
    np.testing.assert_allclose(wells_model.drift(x.reshape(3, 4, 2)).reshape(12, 2), whole, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(wells_model.drift(x[7]), whole[7], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((2, 5)), 1.0])
def test_states_of_another_width_are_refused(linear_model, x):
    with pytest.raises(el.ArgumentError, match="Argument `x` must end in an axis of 2 variables, but got shape"):
        linear_model.score_function(x)


def test_drift_is_phi_times_the_score(wells_model, wells_series):
    x = wells_series.stacked()[::5000]
    expected = [wells_model.mobility.matrix @ s for s in wells_model.score_function(x)]
    np.testing.assert_allclose(wells_model.drift(x), expected, rtol=1e-12)


def test_diffusion_is_the_symmetric_part_of_phi_everywhere(wells_model):
    phi = wells_model.mobility.matrix
    np.testing.assert_allclose(wells_model.diffusion(np.zeros((4, 2))), np.broadcast_to((phi + phi.T) / 2, (4, 2, 2)))


def test_the_score_of_the_wells_is_learned_in_physical_units(wells, wells_model, wells_series):
    """A loose bound: 2e5 samples and a short training give 6-10 % (rms over the steady state); the score in
    standardised units would be 20 % off in the first variable, a wrong sign 200 %."""
    x = wells_series.stacked()[::50]
    exact, learned = wells.score_function(x), wells_model.score_function(x)
    error = np.sqrt(((learned - exact) ** 2).mean(axis=0) / (exact**2).mean(axis=0))
    assert (error < 0.15).all()


def test_the_mobility_of_the_wells_is_recovered(wells, wells_model):
    """Four standard errors, plus 2 % for the smoothing of the score by sigma = 0.05."""
    allowed = 4 * wells_model.mobility.standard_error + 0.02
    assert (np.abs(wells_model.mobility.matrix - wells.mobility) < allowed).all()
    assert wells_model.mobility.standard_error.max() < 0.03


def test_a_change_of_units_changes_the_description_but_not_the_model(linear_series, linear_model):
    """u = a x + b: score / a, Phi a a^T, drift a; the standardised data agree to rounding, hence the models do."""
    scale, shift = np.array([0.1, 40.0]), np.array([-3.0, 7.0])
    other = el.fit(
        linear_series.map(lambda s: s * scale + shift), score=el.Gaussian(), mobility=el.LogCorrelation(), seed=0
    )
    x = linear_series.stacked()[:10]
    u = x * scale + shift
    np.testing.assert_allclose(other.score_function(u), linear_model.score_function(x) / scale, rtol=1e-3)
    np.testing.assert_allclose(other.drift(u), linear_model.drift(x) * scale, rtol=1e-3)
    np.testing.assert_allclose(other.mobility.matrix, np.outer(scale, scale) * linear_model.mobility.matrix, rtol=1e-6)
    np.testing.assert_allclose(
        other.mobility.noise_factor, scale[:, None] * linear_model.mobility.noise_factor, rtol=1e-6
    )


def test_simulation_is_member_time_variable_in_the_series_units(linear_model, linear_series):
    paths = linear_model.simulate(duration=3.0, members=4, seed=0)
    assert paths.values.shape == (4, 31, 2)
    assert (paths.dt, paths.names, paths.units, paths.time_unit) == (0.1, ("T", "h"), ("K", "m"), "d")
    # It starts from states of the data, to the single precision in which it steps.
    gaps = np.abs(paths.values[:, 0, None] - linear_series.stacked()).max(axis=2).min(axis=1)
    assert gaps.max() < 1e-5


def test_same_seed_same_bits_other_seed_other_paths(linear_model):
    one, again, other = (linear_model.simulate(2.0, members=3, seed=s).values for s in (5, 5, 6))
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()
    start = one[:, 0]
    first, second = (linear_model.simulate(2.0, members=3, seed=s, initial=start).values[:, 1:] for s in (5, 6))
    assert (first != second).all()


@pytest.mark.filterwarnings("ignore:Estimators of the mobility disagree")
def test_a_fit_is_reproducible_to_the_bit(linear_series):
    """Also with a random partition and random labels; another seed gives another partition."""
    mobility = el.FiniteVolume(cells=20)
    one, again, other = (el.fit(linear_series, score=el.Gaussian(), mobility=mobility, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.mobility.matrix, again.mobility.matrix)
    np.testing.assert_array_equal(one.states, again.states)
    assert (one.mobility.matrix != other.mobility.matrix).any()


def test_initial_states_sampling_and_step_can_be_given(linear_model):
    start = np.array([[10.0, -1.0], [12.0, -1.1]])
    paths = linear_model.simulate(1.0, members=2, seed=0, dt=0.25, step=0.05, initial=start)
    assert paths.values.shape == (2, 5, 2)
    assert paths.dt == 0.25
    np.testing.assert_allclose(paths.values[:, 0], start, rtol=1e-6)
    with pytest.raises(el.ArgumentError, match=r"Argument `initial` must have shape \(2, 2\), but got \(1, 2\)"):
        linear_model.simulate(1.0, members=2, initial=start[:1])


def test_supplied_noise_drives_the_simulation(linear_model):
    noise = np.zeros((1, 20, 2))
    paths = linear_model.simulate(1.0, members=1, dt=0.1, step=0.05, initial=[[16.0, -0.8]], noise=noise)
    exact = [np.array([16.0, -0.8])]
    for _ in range(20):  # Heun's method in double precision, in physical units
        here = linear_model.drift(exact[-1])
        exact.append(exact[-1] + 0.025 * (here + linear_model.drift(exact[-1] + 0.05 * here)))
    np.testing.assert_allclose(paths.values, exact[::2], rtol=1e-5)
    with pytest.raises(
        el.ArgumentError, match=r"Argument `noise` must have shape \(member, step, var\) = \(1, 20, 2\)"
    ):
        linear_model.simulate(1.0, members=1, dt=0.1, step=0.05, noise=np.zeros((1, 10, 2)))


def test_a_unit_of_supplied_noise_kicks_by_the_noise_factor(linear_model):
    """One Euler-Maruyama step of dx = drift dt + sqrt(2) noise_factor dW, in physical units."""
    start, dw = np.array([[10.0, -1.0]]), np.array([[[0.3, -0.2]]])
    moved = linear_model.simulate(
        0.1, members=1, dt=0.1, step=0.1, initial=start, noise=dw, stepper=el.EulerMaruyama()
    ).values[1]
    expected = (
        start[0] + 0.1 * linear_model.drift(start[0]) + np.sqrt(2) * linear_model.mobility.noise_factor @ dw[0, 0]
    )
    np.testing.assert_allclose(moved, expected, rtol=1e-5)


@pytest.mark.slow
def test_the_model_of_the_wells_follows_the_system_driven_by_the_same_noise(wells, wells_model):
    """Pathwise agreement, which a constant closure that is exact must show (paper, Sec. VI): over two time units the
    distance stays below 0.3 for 9 of 10 members, while different noise leads 1.2 apart (the size of the wells)."""
    start = wells_model.states[:40]
    truth, noise = wells.simulate_with_noise(2.0, dt=0.05, members=40, seed=4, step=0.005, initial=start)
    follow = wells_model.simulate(2.0, members=40, dt=0.05, step=0.005, initial=start, noise=noise)
    other = wells_model.simulate(2.0, members=40, dt=0.05, step=0.005, initial=start, seed=9)
    distance = [np.sqrt(((p.values - truth.values) ** 2).sum(axis=2).mean(axis=1)) for p in (follow, other)]
    assert np.quantile(distance[0], 0.9) < 0.3
    assert np.median(distance[1]) > 0.8


@pytest.mark.parametrize(
    "stepper",
    [el.EulerMaruyama(), el.StochasticHeun(), el.StochasticMidpoint(), el.ExponentialEuler()],
    ids=lambda s: type(s).__name__,
)
def test_every_stepper_keeps_the_covariance_of_the_data(linear_model, linear_series, stepper):
    """400 members after 5 relaxation times: the standard deviation has a relative error of 1 / sqrt(800) = 3.5 %,
    and the covariance of the data themselves 2 %; four of both are allowed together."""
    paths = linear_model.simulate(4.0, members=400, seed=1, dt=4.0, step=0.05, stepper=stepper)
    ratio = paths.values[:, -1].std(axis=0) / linear_series.stacked().std(axis=0)
    np.testing.assert_allclose(ratio, 1, atol=4 * np.hypot(0.035, 0.02))


def test_the_automatic_step_resolves_the_fastest_rate(linear_model):
    """The Jacobian of the linear model is -A of the process: largest |eigenvalue| 1.58, here from 2e4 samples."""
    rates = np.abs(np.linalg.eigvals(el.systems.OrnsteinUhlenbeck.rotating(2).drift_matrix))
    assert linear_model.stiffness() == pytest.approx(rates.max(), rel=0.1)
    assert linear_model.automatic_step(el.EulerMaruyama()) < 0.1 / rates.max()


def without_circulation(model):
    """The same model with the symmetric part of its mobility only."""
    return dataclasses.replace(model, mobility=dataclasses.replace(model.mobility, matrix=model.mobility.symmetric))


@pytest.mark.slow
def test_the_default_stepper_and_its_step_are_used(linear_model):
    """The same bits as with that stepper and step given; supplied noise takes the stepper that draws none."""
    rate = linear_model.stiffness()
    for dt, resolution in ((1e-4, 0.25), (1.0, 0.25 * np.sqrt(np.expm1(rate) / rate)), (4.0, 0.7), (400.0, 0.7)):
        step = linear_model.automatic_step(dt=dt)
        assert step == pytest.approx(resolution / rate, rel=1e-3)
        given = {"stepper": el.StochasticMidpoint(), "step": step}
        default, same = (linear_model.simulate(3 * dt, members=2, seed=1, dt=dt, **a).values for a in ({}, given))
        np.testing.assert_array_equal(default, same)
    assert linear_model.automatic_step() == linear_model.automatic_step(dt=linear_model.dt)
    noise = np.sqrt(0.05) * np.random.default_rng(0).normal(size=(1, 40, 2))
    start = {"noise": noise, "initial": [[10.0, -1.0]], "dt": 0.05, "step": 0.05}
    default, heun = (linear_model.simulate(2.0, **start, stepper=s).values for s in (None, el.StochasticHeun()))
    np.testing.assert_array_equal(default, heun)
    with pytest.raises(ValueError, match="also draws noise itself"):
        linear_model.simulate(2.0, **start, stepper=el.StochasticMidpoint())


@pytest.mark.parametrize("dt", [0.05, 0.3, 1.0])
def test_increments_are_right_by_default_at_every_lag(linear_model, dt):
    """Exact: < (x(t + kh) - x(t))^2 > = 2 diag(C - C(kh)), C(t) = exp(-Phi C^-1 t) C of the model itself.

    1 % for the step, and four standard errors: those of 500 members, from their scatter.
    """
    covariance = linear_model.standardizer.mobility_to_physical(linear_model.score.covariance)
    rates = linear_model.mobility.matrix @ np.linalg.inv(covariance)
    paths = linear_model.simulate(40 * dt, members=500, seed=3, dt=dt, stepper=None).values
    for lag in (1, 2, 4, 8):
        squares = np.square(paths[:, lag:] - paths[:, :-lag]).mean(axis=1)
        exact = 2 * np.diag(covariance - expm(-rates * lag * dt) @ covariance)
        error = squares.std(axis=0) / np.sqrt(len(squares))
        assert np.all(np.abs(squares.mean(axis=0) - exact) < 0.01 * exact + 4 * error)


def test_a_stepper_for_the_steady_state_warns_of_its_increments(linear_model):
    """At one step per interval its paths take half the squared step (and a share of the order of the step)."""
    reversible = without_circulation(linear_model)
    with pytest.warns(el.EstimateWarning, match="LeimkuhlerMatthews is right in the steady state only.*50 % too small"):
        paths = reversible.simulate(10.0, members=200, dt=0.02, step=0.02, stepper=el.LeimkuhlerMatthews()).values
    ratio = np.square(np.diff(paths, axis=1)).mean(axis=(0, 1)) / (2 * 0.02 * np.diag(reversible.mobility.matrix))
    np.testing.assert_allclose(ratio, 0.5, atol=0.05)


# The clean state behind a blurred one.


def blurred_model(spread, level=0.5):
    """Two independent Gaussian variables of standard deviation 2 and 2 x `spread`, in units of 2, with exact score."""
    covariance = np.diag([1.0, spread**2]) + level**2 * np.eye(2)
    score = ScoreFit(Score.linear(np.linalg.inv(covariance)), level, -np.eye(2), 0.0, covariance)
    units = el.Standardizer(np.array([5.0, -3.0]), np.array([2.0, 2.0]))
    mobility = el.Mobility(np.diag([4.0, 2.0]), np.zeros((2, 2)), "exact", np.zeros((0, 2, 2)))
    states = np.random.default_rng(0).multivariate_normal(units.mean, 4 * covariance, 500)
    return el.LangevinModel(
        standardizer=units,
        score=score,
        mobility=mobility,
        dt=0.5,
        names=("x", "y"),
        units=("", ""),
        time_unit="",
        states=states,
        space=StateSpace((None,) * 2),
    )


def test_denoising_returns_the_expected_clean_state():
    """y + sigma^2 s(y) in standardised units: x-hat = x + sigma^2 std^2 s(x) in physical ones."""
    model = blurred_model(spread=0.3)
    raw, clean = (model.simulate(5.0, members=4, seed=1, denoise=d).values for d in (False, True))
    np.testing.assert_allclose(clean, raw + 0.25 * 4.0 * model.score_function(raw), rtol=1e-5, atol=1e-5)


def test_denoising_removes_the_blur_of_a_direction_without_spread():
    """Blurred by 0.5 x 2; the clean state has none of it. Where there is spread it is the posterior mean, whose
    variance is C^2 / (C + sigma^2) = 1 / 1.25: 4 standard errors of 400 members at 8 times, independent by then."""
    model = blurred_model(spread=0.0)
    raw, clean = (model.simulate(40.0, members=400, seed=1, dt=5.0, denoise=d).values[:, 1:] for d in (False, None))
    assert raw[..., 1].std() == pytest.approx(1.0, rel=0.05)
    np.testing.assert_allclose(clean[..., 1], -3.0, atol=1e-5)
    assert clean[..., 0].var() / 4 == pytest.approx(1 / 1.25, rel=4 * np.sqrt(2 / 3200))
    assert clean[..., 0].mean() == pytest.approx(5.0, abs=4 * 2 / np.sqrt(3200))


@pytest.mark.parametrize(("spread", "denoised"), [(0.49, True), (0.51, False)])
def test_by_default_the_clean_state_is_returned_where_the_blur_exceeds_the_spread(spread, denoised):
    model = blurred_model(spread)
    assert model.score.resolved is not denoised
    default, expected, other = (
        model.simulate(2.0, members=2, seed=1, denoise=d).values for d in (None, denoised, not denoised)
    )
    np.testing.assert_array_equal(default, expected)
    assert (default != other).any()


def test_a_diverged_member_is_left_out_with_a_warning(linear_model):
    start = np.array([[10.0, -1.0], [1e30, 0.0], [11.0, -1.0]])
    with pytest.warns(el.EstimateWarning, match="1 of 3 members diverged at step .* left out"):
        paths = linear_model.simulate(1.0, members=3, seed=0, initial=start)
    assert paths.values.shape[0] == 2
    np.testing.assert_allclose(paths.values[:, 0, 0], [10, 11], rtol=1e-6)


def test_divergence_of_all_members_is_an_error(linear_model):
    with pytest.raises(el.DivergenceError, match="All 1 members diverged"):
        linear_model.simulate(1.0, members=1, initial=[[1e30, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"duration": 0}, "duration"),
        ({"duration": -1.0}, "duration"),
        ({"duration": 1.0, "members": 0}, "members"),
        ({"duration": 1.0, "seed": -1}, "seed"),
        ({"duration": 1.0, "seed": 0.5}, "seed"),
        ({"duration": 1.0, "dt": 0}, "dt"),
        ({"duration": 1.0, "step": "small"}, "step"),
    ],
)
def test_simulate_refuses_values_that_cannot_work(linear_model, arguments, name):
    with pytest.raises(el.ArgumentError, match=f"Argument `{name}` must be"):
        linear_model.simulate(**arguments)


def test_a_model_is_frozen_and_says_what_it_is(linear_model):
    with pytest.raises(dataclasses.FrozenInstanceError):
        linear_model.dt = 1.0
    assert repr(linear_model).startswith("LangevinModel(T and h; LogCorrelation mobility")
    assert linear_model.diagnostics["score"]["stein_error"] == linear_model.score.stein_error


def test_units_are_labels_as_those_of_a_series(linear_model, linear_series):
    assert linear_model.units == linear_series.units
    with pytest.deprecated_call(match="now `model.units`"):
        assert linear_model.unit_labels == linear_series.units


def test_fit_asks_for_a_time_series_of_some_length():
    with pytest.raises(
        el.ArgumentError, match=r"(?s)Argument `series` must be a TimeSeries.*el\.TimeSeries\(values, dt=\.\.\.\)"
    ):
        el.fit(np.zeros((1000, 2)))
    short = el.TimeSeries(np.random.default_rng(0).normal(size=(50, 1)), dt=1.0)
    with pytest.raises(el.DataError, match="has 50 usable samples; a fit needs at least 100"):
        el.fit(short)


def test_fit_records_where_the_model_came_from(linear_model, linear_series):
    provenance = linear_model.provenance
    assert provenance["seed"] == 0
    assert provenance["samples"] == linear_series.n_samples
    assert provenance["score"]["kind"] == "Gaussian"
    assert provenance["mobility"] == {"kind": "LogCorrelation", "lag": 1}
    assert set(provenance["versions"]) >= {"effective-langevin", "jax", "numpy", "python"}


def test_names_of_earlier_versions_work_with_a_warning(linear_model, linear_series):
    with pytest.warns(DeprecationWarning, match="is now `model.to_model_variables`"):
        own = linear_model.transformed(linear_series)
    np.testing.assert_array_equal(own.stacked(), linear_series.stacked())
    with pytest.warns(DeprecationWarning, match=r"is now `el.match_variances\(model, ...\)`"):
        old = linear_model.settled(2.0, members=20, rounds=1)
    new = el.match_variances(linear_model, 2.0, members=20, rounds=1)
    np.testing.assert_array_equal(old.score.stein, new.score.stein)
    with pytest.raises(AttributeError, match="'LangevinModel' object has no attribute 'settle'"):
        _ = linear_model.settle


def test_a_summary_tells_mobility_and_dynamics(linear_model):
    text = linear_model.summary()
    assert "\n  Phi =\n" in text
    assert "relaxation times" in text
    assert "rotations" in text
    assert "entropy production" in text
    assert repr(linear_model.timescales()).startswith("Timescales(2 modes; relaxation times ")
    assert repr(linear_model.circulation()).startswith("Circulation(rotations ")
    assert repr(linear_model.entropy_production()).startswith("EntropyProduction(entropy production ")
    assert "\n" not in repr(linear_model)
