"""The one compiled training loop, shared by all networks."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..._core import progress


def train(
    network,
    loss: Callable,
    data,
    *,
    steps: int,
    learning_rate: float,
    key: jax.Array,
    label: str,
    average: float = 0.99,
    chunk: int = 200,
):
    """Minimise loss(network, data, key) by Adam with a cosine schedule; return averaged weights and the loss curve.

    `loss` must be a module-level function and `data` a pytree of arrays: the loop is then compiled once per shape.
    The weights returned are an exponential moving average over the last 1 / (1 - average) steps.
    """
    weights, frame = eqx.partition(network, eqx.is_array)
    state = (weights, weights, _optimiser(learning_rate, steps).init(weights))
    calls = -(-steps // chunk)
    chunk, curve = -(-steps // calls), []
    with progress.task(label, steps) as tick:
        for start in range(0, calls * chunk, chunk):
            now = jax.random.fold_in(key, start)
            state, losses = _chunk(state, frame, loss, data, now, chunk, learning_rate, steps, average)
            curve.append(np.asarray(losses))
            tick(min(chunk, steps - start), f"loss {curve[-1].mean():.4g}")
    return eqx.combine(state[1], frame), np.concatenate(curve)


def _optimiser(learning_rate: float, steps: int) -> optax.GradientTransformation:
    warm_up = max(1, steps // 20)
    return optax.adam(optax.warmup_cosine_decay_schedule(0.0, learning_rate, warm_up, steps, 0.01 * learning_rate))


@eqx.filter_jit
def _chunk(state, frame, loss, data, key, chunk: int, learning_rate: float, steps: int, average: float):
    optimiser = _optimiser(learning_rate, steps)

    def step(state, key):
        weights, averaged, inner = state
        value, gradient = jax.value_and_grad(lambda w: loss(eqx.combine(w, frame), data, key))(weights)
        updates, inner = optimiser.update(gradient, inner)
        weights = optax.apply_updates(weights, updates)
        averaged = jax.tree.map(lambda a, w: average * a + (1 - average) * w, averaged, weights)
        return (weights, averaged, inner), value

    return jax.lax.scan(step, state, jax.random.split(key, chunk))


def mean_square(residual: jax.Array) -> jax.Array:
    """1/2 |residual|^2 summed over variables, averaged over samples."""
    return 0.5 * jnp.mean(jnp.sum(residual**2, axis=-1))
