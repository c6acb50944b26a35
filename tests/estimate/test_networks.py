import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin.estimate.networks import (
    OnCircles,
    OnGrid,
    Residual,
    Sum,
    UNet,
    describe_network,
    forms,
    freeze,
    rebuild_network,
    scale,
)
from effective_langevin.estimate.networks.unet import BatchNorm
from effective_langevin.estimate.score import Score
from effective_langevin.execution import convolution
from effective_langevin.execution.batches import evaluate_batch
from effective_langevin.execution.convolution import Convolution
from effective_langevin.execution.flat import FlatUNet
from effective_langevin.execution.lowering import lower
from effective_langevin.execution.modal import ModalUNet
from effective_langevin.model.closure import LangevinDrift

pytestmark = pytest.mark.usefixtures("compiled_quickly")
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
SMALL = el.UNet1D(base=2, multipliers=(1, 2))
SMALL_BATCH = dataclasses.replace(SMALL, normalization="batch")
SHAPES = {
    "11 points": (SMALL, 11),
    "kernel 4 on 3 points": (el.UNet1D(base=4, multipliers=(2,), kernel=4), 3),
    "2 fields of 7 points": (el.UNet1D(base=2, multipliers=(3,), kernel=2, channels=2), 14),
}
each_shape = pytest.mark.parametrize(("description", "dimension"), SHAPES.values(), ids=SHAPES.keys())


def built(description, dimension, seed=0):
    """A network with random weights and biases everywhere: the last layer starts at zero, which would hide all else."""
    shapes = eqx.filter_eval_shape(description.build, dimension, key=KEY)
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda a: jnp.asarray(rng.normal(size=a.shape) * np.sqrt(1 / a.shape[0]), a.dtype),
        shapes,
        is_leaf=lambda a: isinstance(a, jax.ShapeDtypeStruct),
    )


def states(dimension, count=6):
    return jnp.asarray(np.random.default_rng(dimension).normal(size=(count, dimension)), jnp.float32)


def shifted(x, by, channels=1):
    """Every field moved around the ring."""
    return np.roll(np.asarray(x).reshape(*x.shape[:-1], channels, -1), by, axis=-1).reshape(x.shape)


def apart(one, other):
    """Largest difference relative to the size of the values."""
    return np.abs(np.asarray(one) - np.asarray(other)).max() / np.abs(np.asarray(other)).max()


# The convolution, against a plain loop.


RINGS = [(5, 9), (5, 8), (2, 7), (4, 6), (1, 5), (3, 3), (5, 3), (8, 3), (5, 2), (3, 1), (5, 33)]
each_ring = pytest.mark.parametrize(("kernel", "points"), RINGS)
FORMS = (convolution.by_mode, convolution.by_library, convolution.by_window, convolution.by_matrix)
each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)


