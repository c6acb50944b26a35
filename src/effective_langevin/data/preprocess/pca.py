"""Principal components, or empirical orthogonal functions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import checks
from ..._core.errors import DataError
from ..._core.types import Samples
from ..fields import area_weights
from ..series import Label, TimeSeries
from .base import SegmentTransform, described

_DEFAULT_VARIANCE = 0.95


@dataclass(frozen=True)
class PCA:
    """Keep the leading principal components.

    Inversion returns the part of the variables that the kept components explain. The rest is reported as
    ``residual_variance`` and, by variable, ``residual_std``.

    Parameters
    ----------
    components : int, optional
        Number of components to keep.
    variance : float, default 0.95
        Share of the variance to keep, where `components` is not given.
    standardize : bool, optional
        Divide the variables by their standard deviation first. Default: if their units differ.

    Notes
    -----
    Grid points of a field with a latitude count by their area: they are multiplied by sqrt(cos(latitude)) first.

    Examples
    --------
    >>> series = el.TimeSeries(np.random.default_rng(0).normal(size=(200, 3)) * [9, 1, 1], dt=1.0)
    >>> el.preprocess.PCA(components=1).fit(series).summary()
    'PCA keeps 1 of 3 components (97.7%); left out 2.28%'
    """

    components: int | None = None
    variance: float | None = None
    standardize: bool | None = None

    def __post_init__(self):
        if self.components is not None:
            checks.integer_at_least("components", self.components, 1)
            checks.not_given("variance", self.variance, "the number of components is given already.")
        if self.variance is not None:
            checks.fraction("variance", self.variance)
        checks.one_of("standardize", self.standardize, [None, True, False])

    def fit(self, series: TimeSeries) -> "FittedPCA":
        """Compute eigenvectors of the covariance; each points to where its largest loading is positive."""
        samples = series.stacked()
        mean, scale = samples.mean(axis=0), 1 / area_weights(series.names)
        if len(set(series.units)) > 1 if self.standardize is None else self.standardize:
            scale = scale * samples.std(axis=0)
            constant = scale <= 1e-12 * np.abs(samples).max(axis=0)
            if constant.any():
                name = series.names[int(np.argmax(constant))]
                raise DataError(f"Variable {name!r} is constant: it has no scale. Drop it.")
        vectors, variances = _eigenvectors((samples - mean) / scale)
        if not variances.sum() > 0:
            raise DataError("No variable of the series varies: there are no principal components.")
        share = variances / variances.sum()
        count = self._count(share)
        left = variances[count:] * vectors[:, count:] ** 2
        return FittedPCA(
            **described(series),
            mean=mean,
            scale=scale,
            vectors=vectors[:, :count],
            explained_variance=share[:count],
            residual_variance=float(share[count:].sum()),
            residual_std=scale * np.sqrt(left.sum(axis=1)),
        )

    def _count(self, share: np.ndarray) -> int:
        if self.components is None:
            enough = np.flatnonzero(np.cumsum(share) >= (self.variance or _DEFAULT_VARIANCE) - 1e-12)
            return int(enough[0]) + 1
        if self.components > len(share):
            raise checks.refused("components", f"at most {len(share)}, as many as the samples have", self.components)
        return self.components


@dataclass(frozen=True, eq=False)
class FittedPCA(SegmentTransform):
    """(x - mean) / scale = vectors y + residual, with orthonormal columns of `vectors`, (var, component)."""

    mean: np.ndarray
    scale: np.ndarray
    vectors: np.ndarray
    explained_variance: np.ndarray
    residual_variance: float
    residual_std: np.ndarray

    @property
    def new_labels(self) -> list[Label]:
        """PC1, PC2, ..., in the common unit of the variables if they have one and were not standardised."""
        standardized = not np.allclose(self.scale, 1 / area_weights(self.names))
        shared = self.units[0] if len(set(self.units)) == 1 and not standardized else ""
        return [(f"PC{i + 1}", shared, None) for i in range(self.vectors.shape[1])]

    def summary(self) -> str:
        shares = ", ".join(f"{share:.1%}" for share in self.explained_variance[:8])
        kept = f"PCA keeps {self.vectors.shape[1]} of {len(self.names)} components ({shares}"
        return f"{kept}{', ...' if len(self.explained_variance) > 8 else ''}); left out {self.residual_variance:.2%}"

    def to_xarray(self) -> Any:
        """Return the patterns (component, ...) as an xarray Dataset, those of a field as maps on its grid.

        A pattern is the change of the variables when its component grows by one.
        """
        from ..io.xarray import label_patterns

        return label_patterns(self, (self.vectors * self.scale[:, None]).T, self.explained_variance)

    def _forward(self, values: Samples, times: np.ndarray) -> Samples:
        return ((values - self.mean) / self.scale) @ self.vectors

    def _backward(self, values: Samples, times: np.ndarray) -> Samples:
        return (values @ self.vectors.T) * self.scale + self.mean


def _eigenvectors(centred: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Compute eigenvectors and eigenvalues of the covariance, largest first; with few samples, those that they span."""
    count, width = centred.shape
    if width <= count:
        variances, vectors = np.linalg.eigh(centred.T @ centred / count)
        variances, vectors = np.maximum(variances[::-1], 0), vectors[:, ::-1]
    else:
        _, singular, rows = np.linalg.svd(centred, full_matrices=False)
        variances, vectors = singular**2 / count, rows.T
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]), variances
