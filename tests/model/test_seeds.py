"""Every seed has paths of its own, and a process that cannot use JAX is told so."""

import multiprocessing

import jax
import numpy as np
import pytest

import effective_langevin as el
from effective_langevin._core import keys


@pytest.mark.parametrize("seed", [1 + 2**32, 2**40, 2**63 - 1])
def test_all_bits_of_a_seed_count(seed):
    one, other = (jax.random.key_data(keys.key_from_seed(s)) for s in (seed, seed % 2**32))
    assert not np.array_equal(one, other)


def test_a_small_seed_is_the_key_of_jax():
    assert (jax.random.key_data(keys.key_from_seed(7)) == jax.random.key_data(jax.random.key(7))).all()


def test_a_seed_of_more_bits_is_refused():
    with pytest.raises(el.ArgumentError, match=r"`seed` must be an integer below 2\*\*63"):
        keys.key_from_seed(2**63)


def ask(answers):
    try:
        keys.key_from_seed(0)
    except el.EffectiveLangevinError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_process_forked_after_jax_was_used_is_refused():
    keys.key_from_seed(0)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=ask, args=(answers,), daemon=True)
    child.start()
    assert "forked from one that had used JAX" in answers.get(timeout=30)
    child.join()


@pytest.mark.slow
def test_double_precision_in_the_same_process_changes_nothing(linear_model):
    single = linear_model.simulate(1.0, members=3, seed=1).values
    jax.config.update("jax_enable_x64", True)
    try:
        double = linear_model.simulate(1.0, members=3, seed=1).values
    finally:
        jax.config.update("jax_enable_x64", False)
    np.testing.assert_allclose(double, single, atol=1e-4 * single.std())
