"""What every strategy does when it is used: each one of the registry goes through the same list of checks.

A score, a mobility, a symmetry or a network is used in a fit; a stepper in a simulation of one model; a transform and a
reader on their own. The checks ask for shapes, repeatability, storage without pickle and short representations; whether
the answers are right is asked in the other folders.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from oracles.registry import MOBILITIES, NETWORKS, SCORES, STEPPERS, SYMMETRIES, SYSTEMS, TRANSFORMS
from oracles.sample_files import WRITERS, awkward

import effective_langevin as el
from effective_langevin.data.io.sources import FORMATS

LINEAR = {"score": el.Gaussian(), "mobility": el.QuadraticVariation()}
LONGEST_REPR = 2000
MEMBERS, SAVED = 3, 20
NOT_YET = (el.Mobility,)  # its owner has not landed a short repr and a comparison yet


@dataclass(frozen=True)
class Case:
    """The arguments of a fit, and the number of fields on a ring of eight points (0: two variables)."""

    settings: dict[str, Any]
    fields: int = 0

    def fit(self):
        return el.fit(series_of(self.fields), **{**LINEAR, **self.settings}, seed=3)


def series_of(fields):
    """Two variables of an Ornstein-Uhlenbeck process, or white noise smoothed in time on a ring of eight points."""
    if not fields:
        return el.systems.OrnsteinUhlenbeck.rotating(2).simulate(duration=200.0, dt=0.1, members=2, seed=5)
    noise = np.random.default_rng(5).normal(size=(1504, 8 * fields))
    return el.TimeSeries(np.mean([noise[i : 1500 + i] * 0.8**i for i in range(5)], axis=0), 0.1)


def fields_of(strategy):
    return getattr(strategy, "channels", 1)


CASES = {f"score {name}": Case({"score": score}) for name, score in SCORES.items()}
CASES |= {f"mobility {name}": Case({"mobility": mobility}) for name, mobility in MOBILITIES.items()}
CASES |= {f"symmetry {name}": Case({"symmetry": group}, fields_of(group)) for name, group in SYMMETRIES.items()}
CASES |= {
    f"network {name}": Case(
        {"score": el.DenoisingScore(network, noise_level=0.25, batch=256, epochs=2, epoch_samples=1024)},
        fields_of(network) if isinstance(network, el.UNet1D) else 0,
    )
    for name, network in NETWORKS.items()
}


def cases():
    """Return the names of the cases; compiling a U-Net takes long, and so do fields; one symmetry is tried always."""
    slow = {name for name in CASES if "UNet1D" in name or name.startswith("symmetry")} - {"symmetry Translations"}
    return [pytest.param(name, marks=pytest.mark.slow if name in slow else ()) for name in CASES]


@pytest.fixture(scope="module", params=cases())
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def model(case, compiled_quickly):
    return case.fit()


def states_of(model):
    return np.random.default_rng(0).normal(size=(2, 3, model.dimension))


@pytest.mark.filterwarnings("ignore::effective_langevin.EstimateWarning")
class TestFit:
    def test_the_model_has_the_shapes_that_it_promises(self, model):
        states, size = states_of(model), model.dimension
        for answer in (model.drift(states), model.score_function(states)):
            assert answer.shape == states.shape
            assert np.isfinite(answer).all()
        assert model.drift(states[0, 0]).shape == (size,)
        for matrix in (model.mobility.matrix, model.mobility.standard_error):
            assert np.shape(matrix) == (size, size)
        assert model.diffusion(states).shape == (*states.shape, size)
        assert np.linalg.eigvalsh(model.diffusion(states)).min() > 0

    def test_the_same_seed_gives_the_same_bits(self, case, model):
        again, states = case.fit(), states_of(model)
        np.testing.assert_array_equal(again.drift(states), model.drift(states))
        np.testing.assert_array_equal(again.mobility.matrix, model.mobility.matrix)
        np.testing.assert_array_equal(again.mobility.standard_error, model.mobility.standard_error)

    def test_a_stored_model_is_the_same_model_and_holds_no_pickle(self, model, tmp_path):
        path = tmp_path / "model.safetensors"
        model.save(path)
        loaded, states = el.load(path), states_of(model)
        np.testing.assert_array_equal(loaded.drift(states), model.drift(states))
        np.testing.assert_array_equal(loaded.mobility.matrix, model.mobility.matrix)
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        assert set(header["__metadata__"]) >= {"format", "format_version", "model"}

    def test_the_model_says_with_which_settings_it_was_made(self, case, model):
        for role, strategy in {**LINEAR, **case.settings}.items():
            assert model.provenance[role]["kind"] == type(strategy).__name__

    def test_products_show_themselves_briefly_and_can_be_compared(self, model):
        products = (model, model.score, model.mobility)
        for product in (one for one in products if type(one) not in NOT_YET):
            assert len(repr(product)) <= LONGEST_REPR
            assert product == product
            assert product != "another"
            assert isinstance(hash(product), int)


@pytest.fixture(scope="module")
def small_model():
    return el.fit(series_of(0), **LINEAR, seed=3)


@pytest.mark.filterwarnings("ignore:LeimkuhlerMatthews is right in the steady state only")
@pytest.mark.parametrize("name", STEPPERS)
def test_a_stepper_gives_finite_paths_of_the_shape_asked_for_and_repeats_them(name, small_model):
    def simulate(seed):
        stepper = STEPPERS[name].stepper
        return small_model.simulate(duration=2.0, members=MEMBERS, seed=seed, dt=0.1, stepper=stepper).values

    paths = simulate(1)
    assert paths.shape[0] == MEMBERS
    assert paths.shape[1] in (SAVED, SAVED + 1)
    assert paths.shape[2] == 2
    assert np.isfinite(paths).all()
    np.testing.assert_array_equal(simulate(1), paths)
    assert (simulate(2)[:, 1:] != paths[:, 1:]).all()


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_gives_finite_paths_of_the_shape_asked_for_and_repeats_them(name):
    system = SYSTEMS[name]

    def simulate(seed):
        return system.simulate(duration=2.0, dt=0.5, members=MEMBERS, seed=seed, burn_in=1.0).values

    paths = simulate(1)
    assert paths.shape[0] == MEMBERS
    assert paths.shape[2] == system.dimension
    assert np.isfinite(paths).all()
    np.testing.assert_array_equal(simulate(1), paths)
    assert (simulate(2)[:, -1] != paths[:, -1]).any()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_leaves_its_series_alone_and_is_the_same_after_storage(name):
    made = TRANSFORMS[name]
    series = made.series()
    before = [segment.copy() for segment in series.segments]
    fitted = made.transform.fit(series)
    applied = fitted.apply(series)
    for segment, kept in zip(series.segments, before):
        np.testing.assert_array_equal(segment, kept)
    state, arrays = el.preprocess.pack(fitted.to_dict())
    again = el.preprocess.from_dict(el.preprocess.unpack(json.loads(json.dumps(state)), arrays))
    for one, other in zip(again.apply(series).segments, applied.segments):
        np.testing.assert_array_equal(one, other)
    assert isinstance(fitted.summary(), str)


def test_every_format_that_can_be_read_is_tried():
    tried = {f".{name.rpartition('.')[2]}" for name in WRITERS} | {".npy"}
    assert {FORMATS[suffix] for suffix in tried} == set(FORMATS.values())


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_reader_refuses_what_is_not_of_its_format_in_one_sentence(suffix, tmp_path):
    path = tmp_path / f"wrong{suffix}"
    path.write_bytes(bytes(range(128, 256)) * 3)
    with pytest.raises(el.EffectiveLangevinError) as caught:
        el.read(path)
    assert path.name in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("name", WRITERS)
def test_a_reader_gives_the_same_bits_twice(name, tmp_path):
    values = awkward()
    WRITERS[name](tmp_path / name, values, 0.05 * np.arange(len(values)))
    first, second = el.read(tmp_path / name), el.read(tmp_path / name)
    np.testing.assert_array_equal(first.values, second.values, strict=True)
    assert (first.names, first.units, first.dt) == (second.names, second.units, second.dt)
