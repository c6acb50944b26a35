"""Basins of an angle: where its density has maxima, and how much of the data and of the model lies around each."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter1d

from .._core.format import after_number, plus_minus, short
from .._core.types import Samples
from ..statistics.resampling import GROUPS, jackknife

_SECTORS = 72
_SMOOTH = 2.0
_BARRIER = 0.4  # of the lower of two maxima: a density that falls less between them has one basin


@dataclass(frozen=True)
class Basins:
    """Maxima of the density of one angle, with the share of samples around each in data and model, and errors."""

    name: str
    unit: str
    centres: Float[np.ndarray, " basin"]
    data: Float[np.ndarray, " basin"]
    data_error: Float[np.ndarray, " basin"]
    model: Float[np.ndarray, " basin"]
    model_error: Float[np.ndarray, " basin"]

    @classmethod
    def of(cls, data: Samples, model: Samples, lowest: float, period: float, name: str, unit: str) -> "Basins":
        """From the samples of one angle."""
        counts = [_sectors(angle, lowest, period) for angle in (data, model)]
        density = gaussian_filter1d(counts[0].sum(axis=0), _SMOOTH, mode="wrap")
        peaks, borders = _peaks_and_borders(density)

        def shares(groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
            share = np.roll(weights @ groups, -borders[0]) / np.sum(weights @ groups)
            return np.add.reduceat(share, (np.array(borders) - borders[0]) % _SECTORS)

        found = [jackknife(lambda weights, g=groups: shares(g, weights), GROUPS) for groups in counts]
        centres = lowest + (np.array(peaks) + 0.5) * period / _SECTORS
        return cls(name, unit, centres, *found[0], *found[1])

    def words(self) -> str:
        """Where the basins are and what they hold."""
        unit = after_number(self.unit)
        if len(self.centres) == 1:
            return f"{self.name} has one basin, around {short(float(self.centres[0]))}{unit}"
        parts = [
            f"around {short(float(centre))}{unit} {self._share(b, 'data')} % of the data and "
            f"{self._share(b, 'model')} % of the model"
            for b, centre in enumerate(self.centres)
        ]
        return f"{self.name} has {len(parts)} basins, {', '.join(parts[:-1])}, and {parts[-1]}"

    def _share(self, basin: int, whose: str) -> str:
        return plus_minus(*(100 * float(getattr(self, key)[basin]) for key in (whose, f"{whose}_error")))


def _sectors(angle: np.ndarray, lowest: float, period: float) -> np.ndarray:
    """Samples in each sector of the circle, (group, sector)."""
    edges = np.linspace(lowest, lowest + period, _SECTORS + 1)
    return np.array([np.histogram(part, edges)[0] for part in np.array_split(angle, GROUPS)], float)


def _peaks_and_borders(density: np.ndarray) -> tuple[list[int], list[int]]:
    """Maxima with a real minimum on either side, in order around the circle, and the minimum before each."""
    peaks = [k for k in range(len(density)) if density[k - 1] < density[k] >= density[(k + 1) % len(density)]]
    peaks = peaks or [int(np.argmax(density))]
    while len(peaks) > 1:
        borders = [_lowest_between(density, a, b) for a, b in zip(peaks[-1:] + peaks[:-1], peaks)]
        # Each border beside the lower of its two maxima; the weakest goes, and that maximum with it.
        depth = [density[border] / min(density[peaks[i - 1]], density[peaks[i]]) for i, border in enumerate(borders)]
        weakest = int(np.argmax(depth))
        if depth[weakest] < _BARRIER:
            return peaks, borders
        peaks.remove(min(peaks[weakest - 1], peaks[weakest], key=lambda k: density[k]))
    return peaks, [0]


def _lowest_between(density: np.ndarray, start: int, stop: int) -> int:
    """The sector of lowest density on the way from one maximum up to the next."""
    way = np.arange(start, stop if stop > start else stop + len(density)) % len(density)
    return int(way[np.argmin(density[way])])
