"""One angle, standardised as `fit` does it."""

from typing import NamedTuple

import numpy as np

import effective_langevin as el
from effective_langevin._core import keys
from effective_langevin.data.angles import unfold
from effective_langevin.estimate.closure.circle import RingInference, close_ring, infer_ring
from effective_langevin.estimate.score import ScoreFit, estimate_score
from effective_langevin.estimate.space import StateSpace
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.model.analysis import EntropyProduction, entropy_of_fields


class StandardRing(NamedTuple):
    """A series of one angle in standardised units with its score."""

    units: el.Standardizer
    series: el.TimeSeries
    space: StateSpace
    score: ScoreFit

    @classmethod
    def of(cls, series: el.TimeSeries, score=None) -> "StandardRing":
        series = unfold(series)
        units = el.Standardizer.from_series(series)
        space = StateSpace.of(series, NoSymmetry()).in_units_of(units.std)
        standard = series.map(units.to_standard)
        return cls(
            units, standard, space, estimate_score(standard, score or el.KGMM(), space, key=keys.key_from_seed(0))
        )

    def infer(self) -> RingInference:
        return infer_ring(self.series, self.score, self.space)

    def entropy_production(self) -> EntropyProduction:
        """< nu . D^-1 nu > of the fitted fields at smoothed samples, in any units."""
        fields = close_ring(self.series, self.score, self.space).fields
        states = self.series.stacked()[::20].astype(float)
        states = states + self.score.noise_level * np.random.default_rng(0).normal(size=states.shape)

        def at_states(given):
            return np.asarray(given.current.in_batch(states, None), float), np.asarray(given.diffusion.matrix, float)

        return entropy_of_fields(*at_states(fields), map(at_states, fields.drawn()))

    def velocity(self, found: RingInference, angle: np.ndarray) -> np.ndarray:
        """nu in physical units at angles (sample, 1)."""
        x = self.units.to_standard(np.array(angle, float))
        return np.asarray(found.fields()[0].in_batch(x, None), float) * self.units.std
