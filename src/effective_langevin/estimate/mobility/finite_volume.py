"""The published recipe: a rate matrix on a partition of perturbed samples (paper, Sec. III and V)."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
import scipy.sparse as sp

from ..._core import checks, keys
from ..._core.types import Matrix, Vector
from ...data import TimeSeries
from ...statistics.integral_time import error_groups
from ...statistics.lags import lagged_moments
from ..partition import grow_tree
from ..score import ScoreFit
from ..score.calibration import perturbed, stein_matrix
from ..space import StateSpace
from .base import Inference, MobilityStrategy
from .evidence import MobilityEvidence


@dataclass(frozen=True)
class FiniteVolume(MobilityStrategy):
    """Phi = M V^-1 with M = X Q diag(pi) X^T, exactly as published.

    Kept for comparison: M is a finite difference of the quantised series and carries its bias.

    Parameters
    ----------
    min_mass : float, default 1e-4
        Cells are split until they hold less than this share of the samples.
    correction : {"global", "per-state", "none"}, default "global"
        Correction of the rates for the jumps missed within h: one factor that matches the mean corrected diagonal, one
        factor per cell, kappa_i = -ln p_stay / (1 - p_stay), or none.
    cells : int, optional
        Number of cells, in place of `min_mass`.

    See Also
    --------
    IntegratedResponse : without that bias.

    Examples
    --------
    >>> el.FiniteVolume(cells=500).correction
    'global'
    """

    min_mass: float = 1e-4
    correction: str = "global"
    cells: int | None = None

    def __post_init__(self):
        checks.fraction("min_mass", self.min_mass)
        if self.cells is not None:
            checks.integer_at_least("cells", self.cells, 2)
        checks.one_of("correction", self.correction, ("none", "per-state", "global"))

    def infer(self, series: TimeSeries, score: ScoreFit, *, space: StateSpace, key: jax.Array) -> Inference:
        samples = series.stacked().astype(np.float32)
        y = perturbed(samples, score.spread, key=keys.named(key, "labels"))
        min_mass = self.min_mass if self.cells is None else None
        tree = grow_tree(y, cells=self.cells, min_mass=min_mass, key=keys.named(key, "tree"))
        labels = np.split(tree.assign(y), np.cumsum([len(s) for s in series.segments])[:-1])
        counts = count_transitions(labels, tree.cells)
        weights = tree.counts / tree.counts.sum()
        factors = rate_corrections(counts, self.correction)
        derivative = tree.centroids.T @ (rate_matrix(counts, series.dt, factors) @ (weights[:, None] * tree.centroids))
        stein = stein_matrix(score.function.over, samples, score.spread, key=keys.named(key, "stein"))
        phi = space.symmetry.project(np.linalg.solve(stein.T, derivative.T).T)
        # X Q diag(pi) X^T is < (c(t+h) - c(t)) kappa c(t)^T > / h of the quantised series, a mean over its blocks.
        blocks = error_groups(series.segments, series.dt)
        quantised = [tree.centroids[piece] for piece in labels]
        corrected = [factors[piece, None] * tree.centroids[piece] for piece in labels]
        moments = lagged_moments(quantised, corrected, [0, 1], blocks)

        def estimate(weights: np.ndarray) -> Matrix:
            now, later = moments.mean(weights)
            return space.symmetry.project(np.linalg.solve(stein.T, (later - now).T / series.dt).T)

        extra = {"cells": tree.cells, "mean_correction": float(weights @ factors), "stein": stein.tolist()}
        return Inference(phi, estimate, MobilityEvidence(blocks=blocks, extra=extra))

    def lift(self, phi: Matrix) -> Matrix:
        """The published shift of the symmetric part by |lambda_min| + 5e-4, entering drift and noise alike."""
        least = np.linalg.eigvalsh(0.5 * (phi + phi.T)).min()
        return phi if least > 0 else phi + (abs(least) + 5e-4) * np.eye(len(phi))


def count_transitions(labels: Sequence[np.ndarray], cells: int) -> sp.csc_array:
    """N[j, i]: how often cell i is followed by cell j, within segments only."""
    origin = np.concatenate([piece[:-1] for piece in labels])
    target = np.concatenate([piece[1:] for piece in labels])
    return sp.coo_array((np.ones(len(origin)), (target, origin)), shape=(cells, cells)).tocsc()


def rate_corrections(counts: sp.csc_array, correction: str) -> Vector:
    """Factor on the exit rate of each cell for the jumps missed between two samples.

    A cell that was never seen to stay has p_stay below one count; half a count is used there.
    """
    visits = np.maximum(np.asarray(counts.sum(axis=0)).ravel(), 1.0)
    stay = np.clip(counts.diagonal() / visits, 0.5 / visits, 1 - 1e-12)
    kappa = -np.log(stay) / (1 - stay)
    if correction == "none":
        return np.ones_like(kappa)
    if correction == "per-state":
        return kappa
    return np.full_like(kappa, np.mean(-np.log(stay)) / np.mean(1 - stay))


def rate_matrix(counts: sp.csc_array, dt: float, factors: Vector) -> sp.csc_array:
    """The column generator: Q[j, i] = factor_i N(i -> j) / (N_i h) off the diagonal, columns sum to zero."""
    visits = np.maximum(np.asarray(counts.sum(axis=0)).ravel(), 1.0)
    leaving = counts - sp.diags_array(counts.diagonal())
    rates = leaving @ sp.diags_array(factors / (visits * dt))
    return sp.csc_array(rates - sp.diags_array(np.asarray(rates.sum(axis=0)).ravel()))
