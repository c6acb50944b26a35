"""Polynomial fields: positive everywhere, with the divergence of the very field that drives the noise."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from effective_langevin.estimate.closure.polynomials import (
    KINDS,
    PolynomialCurrent,
    PolynomialDiffusion,
    degree_of,
    exponents,
    monomials,
    triangle,
)

CASES = [(kind, size) for size in (1, 2, 3) for kind in KINDS]
FLOOR = 0.05


def random_diffusion(kind, size, degree=2, seed=0):
    """A field that is negative in places before it is clipped."""
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=(len(triangle(kind, size)), len(exponents(size, degree))))
    coefficients[:, 0] = -0.3
    return PolynomialDiffusion.of(coefficients, FLOOR, np.full(size, -1.5), np.full(size, 1.2))


def unclipped(field, x):
    """The polynomials as a matrix, in float64."""
    size = x.shape[1]
    entries = monomials(np.clip(x, *(np.asarray(a, float) for a in (field.low, field.high))), field.degree)
    entries = entries @ np.asarray(field.coefficients, float).T
    matrix = np.zeros((len(x), size, size))
    for k, pairs in enumerate(triangle(field.kind, size)):
        for i, j in pairs:
            matrix[:, i, j] = matrix[:, j, i] = entries[:, k]
    return matrix


def clipped(field, x):
    values, vectors = np.linalg.eigh(unclipped(field, x))
    return np.einsum("bik,bk,bjk->bij", vectors, 0.5 * (values + np.hypot(values, float(field.floor))), vectors)


def states(size, number=400, seed=1, reach=1.2):
    return reach * np.random.default_rng(seed).normal(size=(number, size))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_monomials_are_products_of_powers(size):
    x = states(size, 20)
    expected = np.stack([np.prod(x ** np.array(p), axis=1) for p in exponents(size, 4)], axis=1)
    np.testing.assert_allclose(monomials(x, 4), expected, rtol=1e-12)
    np.testing.assert_allclose(monomials(jnp.asarray(x, jnp.float32), 4), expected, rtol=1e-4, atol=1e-5)
    assert [degree_of(len(exponents(size, d)), size) for d in range(5)] == list(range(5))


@pytest.mark.parametrize(("kind", "size"), CASES)
def test_eigenvalues_are_clipped_smoothly(kind, size):
    field, x = random_diffusion(kind, size), states(size)
    assert field.degree == 2
    assert field.kind == (kind if size > 1 else "scalar")
    assert np.linalg.eigvalsh(unclipped(field, x)).min() < -2 * FLOOR
    found = np.asarray(field.in_batch(jnp.asarray(x, jnp.float32)), float)
    np.testing.assert_allclose(found, clipped(field, x), atol=2e-5 * np.abs(found).max())
    assert np.linalg.eigvalsh(found).min() > -1e-5


@pytest.mark.parametrize(("kind", "size"), CASES)
def test_the_divergence_is_that_of_the_clipped_field_within_the_box_and_beyond(kind, size):
    """Central differences of the field in float64; the states nearest to an edge of the box are left out."""
    field, x, step = random_diffusion(kind, size), states(size), 1e-5
    x = x[(np.minimum(abs(x - np.asarray(field.low)), abs(x - np.asarray(field.high))) > 1e-4).all(axis=1)]
    assert ((x > 1.2) | (x < -1.5)).any(axis=1).sum() > 20
    slopes = [(clipped(field, x + d) - clipped(field, x - d)) / (2 * step) for d in step * np.eye(size)]
    expected = sum(slope[:, :, j] for j, slope in enumerate(slopes))
    found = field.divergence(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("kind", "size"), CASES)
def test_the_factor_is_a_root_of_the_field(kind, size):
    field, x = random_diffusion(kind, size), jnp.asarray(states(size), jnp.float32)
    root = np.asarray(field.factor(x), float)
    scale = np.abs(np.asarray(field.in_batch(x))).max()
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), field.in_batch(x), atol=1e-5 * scale)


@pytest.mark.parametrize("size", [2, 3])
def test_equal_eigenvalues_have_a_derivative(size):
    """D = l I + a small change: f(l) I + f'(l) change, whatever the direction of the change."""
    field = random_diffusion("full", size, degree=1)
    coefficients = np.zeros(field.coefficients.shape)
    diagonal = [k for k, ((i, j),) in enumerate(triangle("full", size)) if i == j]
    coefficients[diagonal, 0] = 0.3
    coefficients[:, 1] = np.arange(1.0, len(coefficients) + 1)
    field, origin = replace(field, coefficients=jnp.asarray(coefficients, jnp.float32)), jnp.zeros((1, size))
    slope = jax.jvp(field.in_batch, (origin,), (jnp.eye(size)[:1],))[1][0]
    rise = 0.5 * (1 + 0.3 / np.hypot(0.3, FLOOR))
    np.testing.assert_allclose(slope[np.tril_indices(size)], rise * np.arange(1.0, len(coefficients) + 1), rtol=1e-4)


@pytest.mark.parametrize("size", [2, 3])
def test_noise_in_one_direction_has_a_finite_factor(size):
    """The factor of a matrix of rank one, its first column at zero: no division by a vanishing pivot."""
    direction = np.arange(size, dtype=float)
    coefficients = np.array([[direction[i] * direction[j]] for ((i, j),) in triangle("full", size)])
    field = PolynomialDiffusion.of(coefficients, 1e-12, np.full(size, -1.0), np.full(size, 1.0))
    root = np.asarray(field.factor(jnp.zeros((1, size))), float)[0]
    np.testing.assert_allclose(root @ root.T, np.outer(direction, direction), atol=1e-5)


def test_the_current_is_polynomial_plus_score_within_the_box_and_fades_beyond():
    rng = np.random.default_rng(3)
    coefficients, by_score = rng.normal(size=(2, 6)), rng.normal(size=(2, 2))
    field = PolynomialCurrent.of(coefficients, by_score, np.full(2, -1.0), np.full(2, 1.0))
    assert field.degree == 2
    inside, score = rng.uniform(-1, 1, size=(50, 2)), rng.normal(size=(50, 2))
    found = field.in_batch(jnp.asarray(inside, jnp.float32), jnp.asarray(score, jnp.float32))
    np.testing.assert_allclose(found, monomials(inside, 2) @ coefficients.T + score @ by_score.T, rtol=1e-4, atol=1e-5)
    far = jnp.array([[2.5, 0.3], [6.0, -6.0]])
    nearest = jnp.clip(far, -1, 1)
    ratio = field.in_batch(far, score[:2])[0] / field.in_batch(nearest, score[:2])[0]
    np.testing.assert_allclose(ratio, np.exp(-0.25 * 1.5**4), rtol=1e-5)
    assert not np.asarray(field.in_batch(far, 100 * score[:2]))[1].any()