def plainly_convolved(h, weight):
    """Point by point and tap by tap."""
    (taps, _, outputs), points = weight.shape, h.shape[1]
    out = np.zeros((len(h), points, outputs))
    for p in range(points):
        for i in range(taps):
            out[:, p] += h[:, (p + i - (taps - 1) // 2) % points] @ weight[i]
    return out


@each_ring
def test_a_convolution_is_circular_and_centred(kernel, points):
    """An even kernel reaches one point further ahead than back; a long one goes round the ring more than once."""
    h, weight, bias = RNG.normal(size=(2, points, 3)), RNG.normal(size=(kernel, 3, 4)), RNG.normal(size=4)
    layer = Convolution(jnp.asarray(weight.reshape(-1, 4), jnp.float32), jnp.asarray(bias, jnp.float32))
    np.testing.assert_allclose(layer(jnp.asarray(h, jnp.float32)), plainly_convolved(h, weight) + bias, atol=1e-5)


@pytest.mark.slow
@each_form
@each_ring
def test_every_form_of_the_convolution_has_the_value_and_the_gradients_of_the_plain_one(form, kernel, points):
    """For y = w * h and weights g, d<g, y>/dh is g * (w reversed), and d<g, y>/dw_i the product of g with shifted h."""
    with jax.enable_x64(True):
        h, weight = RNG.normal(size=(2, points, 3)), RNG.normal(size=(kernel, 3, 4))
        g = RNG.normal(size=(2, points, 4))
        y, pull = jax.vjp(form, jnp.asarray(h), jnp.asarray(weight))
        by_input, by_weight = pull(jnp.asarray(g))
    offsets = np.arange(kernel) - (kernel - 1) // 2
    expected = sum(np.roll(g @ w.T, o, axis=1) for o, w in zip(offsets, weight))
    np.testing.assert_allclose(y, plainly_convolved(h, weight), atol=1e-12)
    np.testing.assert_allclose(by_input, expected, atol=1e-12)
    shifted_products = [np.einsum("bpi,bpo->io", np.roll(h, -o, axis=1), g) for o in offsets]
    np.testing.assert_allclose(by_weight, shifted_products, atol=1e-12)


@pytest.mark.parametrize("points", [6, 7, 2, 3])
def test_a_strided_convolution_takes_pairs_and_closes_the_ring_where_one_is_left_over(points):
    h, weight = RNG.normal(size=(2, points, 3)), RNG.normal(size=(2, 3, 4))
    here = np.arange(0, points, 2)
    expected = h[:, here] @ weight[0] + h[:, (here + 1) % points] @ weight[1]
    layer = Convolution(jnp.asarray(weight.reshape(-1, 4), jnp.float32), jnp.zeros(4), stride=2)
    np.testing.assert_allclose(layer(jnp.asarray(h, jnp.float32)), expected, atol=1e-5)


@pytest.mark.parametrize("points", [6, 7, 2, 3])
def test_a_strided_convolution_as_one_matrix_has_the_value_and_the_gradient_of_the_plain_one(points):
    h, weight = RNG.normal(size=(2, points, 3)), RNG.normal(size=(2, 3, 4))
    g, here = RNG.normal(size=(2, -(-points // 2), 4)), np.arange(0, points, 2)
    with jax.enable_x64(True):
        y, pull = jax.vjp(lambda w: convolution.by_matrix(jnp.asarray(h), w, 2), jnp.asarray(weight))
        (by_weight,) = pull(jnp.asarray(g))
    np.testing.assert_allclose(y, sum(h[:, (here + i) % points] @ weight[i] for i in range(2)), atol=1e-12)
    expected = [np.einsum("bpi,bpo->io", h[:, (here + i) % points], g) for i in range(2)]
    np.testing.assert_allclose(by_weight, expected, atol=1e-12)


def test_the_last_layer_by_columns_has_the_value_and_the_gradient_of_a_product(monkeypatch):
    h, g = (jnp.asarray(RNG.normal(size=(4, 6, n)), jnp.float32) for n in (8, 2))
    layer = Convolution.fresh(8, 2, 1, key=jax.random.key(1))
    found = []
    for one_cpu in (True, False):
        monkeypatch.setattr(convolution, "one_cpu", lambda one_cpu=one_cpu: one_cpu)
        value, pull = jax.vjp(lambda layer, h: layer(h), layer, h)
        found.append(jax.tree.leaves((value, pull(g))))
    for plain, by_columns in zip(*found):
        np.testing.assert_allclose(by_columns, plain, rtol=1e-5, atol=1e-5)


def test_half_the_digits_change_a_convolution_by_less_than_a_hundredth():
    h, weight = jnp.asarray(RNG.normal(size=(50, 8, 16))), jnp.asarray(RNG.normal(size=(5, 16, 8)))
    whole, half = convolution.by_matrix(h, weight), convolution.by_matrix(h, weight, low_precision=True)
    assert 0 < apart(half, whole) < 0.01
    assert half.dtype == whole.dtype


def test_on_a_gpu_a_hidden_layer_may_have_half_the_digits_but_never_the_state(monkeypatch):
    monkeypatch.setattr(convolution, "one_cpu", lambda: False)
    for inputs in (1, 16):
        layer = Convolution.fresh(inputs, 4, 5, key=jax.random.key(0))
        h = jnp.asarray(RNG.normal(size=(3, 16, inputs)), jnp.float32)
        assert apart(layer(h), convolution.by_window(h, layer.weight.reshape(5, inputs, 4))) < 1e-5
        assert (apart(layer(h, low_precision=True), layer(h)) > 1e-5) == (inputs == 16)


# The U-Net.


in_batch = eqx.filter_jit(evaluate_batch)


@eqx.filter_jit
def every_form(network, x):
    """A batch at once, its states one by one, and in the forms for many steps on a CPU and on a GPU."""
    others = [lower(network, x.shape[1])]
    if isinstance(network, UNet):
        others = [FlatUNet.of(network, x.shape[1]), ModalUNet.of(network, x.shape[1])]
    return evaluate_batch(network, x), jax.vmap(network)(x), *(jax.vmap(form)(x) for form in others)


@eqx.filter_jit
def before_and_after_freezing(network, x):
    return evaluate_batch(network, x), evaluate_batch(network, x[:3]), freeze(network, x)


@pytest.mark.slow
@each_shape
def test_the_u_net_maps_states_to_vectors_of_the_same_length_in_every_form_alike(description, dimension):
    x = states(dimension)
    batch, *others = every_form(built(description, dimension), x)
    assert batch.shape == x.shape
    assert np.std(batch) > 0.01
    assert len(others) == 3
    for other in others:
        assert apart(other, batch) < 1e-5


def test_with_half_the_digits_the_u_net_for_a_gpu_is_right_to_a_percent():
    """bfloat16 has 8 bits: each of the 20 layers rounds to 1 in 500."""
    network, x = built(el.UNet1D(base=4), 32), states(32)
    whole, half = (jax.vmap(forms.convert(FlatUNet, network, 32, dtype))(x) for dtype in (jnp.float32, jnp.bfloat16))
    assert half.dtype == jnp.float32
    size = np.sqrt(np.mean(np.square(whole)))
    assert 1e-4 * size < np.sqrt(np.mean(np.square(half - whole))) < 0.02 * size


@pytest.mark.parametrize("precondition", [True, False])
def test_only_what_stands_beside_a_linear_part_is_stepped_with_half_the_digits(precondition, monkeypatch):
    network = built(el.UNet1D(base=2, multipliers=(1,)), 8)
    monkeypatch.setattr(forms, "one_cpu", lambda: False)
    whole = Residual(jnp.eye(8), network) if precondition else network
    lowered = Score.learned(whole, np.eye(8), -np.ones(8), np.ones(8)).lower(low_precision=True).network
    flat = lowered.network if precondition else lowered
    assert flat.out[0].dtype == (jnp.bfloat16 if precondition else jnp.float32)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 2])
def test_the_form_for_a_gpu_absorbs_the_gain_and_a_drift_the_frame(channels, monkeypatch):
    """Random matrices, so that an order or a transpose gone wrong would show."""
    monkeypatch.setattr(forms, "one_cpu", lambda: False)
    size = 16 * channels
    network, x = built(el.UNet1D(base=4, multipliers=(1, 2), channels=channels), size), states(size)
    linear, gain, phi = (np.eye(size) + 0.3 * RNG.normal(size=(size, size)) for _ in range(3))
    frame = np.diag(RNG.uniform(0.5, 2.0, size)) + 0.1
    box = 0.7 * np.ones(size)
    score = Score.learned(Residual(jnp.asarray(linear, jnp.float32), network), np.eye(size), -box, box)
    score = score.scaled_by(gain).in_frame(frame)
    flat, expected = score.lower(), score.in_batch(x)
    assert flat.gain is None
    assert isinstance(flat.network.network, FlatUNet)
    assert apart(flat.in_batch(x), expected) < 1e-4
    for form in (score, flat):
        assert apart(LangevinDrift(form, jnp.asarray(phi, jnp.float32)).in_batch(x), expected @ phi.T) < 1e-4


@pytest.mark.slow
@each_shape
def test_freezing_keeps_the_values_on_the_batch_it_was_frozen_on(description, dimension):
    """And frees them from who else is in the batch, on whom a normalised network depends."""
    x = states(dimension, 32)
    network = built(dataclasses.replace(description, normalization="batch"), dimension)
    normalised, part, frozen = before_and_after_freezing(network, x)
    assert apart(part, normalised[:3]) > 1e-2
    for other in every_form(frozen, x):
        assert apart(other, normalised) < 1e-4
    assert frozen.description == dataclasses.replace(description, normalization="none")


def test_a_fresh_u_net_is_zero_and_keeps_the_size_of_its_signal_before_that():
    """With weights of variance 2 / inputs a signal neither dies nor explodes through the layers before the last."""
    network, x = el.UNet1D(base=8, multipliers=(1, 2)).build(16, key=KEY), states(16, 64)
    np.testing.assert_array_equal(in_batch(network, x), 0)
    first = jnp.zeros_like(network.out.weight).at[0].set(1.0)
    size = np.std(in_batch(eqx.tree_at(lambda n: n.out.weight, network, first), x))
    assert 0.05 < size < 5


def test_the_u_net_commutes_with_shifts_by_a_whole_cell_of_its_lowest_level_only():
    description = el.UNet1D(base=2, multipliers=(1, 2), channels=2, normalization="batch")
    network, x = built(description, 32), states(32)
    straight = in_batch(network, x)
    for by in (4, 8, -4):
        assert apart(in_batch(network, shifted(x, by, 2)), shifted(straight, by, 2)) < 1e-5
    for by in (1, 2, 3):
        assert apart(in_batch(network, shifted(x, by, 2)), shifted(straight, by, 2)) > 1e-2


def test_fields_are_stored_one_after_the_other():
    """Two fields of 8 points: a pulse in the second reaches the first through the channels, at the same place."""
    network = built(el.UNet1D(base=2, multipliers=(1,), kernel=1, channels=2), 16)
    quiet, pulse = in_batch(network, jnp.zeros((2, 16)).at[1, 8 + 6].set(1.0))
    # With kernel 1 only the pairs of the downward step spread it: points 6 and 7, of both fields.
    assert np.flatnonzero(np.abs(pulse - quiet) > 1e-6).tolist() == [6, 7, 14, 15]


def test_batch_normalisation_makes_every_channel_of_zero_mean_and_unit_spread():
    norm = BatchNorm(jnp.array([1.0, 2.0]), jnp.array([0.0, -3.0]))
    h = norm(jnp.asarray(RNG.normal([5.0, 1.0], [3.0, 0.1], (50, 4, 2)), jnp.float32))
    np.testing.assert_allclose(h.mean(axis=(0, 1)), [0, -3], atol=1e-4)
    # The variance floor of 1e-5 is a thousandth of the variance of the second channel.
    np.testing.assert_allclose(h.std(axis=(0, 1)), [1, 2], rtol=1e-3)


def test_a_network_with_batch_normalisation_must_be_frozen_before_it_maps_single_states():
    with pytest.raises(ValueError, match="must be frozen"):
        SMALL_BATCH.build(8, key=KEY)(jnp.zeros(8))


NETWORKS = {
    "MLP": lambda: built(el.MLP((5, 3)), 8),
    "UNet": lambda: built(SMALL, 8),
    "Residual": lambda: Residual(jnp.asarray(RNG.normal(size=(8, 8)), jnp.float32), built(SMALL, 8)),
    "OnCircles": lambda: OnCircles(el.MLP((5,)).build(8, key=KEY, inputs=10), (2.0, *[None] * 6, 3.0)),
}
MORE_NETWORKS = {
    "Sum": lambda: Sum((built(el.MLP((5, 3)), 8), built(SMALL, 8))),
    "OnGrid": lambda: OnGrid(jnp.asarray(RNG.normal(size=(4, 5, 2)), jnp.float32), (2.0, 3.0)),
}
each_network = pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS.keys())
ALL_NETWORKS = NETWORKS | MORE_NETWORKS
every_network = pytest.mark.parametrize("make", ALL_NETWORKS.values(), ids=ALL_NETWORKS.keys())


@pytest.mark.slow
@each_network
def test_every_network_has_the_same_values_in_every_form_and_can_be_multiplied(make):
    network, x = make(), states(8)
    batch, *others = every_form(network, x)
    frozen, scaled = in_batch(freeze(network, x), x), in_batch(scale(network, -2.5), x)
    for other in (*others, frozen, scaled / -2.5):
        assert apart(other, batch) < 1e-5


@every_network
def test_a_network_is_rebuilt_from_its_architecture_with_the_same_structure(make):
    network = make()
    size = network.values.shape[-1] if isinstance(network, OnGrid) else 8
    again = rebuild_network(json.loads(json.dumps(describe_network(network))), size)
    assert describe_network(again) == describe_network(network)
    assert jax.tree.structure(again) == jax.tree.structure(network)
    assert [a.shape for a in jax.tree.leaves(again)] == [a.shape for a in jax.tree.leaves(network)]


def test_a_residual_is_the_linear_map_plus_the_network():
    matrix, network, x = RNG.normal(size=(8, 8)), built(SMALL, 8), states(8)
    residual = Residual(jnp.asarray(matrix, jnp.float32), network)
    expected = np.asarray(x) @ matrix.T + np.asarray(in_batch(network, x))
    for value in every_form(residual, x):
        assert apart(value, expected) < 1e-5


@pytest.mark.parametrize(
    ("description", "dimension", "least"),
    [(el.UNet1D(), 7, 8), (el.UNet1D(multipliers=(1,)), 1, 2), (el.UNet1D(multipliers=(1, 2), channels=2), 9, 4)],
    ids=repr,
)
def test_too_few_variables_for_the_levels_are_refused(description, dimension, least):
    channels = description.channels
    message = rf"needs {channels} x at least {least} variables, but the series has {dimension}\. Use fewer"
    with pytest.raises(el.ArgumentError, match=message):
        description.build(dimension, key=KEY)


# On disk.


@pytest.fixture(scope="module")
def ring_model():
    """A linear model of eight variables, to be given other scores."""
    series = el.TimeSeries(np.random.default_rng(1).normal(size=(400, 8)).cumsum(axis=0) % 3, dt=0.1)
    return el.fit(series, score=el.Gaussian(), mobility=el.QuadraticVariation(), seed=0)


@pytest.mark.slow
def test_a_saved_model_with_a_preconditioned_normalised_u_net_simulates_the_same_paths(ring_model, tmp_path):
    unet = built(el.UNet1D(base=2, multipliers=(1,), normalization="batch"), 8)
    network = Residual(jnp.asarray(RNG.normal(size=(8, 8)), jnp.float32), freeze(unet, states(8)))
    function = Score.learned(network, np.eye(8), -np.ones(8), np.ones(8)).scaled_by(0.1 * np.eye(8))
    model = dataclasses.replace(ring_model, score=dataclasses.replace(ring_model.score, function=function))
    model.save(tmp_path / "model.safetensors")
    loaded = el.load(tmp_path / "model.safetensors")
    paths = [m.simulate(0.5, members=3, seed=2, step=0.05).values for m in (model, loaded)]
    np.testing.assert_array_equal(*paths)
    x = model.states[:5]
    np.testing.assert_array_equal(model.drift(x), loaded.drift(x))
    # The network matters, it is not the Gaussian part that is compared.
    assert apart(model.drift(x), ring_model.drift(x)) > 0.1
