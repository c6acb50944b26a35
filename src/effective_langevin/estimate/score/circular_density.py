"""KGMM on circles: with cells on a regular grid the average of the noise in each is known exactly.

    p_sigma = p * N(0, sigma^2),   -E[z | y] / sigma = grad ln p_sigma(y)

On a circle a convolution is a product of Fourier coefficients, so that no noise has to be drawn, and ln p_sigma itself
is known: the weights of basins with nothing between them are right, which local averages alone cannot make sure of.
Half a sample spread evenly over the circles keeps the score finite where there are none.
"""

import jax.numpy as jnp
import numpy as np

from ..._core import progress
from ..._core.types import Samples, Vector
from ..networks import OnGrid
from ..space import StateSpace
from .evidence import NoiseLevelChoice
from .noise_level import choose_largest_of_the_best

CANDIDATES = (0.4, 0.28, 0.2, 0.14, 0.1, 0.07, 0.05, 0.035, 0.025, 0.018, 0.0125)
MOST_ANGLES = 2
_CELLS = {1: 1024, 2: 256}


class CircularDensity:
    """Samples on a grid of cells around all circles: their density, smoothed by any width, and its score."""

    def __init__(self, samples: Samples, space: StateSpace, cells: int | None = None):
        self.periods = np.array([float(period or np.inf) for period in space.periods])
        size = len(self.periods)
        across = round(cells ** (1 / size)) if cells else _CELLS[size]
        self.shape, self.samples = (max(across, 8),) * size, len(samples)
        corners, shares = self._corners(samples)
        places = np.ravel_multi_index(tuple(corners), self.shape)
        held = np.bincount(places.ravel(), shares.ravel(), int(np.prod(self.shape))).reshape(self.shape)
        self.transform = np.fft.fftn(held / len(samples))
        numbers = (2 * np.pi * np.fft.fftfreq(n, p / n) for n, p in zip(self.shape, self.periods))
        self.waves = np.stack(np.meshgrid(*numbers, indexing="ij"))

    @property
    def finest(self) -> float:
        """The smallest smoothing width that the grid resolves."""
        return float(1.5 * (self.periods / self.shape).max())

    def density(self, noise_level: float) -> np.ndarray:
        """Return the probability of each cell, with half a sample spread evenly."""
        density = np.fft.ifftn(self._smoothed(noise_level)).real
        return (self.samples * np.maximum(density, 0) + 0.5 / density.size) / (self.samples + 0.5)

    def score(self, noise_level: float) -> OnGrid:
        """Return grad ln p_sigma on the grid."""
        smoothed = self._smoothed(noise_level)
        slopes = [np.fft.ifftn(1j * wave * smoothed).real for wave in self.waves]
        kept = self.samples / (self.samples + 0.5)
        values = kept * np.stack(slopes, axis=-1) / self.density(noise_level)[..., None]
        return OnGrid(jnp.asarray(values, jnp.float32), tuple(self.periods.tolist()))

    def log_likelihood(self, noise_level: float, samples: Samples) -> Vector:
        """Return ln p_sigma, up to a constant, of other samples, each shared out among the cells around it."""
        corners, shares = self._corners(samples)
        return np.sum(shares * np.log(self.density(noise_level))[tuple(corners)], axis=0)

    def _smoothed(self, noise_level: float) -> np.ndarray:
        return self.transform * np.exp(-0.5 * noise_level**2 * np.sum(self.waves**2, axis=0))

    def _corners(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """The cells around every sample, (var, corner, sample), and the linear share of it that belongs to each."""
        place = samples.astype(float) % self.periods / self.periods * self.shape
        low = np.floor(place).astype(int)
        beyond = place - low
        corners = np.array(list(np.ndindex(*(2 for _ in self.shape))))
        cells = (low[None] + corners[:, None]) % np.array(self.shape)
        shares = np.prod(np.where(corners[:, None] == 1, beyond, 1 - beyond), axis=-1)
        return np.moveaxis(cells, -1, 0), shares


def choose_noise_level(density: CircularDensity, held_out: Samples) -> tuple[float, NoiseLevelChoice]:
    """Return the largest width whose likelihood of held-out samples is within one standard error of the best."""
    tried = [sigma for sigma in CANDIDATES if sigma >= density.finest] or [density.finest]
    losses = []
    with progress.task("Choosing the smoothing width", len(tried)) as tick:
        for sigma in tried:
            losses.append(-density.log_likelihood(sigma, held_out))
            tick(1, f"sigma {sigma:.3g}")
    return choose_largest_of_the_best(tried, losses)
