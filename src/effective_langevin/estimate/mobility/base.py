"""What a mobility is, and what every way of inferring one has in common."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from ..._core import checks
from ..._core.errors import EstimateWarning
from ..._core.types import Matrix
from ...data import Standardizer, TimeSeries
from ...statistics.lags import lagged_moments
from ...statistics.resampling import bootstrap, jackknife
from ..score import ScoreFit
from ..symmetry import Symmetry

_CURVES = ("phi_by_horizon", "sampling_error_by_horizon", "discretisation_bias")


@dataclass(frozen=True)
class Mobility:
    """Phi, whose symmetric part is the diffusion and whose antisymmetric part is the circulation.

    `standard_error` is the sampling error of each entry (leave-one-block-out), with the learned score taken as given;
    `replicas` are mobilities from blocks of time drawn with replacement, for the error of anything computed from Phi,
    and `covariances` those of the data in the same blocks, for the error of what depends on both.
    """

    matrix: Matrix
    standard_error: Matrix
    method: str
    replicas: Float[np.ndarray, "replica var var"]
    diagnostics: dict[str, Any] = field(default_factory=dict)
    covariances: Float[np.ndarray, "replica var var"] = field(default_factory=lambda: np.zeros((0, 1, 1)))

    @property
    def symmetric(self) -> Matrix:
        """Phi_S: the diffusion tensor."""
        return 0.5 * (self.matrix + self.matrix.T)

    @property
    def antisymmetric(self) -> Matrix:
        """Phi_A: the mean circulation."""
        return 0.5 * (self.matrix - self.matrix.T)

    @property
    def noise_factor(self) -> Matrix:
        """Sigma, lower triangular, with Sigma Sigma^T = Phi_S."""
        return np.linalg.cholesky(self.symmetric)

    @property
    def discretisation_error(self) -> Matrix:
        """What the finite sampling interval may have cost each entry, from the change to twice that interval."""
        return np.abs(np.asarray(self.diagnostics.get("discretisation_bias", np.zeros_like(self.matrix))))

    def interval(self, level: float = 0.95) -> tuple[Matrix, Matrix]:
        """Lower and upper end of the confidence interval of each entry.

        Student's law with one degree of freedom less than there are blocks, widened by the discretisation error.
        """
        level = checks.fraction("level", level)
        quantile = stdtrit(self.diagnostics["blocks"] - 1, 0.5 * (1 + level))
        width = quantile * self.standard_error + self.discretisation_error
        return self.matrix - width, self.matrix + width

    def error_of(self, function: Callable[[Matrix], np.ndarray]) -> np.ndarray:
        """Standard error of any function of Phi, from its replicas; zero without any."""
        found = [function(replica) for replica in self.replicas] or [function(self.matrix)]
        return np.std(found, axis=0)

    @property
    def symmetric_error(self) -> Matrix:
        """Standard error of Phi_S."""
        return self.error_of(lambda phi: 0.5 * (phi + phi.T))

    @property
    def antisymmetric_error(self) -> Matrix:
        """Standard error of Phi_A."""
        return self.error_of(lambda phi: 0.5 * (phi - phi.T))

    @property
    def noise_factor_error(self) -> Matrix:
        """Standard error of Sigma."""
        return self.error_of(lambda phi: np.linalg.cholesky(0.5 * (phi + phi.T)))

    def to_physical(self, units: Standardizer) -> "Mobility":
        """The same mobility, with the curves among its diagnostics, in physical units."""
        curves = {
            name: units.mobility_to_physical(np.asarray(self.diagnostics[name])).tolist()
            for name in _CURVES
            if name in self.diagnostics
        }
        if "agreement" in self.diagnostics:
            curves["agreement"] = [_row_in_physical(row, units) for row in self.diagnostics["agreement"]]
        return replace(
            self,
            matrix=units.mobility_to_physical(self.matrix),
            standard_error=units.mobility_to_physical(self.standard_error),
            replicas=units.mobility_to_physical(self.replicas),
            covariances=units.mobility_to_physical(self.covariances),
            diagnostics={**self.diagnostics, **curves},
        )


def _row_in_physical(row: dict[str, Any], units: Standardizer) -> dict[str, Any]:
    """A row of the table of agreement with its matrices in physical units."""
    return {
        name: units.mobility_to_physical(np.asarray(entry)).tolist() if isinstance(entry, list) else entry
        for name, entry in row.items()
    }


@dataclass(frozen=True)
class Inference:
    """Phi, how it depends on the weight of each block of time (for errors), and the evidence behind it."""

    phi: Matrix
    estimate: Callable[[np.ndarray], Matrix]
    blocks: int
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, estimate: Callable[[np.ndarray], Matrix], blocks: int, **diagnostics: Any) -> "Inference":
        """Phi is the estimate in which all blocks count once."""
        return cls(estimate(np.ones(blocks)), estimate, blocks, diagnostics)

    @property
    def standard_error(self) -> Matrix:
        """Sampling error of each entry, from leaving out blocks of time."""
        return jackknife(self.estimate, self.blocks)[1]


class MobilityStrategy(Protocol):
    """How to infer a mobility from a standardised series and its score."""

    def infer(self, series: TimeSeries, score: ScoreFit, *, symmetry: Symmetry, key: jax.Array) -> Inference:
        """Phi with the evidence for it."""
        ...


def estimate_mobility(
    series: TimeSeries, score: ScoreFit, strategy: MobilityStrategy, symmetry: Symmetry, *, key: jax.Array
) -> Mobility:
    """Infer Phi; if its symmetric part is not positive definite, lift it there, for drift and noise alike."""
    found = strategy.infer(series, score, symmetry=symmetry, key=key)
    lift = getattr(strategy, "lift", lift_eigenvalues)
    lifted = lift(found.phi)
    moved = float(np.linalg.norm(lifted - found.phi) / np.linalg.norm(found.phi))
    if moved > 0:
        warnings.warn(
            f"The inferred diffusion was not positive definite: the mobility was moved by {100 * moved:.2g} % to "
            "make it so. The series may be too short, noisy or sampled too coarsely.",
            EstimateWarning,
            stacklevel=3,
        )
    replicas = np.array([lift(phi) for phi in bootstrap(found.estimate, found.blocks)])
    return Mobility(
        lifted,
        found.standard_error,
        type(strategy).__name__,
        replicas + (lifted - lift(found.estimate(np.ones(found.blocks)))),
        {**found.diagnostics, "blocks": found.blocks, "lifted_by": moved},
        _covariances(series, symmetry, found.blocks),
    )


def _covariances(series: TimeSeries, symmetry: Symmetry, blocks: int) -> Float[np.ndarray, "replica var var"]:
    """Covariances of the blocks that the replicas of Phi were drawn from."""
    moments = lagged_moments(series.segments, series.segments, [0], blocks)
    return bootstrap(lambda weights: symmetry.project(moments.mean(weights)[0]), blocks)


def lift_eigenvalues(phi: Matrix, floor: float = 1e-4) -> Matrix:
    """Raise the eigenvalues of the symmetric part to at least `floor` times the largest; keep the rest."""
    values, vectors = np.linalg.eigh(0.5 * (phi + phi.T))
    least = floor * np.abs(values).max()
    if values.min() >= least:
        return phi
    return vectors @ np.diag(np.maximum(values, least)) @ vectors.T + 0.5 * (phi - phi.T)
