"""Broken reflection: the dispersive Kuramoto-Sivashinsky equation circulates, and the mobility must say which way."""

import numpy as np
import pytest

import effective_langevin as el

pytestmark = pytest.mark.slow
LEADING = slice(2, 6)


def circulation(gamma: float) -> tuple[np.ndarray, float, np.ndarray]:
    """Im Phi_k, |Phi_A| over its standard error, and Im of the correlation of each mode after one sample."""
    system = el.systems.KuramotoSivashinsky(grid=64, stride=2, gamma=gamma)
    series = system.simulate(400.0, dt=1.0, members=60, seed=0, step=0.2, burn_in=500.0)
    ring = el.Translations()
    model = el.fit(series, score=el.Gaussian(noise_level=0.1), symmetry=ring, seed=0)
    mobility = model.mobility
    modes = np.fft.rfft(series.values, axis=-1)
    turning = np.mean(modes[:, 1:] * modes[:, :-1].conj(), axis=(0, 1))
    strength = np.linalg.norm(mobility.antisymmetric) / np.linalg.norm(mobility.standard_error)
    return ring.blocks(mobility.matrix)[:, 0, 0].imag, float(strength), turning.imag


def test_dispersion_makes_the_mobility_antisymmetric_with_the_sense_of_the_waves():
    """C_k(h) turns with the waves, and Phi = -dC/dt(0+): opposite signs; the reflection maps gamma to -gamma."""
    phi, strength, turning = circulation(0.3)
    assert strength > 5
    assert (np.sign(phi[LEADING]) == -np.sign(turning[LEADING])).all()
    mirrored, _, _ = circulation(-0.3)
    np.testing.assert_allclose(mirrored[LEADING], -phi[LEADING], atol=0.15 * np.abs(phi).max())


def test_without_dispersion_nothing_circulates():
    assert circulation(0.0)[1] < 2
