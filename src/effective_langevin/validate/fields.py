"""Statistics of fields on a periodic grid, whose points are all alike: pooled over the points, or by Fourier mode.

A state is `channels` fields, one after the other, of `points` values each. With the unitary transform

    u_k = sum_j x_j exp(-2 pi i j k / points) / sqrt(points)

the covariance < u_k(t + tau) u_k(t)* > is mode k of the circulant mean of C(tau), and the mean over the points of
< x_j(t + tau) x_j(t) > is its mean over all modes, in which every mode but the first and the last counts twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter

from .._core.types import LagMatrices, Matrix, Samples
from ..estimate.symmetry import Translations
from ..statistics.densities import BINS
from ..statistics.distances import pdf_kl
from ..statistics.lags import LaggedMoments
from .curves import Curve
from .views import Coords, Maker, OfWeights, View, pair_curve, with_errors

OFFSETS = (1, 2, 3)
PAIR_BINS = 50
_ROWS = 1 << 14
MOST_FIELDS = 3
_MOST_NAMES = 6
_MOST_FRAMES = 600
_JOINED_BINS = 4
_FEW_PAIR_BINS, _PAIR_SAMPLES = 25, 500_000

ModeCurves = Float[np.ndarray, "lag channel mode"]


def multiplicity(points: int) -> Float[np.ndarray, " mode"]:
    """How often each mode 0 ... points // 2 counts among the points: the inner ones stand for k and -k."""
    counts = np.full(points // 2 + 1, 2.0)
    counts[0] = 1
    counts[-1] = 1 if points % 2 == 0 else 2
    return counts


def modes_of(matrices: Matrix | LagMatrices, channels: int = 1) -> Float[np.ndarray, "... channel mode"]:
    """Real part of each Fourier mode of the circulant mean of (..., var, var) matrices, field by field."""
    blocks = Translations(channels).blocks(np.asarray(matrices, float))
    return np.moveaxis(np.real(np.diagonal(blocks, axis1=-2, axis2=-1)), -1, -2)


def point_acf(covariances: ModeCurves, points: int) -> Float[np.ndarray, "lag channel"]:
    """Autocorrelation of a field at a point, pooled over the points, from the covariances of its modes."""
    pooled = covariances @ multiplicity(points)
    return pooled / pooled[0]


def mode_acf(covariances: ModeCurves) -> ModeCurves:
    """Normalised autocorrelation of each mode; a mode without variance has none (not a number)."""
    variance = covariances[0]
    empty = variance <= 1e-9 * variance.max()
    return covariances / np.where(empty, np.nan, variance)


def leading_modes(variance: Float[np.ndarray, " mode"], points: int, share: float = 0.95, most: int = 6) -> list[int]:
    """The fewest modes, in order, that together hold `share` of the variance; at most `most` of them."""
    held = variance * multiplicity(points)
    order = np.argsort(held)[::-1]
    needed = int(np.searchsorted(np.cumsum(held[order]), share * held.sum())) + 1
    return sorted(order[: min(needed, most)].tolist())


def variance_shares(variance: Float[np.ndarray, " mode"], points: int) -> Float[np.ndarray, " mode"]:
    """Fraction of the variance of the field in each mode."""
    held = variance * multiplicity(points)
    return held / held.sum()


def histograms(samples: Samples, low: np.ndarray, high: np.ndarray, bins: int) -> Float[np.ndarray, "var bin"]:
    """Counts of each variable in equal bins between its `low` and `high`."""
    size = samples.shape[1]
    shift = (bins + 1) * np.arange(size)
    counts = np.zeros(size * (bins + 1), int)
    for start in range(0, len(samples), _ROWS):
        cell = _cells(samples[start : start + _ROWS], low, high, bins) + shift
        counts += np.bincount(cell.ravel(), minlength=len(counts))
    return counts.reshape(size, bins + 1)[:, :bins].astype(float)


def pair_counts(
    samples: Samples, low: float, high: float, offsets: Sequence[int] = OFFSETS, bins: int = PAIR_BINS
) -> Float[np.ndarray, "offset bin bin"]:
    """Joint counts of one field at a point (rows) and `offset` points further on, pooled over all points."""
    counts = np.zeros((len(offsets), (bins + 1) ** 2), int)
    for start in range(0, len(samples), _ROWS):
        cell = _cells(samples[start : start + _ROWS], low, high, bins)
        for total, offset in zip(counts, offsets):
            both = (bins + 1) * cell + np.roll(cell, -offset, axis=1)
            total += np.bincount(both.ravel(), minlength=counts.shape[1])
    return counts.reshape(-1, bins + 1, bins + 1)[:, :bins, :bins].astype(float)


def _cells(samples: Samples, low, high, bins: int) -> np.ndarray:
    """The bin of each value; `bins` for values outside."""
    place = (samples - low) * (bins / (np.asarray(high) - low))
    inside = (place >= 0) & (place < bins)
    return np.where(inside, place, bins).astype(np.intp)


class FieldsView(View):
    """Statistics pooled over the points of each field, and by Fourier mode of the standardised fields."""

    what = "Field"

    def makers(self) -> dict[str, Maker]:
        return {**super().makers(), "mode_variance": self.mode_variance, "mode_acf": self.mode_acf}

    @property
    def channels(self) -> int:
        return self.model.space.channels or 1

    @property
    def points(self) -> int:
        return self.model.dimension // self.channels

    @property
    def names(self) -> list[str]:
        """A name for each field: those of its first and its last point."""
        names = self.model.names
        return [f"{names[c * self.points]} … {names[(c + 1) * self.points - 1]}" for c in range(self.channels)]

    def subject(self) -> str:
        fields = "" if self.channels == 1 else f"{self.channels} fields on "
        return f"{', '.join(self.names[:_MOST_NAMES])}: {fields}{self.points} points of a periodic grid"

    def labels(self, shown: Sequence[int] | None = None) -> Coords:
        places = range(self.channels) if shown is None else shown
        names, units = ([source[c] for c in places] for source in (self.names, self.model.units[:: self.points]))
        return {"variable": (("variable",), names), "unit": (("variable",), units)}

    @cached_property
    def _moments(self) -> list[LaggedMoments]:
        """Lagged covariances of the modes of standardised fields, in groups, (lag, channel, mode)."""
        square = self.model.standardizer.std[:: self.points, None] ** 2
        lagged = (statistics.lagged for statistics in self.sides.statistics)
        return [replace(m, sums=modes_of(m.sums, self.channels) / square) for m in lagged]

    @property
    def acfs(self) -> Sequence[OfWeights]:
        """The autocorrelations at a point, pooled over the points, of data and model."""
        return [lambda w, m=m: point_acf(m.mean(w), self.points) for m in self._moments]

    def _of_modes(self, of: OfWeights) -> dict[str, Any]:
        """Return a function of the covariances of modes for data and model, with errors."""
        return with_errors(lambda m: lambda weights: of(m.mean(weights)), self._moments)

    @cached_property
    def _variances(self) -> np.ndarray:
        return self._moments[0].mean()[0]

    @cached_property
    def _shares(self) -> np.ndarray:
        """Fraction of the variance of each field in each mode."""
        return np.array([variance_shares(variance, self.points) for variance in self._variances])

    @cached_property
    def leading(self) -> list[tuple[int, int]]:
        """Channel and number of the modes that hold most of the variance of each field."""
        return [(c, k) for c in range(self.channels) for k in leading_modes(self._variances[c], self.points)]

    @cached_property
    def edges(self) -> np.ndarray:
        """Bins of each field, between the mean quantiles of its points."""
        ends = self.sides.data_statistics.edges[:, [0, -1]].reshape(self.channels, self.points, 2).mean(axis=1)
        return np.linspace(ends[:, 0], ends[:, 1], BINS + 1, axis=1)

    @cached_property
    def _counts(self) -> list[np.ndarray]:
        """Counts of each field in its bins, pooled over points, of data and model."""
        low, high = (np.repeat(ends, self.points) for ends in (self.edges[:, 0], self.edges[:, -1]))
        counts = (histograms(s.reshape(len(s), -1), low, high, BINS) for s in self.samples)
        return [c.reshape(self.channels, self.points, BINS).sum(axis=1) for c in counts]

    @cached_property
    def kl(self) -> np.ndarray:
        """KL(data || model) of the density of each field at a point."""
        return pdf_kl(*self._counts)

    def pdf(self) -> Curve:
        edges, densities = self.edges[:, ::_JOINED_BINS], []
        for counts in self._counts:
            wide = counts.reshape(self.channels, -1, _JOINED_BINS).sum(axis=2)
            densities.append(wide / wide.sum(axis=1, keepdims=True) / np.diff(edges, axis=1))
        coords = {**self.labels(), "edges": (("variable", "edge"), edges), "kl": (("variable",), self.kl)}
        return Curve(("variable", "bin"), *densities, coords=coords)

    def pair_density(self) -> Curve:
        """Joint densities of the first fields at two points, 1, 2 and 3 apart."""
        bins = PAIR_BINS if self.sides.data.n_samples * self.points > _PAIR_SAMPLES else _FEW_PAIR_BINS
        width, shown = 1 + len(OFFSETS), range(min(self.channels, MOST_FIELDS))
        edges, names, units, densities = [], [], [], ([], [])
        for c in shown:
            stem = "u" if self.channels == 1 else self.names[c].split(" … ")[0]
            low, high = self.edges[c, [0, -1]]
            edges += [np.linspace(low, high, bins + 1)] * width
            names += [f"{stem}(j)", *(f"{stem}(j + {offset})" for offset in OFFSETS)]
            units += [self.model.units[c * self.points]] * width
            cell = np.outer(np.diff(edges[-1]), np.diff(edges[-1]))
            for side, samples in zip(densities, self.samples):
                counts = pair_counts(samples[:, c], low, high, bins=bins)
                side += [gaussian_filter(joint, 0.8) / joint.sum() / cell for joint in counts]
        pairs = [(c * width, c * width + place) for c in shown for place in range(1, width)]
        return pair_curve(densities, np.array(edges), pairs, names, units)

    def sample_path(self) -> Curve:
        """A stretch of the first fields; several fields in units of their standard deviations."""
        shown = slice(None, MOST_FIELDS)
        pieces, times = self.stretches(_MOST_FRAMES)
        coords = {**times, **self.labels(range(self.channels)[shown])}
        if self.channels > 1:
            pieces = [self.model.standardizer.to_standard(piece) for piece in pieces]
            coords["unit"] = (("variable",), [""] * len(coords["variable"][1]))
        values = (piece.reshape(len(piece), self.channels, self.points)[:, shown] for piece in pieces)
        return Curve(("time", "variable", "point"), *values, coords=coords, units={"time": self.time_unit})

    def mode_variance(self) -> Curve:
        of_field = ("variable", "mode")
        coords = {
            **self.labels(),
            "share": (of_field, self._shares),
            "noise": (of_field, modes_of(self.model.score.blur, self.channels)),
            "mobility": (of_field, self._mobility_of_modes),
        }
        return Curve(of_field, **self._of_modes(lambda covariances: covariances[0]), coords=coords)

    def mode_acf(self) -> Curve:
        """Autocorrelations of the modes that hold most of the variance."""
        channels, modes = (list(index) for index in zip(*self.leading))
        coords = {
            **self.lags(),
            "field": (("leading",), [self.names[c] for c in channels]),
            "channel": (("leading",), channels),
            "mode": (("leading",), modes),
            "share": (("leading",), [self._shares[c][k] for c, k in self.leading]),
        }
        values = self._of_modes(lambda covariances: mode_acf(covariances)[:, channels, modes])
        return Curve(("lag", "leading"), **values, coords=coords, units={"lag": self.time_unit})

    @cached_property
    def _mobility_of_modes(self) -> np.ndarray:
        return modes_of(self.standard_mobility(), self.channels)

    def mobility_by_horizon(self) -> Curve | None:
        """Phi_k(T), or D_k(T), of the leading modes in standardised units; of several fields, the mean over them."""
        found = self.model.mobility.evidence.horizon
        if found is None:
            return None
        if found.phi_by_mode is not None and found.phi_of_mode is not None and found.chosen is not None:
            curves, used, chosen = found.phi_by_mode, found.phi_of_mode / self.channels, found.chosen
        elif found.phi is not None:
            curves = modes_of(self.standard_mobility(found.phi), self.channels).mean(axis=1).T
            used, chosen = self._mobility_of_modes.mean(axis=0), np.full(len(curves), np.nan)
        else:
            return None
        modes = [k for c, k in self.leading if c == 0 and np.isfinite(curves[k]).all()]
        coords = {
            "horizon": (("horizon",), found.horizons),
            "mode": (("mode",), modes),
            "chosen": (("mode",), chosen[modes]),
            "symbol": ((), "Φ" if self.model.fields is None else "D"),
        }
        values, unit = curves[modes].T, {"horizon": self.model.time_unit}
        return Curve(("horizon", "mode"), values, np.broadcast_to(used[modes], values.shape), coords=coords, units=unit)
