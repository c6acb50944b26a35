"""A driven ring: current, diffusion and entropy production against exact values, and no current without drive."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.rings import StandardRing

import effective_langevin as el
from effective_langevin.estimate.closure.circle import close_ring

pytestmark = pytest.mark.slow
GRID = np.linspace(0, 2 * np.pi, 300, endpoint=False)[:, None]


@pytest.mark.parametrize("dt", [0.05, 0.1, 0.4])
def test_current_and_entropy_production_of_a_driven_ring(dt):
    """Each within 3 standard errors and within 5 % of the exact value; 6e4 time units, in which J is known to 0.7 %."""
    ring = el.systems.DrivenRing()
    standard = StandardRing.of(ring.simulate(1000.0, dt=dt, members=60, seed=11, step=0.01))
    found, scale = standard.infer(), standard.units.std[0] ** 2
    produced = standard.entropy_production()
    assert abs(produced.value - ring.entropy_production) < min(
        3 * produced.standard_error, 0.05 * ring.entropy_production
    )
    assert abs(found.flux - ring.flux) < min(3 * found.flux_error, 0.05 * ring.flux)
    assert abs(found.diffusion * scale - 0.5) < min(3 * found.mobility.standard_error[0, 0] * scale, 0.025)
    weights, exact = ring.density(GRID), ring.current(GRID)
    wrong = weights.T @ (standard.velocity(found, GRID) - exact) ** 2
    assert np.sqrt(wrong / (weights.T @ exact**2)) < 0.05


def test_a_ring_without_drive_has_no_current():
    """J within two standard errors of zero for at least 18 of 20 seeds, and D right within three for all but one."""
    ring, still, right = el.systems.DrivenRing(drive=0.0), 0, 0
    for seed in range(20):
        series = ring.simulate(250.0, dt=0.1, members=20, seed=seed, step=0.01)
        standard = StandardRing.of(series, el.KGMM(noise_level=0.1))
        found, scale = standard.infer(), standard.units.std[0] ** 2
        still += abs(found.flux) < 2 * found.flux_error
        right += abs(found.diffusion * scale - 0.5) < 3 * found.mobility.standard_error[0, 0] * scale
    assert still >= 18
    assert right >= 19


def test_a_model_with_the_fields_of_a_ring_turns_and_forgets_as_the_ring_does(tmp_path):
    """Turns of 100 simulated members and the autocovariance of the cosine, within four joint standard errors of the
    data; without the current nothing turns and the cosine is remembered far too long. The file keeps the fields."""
    ring = el.systems.DrivenRing()
    series = ring.simulate(500.0, dt=0.1, members=40, seed=5, step=0.01)
    standard, plain = StandardRing.of(series), el.fit(series, mobility=el.IntegratedResponse(), check="off")
    closed = close_ring(standard.series, standard.score, standard.space)
    mobility = closed.mobility.to_physical(plain.standardizer)
    replace(plain, fields=closed.fields, mobility=mobility).save(tmp_path / "ring.safetensors")
    model = el.load(tmp_path / "ring.safetensors")

    def measure(paths):
        """Turns per unit of time and autocovariance of the cosine after two time units, with their errors."""
        x = paths[..., 0].astype(float)
        moves = np.diff(x, axis=1)
        turns = (moves - 2 * np.pi * np.round(moves / (2 * np.pi))).mean(axis=1) / (2 * np.pi * 0.1)
        wave = np.cos(x) - np.cos(x).mean()
        kept = np.mean(wave[:, 20:] * wave[:, :-20], axis=1)
        both = np.stack([turns, kept], axis=1)
        return both.mean(axis=0), both.std(axis=0) / np.sqrt(len(x))

    (data, data_error), (found, error), (still, _) = (
        measure(paths)
        for paths in (
            series.values,
            model.simulate(300.0, members=100, seed=2).values,
            plain.simulate(300.0, members=100, seed=2).values,
        )
    )
    assert (np.abs(found - data) < 4 * np.hypot(error, data_error)).all()
    assert abs(still[0]) < 0.1 * ring.flux
    assert still[1] > data[1] + 0.1
    np.testing.assert_allclose(model.current(GRID[::30]), standard.velocity(standard.infer(), GRID[::30]), rtol=1e-4)
