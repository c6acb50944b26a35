"""Every variable on its own."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import cast

import numpy as np
from scipy.ndimage import gaussian_filter

from ..data import TimeSeries
from ..model.rates import Landscape
from ..statistics.conditional_means import StateBins, step_profiles
from ..statistics.densities import BINS, SeriesStatistics, pair_histogram
from ..statistics.lags import lagged_moments, longest_lag
from ..statistics.resampling import GROUPS
from ..statistics.watershed import basin_shares
from .curves import Curve, basin_name
from .rates import find_landscape, passage_curve, share_curve
from .sides import OriginalVariables, Pair
from .state_fields import field_arrows, field_profiles
from .views import (
    MOST_PANELS,
    Coords,
    Maker,
    OfWeights,
    View,
    pair_curve,
    tail_curve,
    variable_coords,
    with_errors,
    worst,
)

_MOST_ROWS = 6
_MOST_PAIRS = 6
_MOST_ENTRIES = 9
_CROSS_DIMENSIONS = 4
_RESPONDING = 1 << 18  # samples of each side from which responses follow
_PLANE = 2  # variables: up to so many, drift and current are drawn whatever the closure
_STEP_TIME = 0.1  # of the shortest integral time
# Bins are joined for the eye until they hold enough samples; joint densities need more of them.
_BIN_GROUPS, _BIN_SAMPLES = (2, 4, 5, 8, 10), 100
_PAIR_GROUPS, _PAIR_SAMPLES = (5, 10), 20_000


class VariablesView(View):
    """Every variable on its own; of many, figures show those that differ most."""

    what = "Variable"

    def subject(self) -> str:
        """Name the variables, or count them."""
        seen = self.model.names[: self.model.space.observed]
        return ", ".join(seen) if len(seen) <= _MOST_ROWS else f"{len(seen)} variables"

    def makers(self) -> dict[str, Maker]:
        model, sides, original = self.model, self.sides, self.sides.original
        angles = [name for k in model.space.angles if original and (name := model.names[k]) in original.data.names]
        planar = model.fields is not None or model.dimension <= _PLANE
        standard, shortest = sides.standard, sides.integral_times.min()
        return {
            **super().makers(),
            "cross_correlation": self.cross_correlation,
            "response": self.response,
            "step_size": lambda: step_curve(sides.data.map(standard), sides.paths.map(standard), shortest),
            "original_pdf": lambda: original and pdf_curve(original),
            "original_tails": self.original_tails,
            "field_profiles": lambda: field_profiles(model, self._own_data()) if planar else None,
            "field_arrows": lambda: field_arrows(model, self._own_data()) if planar else None,
            "basin_share": lambda: self._landscape and share_curve(model, self._landscape, sides.series),
            "passage_time": lambda: self._landscape and passage_curve(model, self._landscape, sides.data),
            **{basin_name(name): partial(self._basins, name) for name in angles},
        }

    @property
    def acfs(self) -> Sequence[OfWeights]:
        return [s.acf for s in self.sides.statistics]

    @property
    def edges(self) -> np.ndarray:
        return self.sides.data_statistics.edges

    @cached_property
    def kl(self) -> np.ndarray:
        return self.sides.kl()

    def labels(self, shown: Sequence[int] | None = None) -> Coords:
        return variable_coords(self.sides.data, shown)

    def pdf(self) -> Curve:
        return pdf_curve(self.sides)

    def original_tails(self) -> Curve | None:
        """Return the densities in the variables of the series over their whole range."""
        found = self.sides.original
        if found is None:
            return None
        shown = worst(found.kl(), MOST_PANELS)
        return tail_curve([s.stacked()[:, shown, None] for s in found.series], variable_coords(found.data, shown))

    def cross_correlation(self) -> Curve | None:
        """Return the correlations of pairs of variables."""
        if not 1 < self.sides.data.dimension <= _CROSS_DIMENSIONS:
            return None
        coords = {**self.lags(), **self.labels(), "earlier": (("earlier",), list(self.sides.data.names))}
        curves = with_errors(lambda s: s.correlation, self.sides.statistics)
        return Curve(("lag", "variable", "earlier"), **curves, coords=coords, units={"lag": self.time_unit})

    def response(self) -> Curve | None:
        """Return what is left of a small push on a variable, in each variable, from fluctuations and the score.

        K(tau) = -< x(tau) s(x(0))^T >, on each side in units of K(0), which is one for the exact score.
        """
        space, names = self.model.space, list(self.sides.data.names)
        if space.hidden or space.angles or len(names) > _CROSS_DIMENSIONS:
            return None
        series = [s.excerpt(_RESPONDING) if s.n_samples > _RESPONDING else s for s in self.sides.series]
        reach = min(longest_lag(s.segments) for s in series)
        lags = np.array([lag for lag in self.sides.data_statistics.lagged.lags if lag <= reach])

        def kernel(one: TimeSeries) -> OfWeights:
            mean = one.stacked().mean(axis=0)
            scores = [np.asarray(self.model.score_function(s), float) for s in one.segments]
            moments = lagged_moments([s - mean for s in one.segments], scores, lags, GROUPS)

            def of(weights: np.ndarray) -> np.ndarray:
                products = -moments.mean(weights)
                return products @ np.linalg.inv(products[0])

            return of

        coords = {"lag": (("lag",), lags * self.sides.data.dt), **self.labels(), "pushed": (("pushed",), names)}
        curves = with_errors(kernel, series)
        return Curve(("lag", "variable", "pushed"), **curves, coords=coords, units={"lag": self.time_unit})

    def sample_path(self) -> Curve:
        shown = worst(self.rmse, _MOST_ROWS)
        pieces, times = self.stretches()
        values, coords = (p[:, shown] for p in pieces), {**times, **self.labels(shown)}
        return Curve(("time", "variable"), *values, coords=coords, units={"time": self.time_unit})

    def pair_density(self) -> Curve | None:
        """Return the joint densities of the pairs that Phi couples most; pairs of angles, not of their cos and sin."""
        model, original = self.model, self.sides.original
        shown = original if model.space.angles and original else self.sides
        seen = model.space.observed
        phi = np.abs(self.standard_mobility())[:seen, :seen]
        rows, columns = np.triu_indices(len(phi), 1)
        pairs = [(int(rows[k]), int(columns[k])) for k in worst((phi + phi.T)[rows, columns], _MOST_PAIRS)]
        if not pairs:
            return None
        edges, group = shown.data_statistics.edges, _PAIR_GROUPS[self.sides.data.n_samples < _PAIR_SAMPLES]
        densities = [
            [gaussian_filter(pair_histogram(s.stacked(), edges, i, j, group), 1.0) for i, j in pairs]
            for s in shown.series
        ]
        return pair_curve(densities, edges[:, ::group], pairs, shown.data.names, shown.data.units)

    @cached_property
    def _landscape(self) -> Landscape | None:
        return find_landscape(self.model)

    def _own_data(self) -> TimeSeries | None:
        """Return the data in the variables of the equation: angles, not their cos and sin; None if some are hidden."""
        if self.model.space.hidden:
            return None
        return self.sides.data if not self.model.space.angles else self.sides.original and self.sides.original.data

    def mobility_by_horizon(self) -> Curve | None:
        """Return the largest entries of Phi(T); beside a current that depends on the state, of the diffusion."""
        model, found = self.model, self.model.mobility.evidence.horizon
        if found is None or found.phi is None:
            return None
        matrix, symbol = (model.mobility.matrix, "Φ") if model.fields is None else (model.mobility.symmetric, "D")
        size = np.abs(self.standard_mobility(matrix))
        rows, columns = np.divmod(worst(size.ravel(), _MOST_ENTRIES), len(size))
        curves = found.phi[:, rows, columns]
        used = np.broadcast_to(matrix[rows, columns], curves.shape)
        chosen = np.nan if found.chosen is None else found.chosen[0]
        coords = {
            "horizon": (("horizon",), found.horizons),
            "entry": (("entry",), [f"{model.names[i]}, {model.names[j]}" for i, j in zip(rows, columns)]),
            "row": (("entry",), [model.names[i] for i in rows]),
            "column": (("entry",), [model.names[j] for j in columns]),
            "chosen": (("entry",), np.full(len(rows), chosen, float)),
            "symbol": ((), symbol),
        }
        error = None if found.standard_error is None else found.standard_error[:, rows, columns]
        errors = (None, None) if error is None else (error, np.zeros(curves.shape))
        return Curve(("horizon", "entry"), curves, used, *errors, coords, {"horizon": model.time_unit})

    def _basins(self, name: str) -> Curve:
        """Return how much of data and model lies in each basin of an angle."""
        space, original = self.model.space, cast(OriginalVariables, self.sides.original)
        column, place = self.model.names.index(name), original.data.names.index(name)
        lowest, period = space.lowest[column], float(space.periods[column] or 0.0)
        one, other = (series.stacked()[:, place] for series in original.series)
        centres, (data, data_error), (model, model_error) = basin_shares(one, other, lowest, period)
        coords = {"centre": (("basin",), centres), "angle": ((), name)}
        return Curve(("basin",), data, model, data_error, model_error, coords, {"centre": self.model.units[column]})


def pdf_curve(pair: Pair) -> Curve:
    """Return the density of each variable, bins joined until they hold enough samples."""
    samples, edges = pair.data.n_samples, pair.data_statistics.edges
    bins = next((g for g in _BIN_GROUPS if samples * g >= BINS * _BIN_SAMPLES), _BIN_GROUPS[-1])

    def density(side: SeriesStatistics, weights: np.ndarray) -> np.ndarray:
        counts = side.histogram(weights)
        density = counts / counts.sum(axis=1, keepdims=True) / np.diff(edges, axis=1)
        return density.reshape(len(density), -1, bins).mean(axis=-1)

    coords = variable_coords(pair.data)
    coords |= {"edges": (("variable", "edge"), edges[:, ::bins]), "kl": (("variable",), pair.kl())}
    return Curve(("variable", "bin"), **with_errors(lambda s: partial(density, s), pair.statistics), coords=coords)


def step_curve(data: TimeSeries, paths: TimeSeries, shortest: float) -> Curve:
    """Return the mean squared steps of standardised series by state, relative to their mean.

    They are taken over a tenth of the `shortest` integral time, which is mostly noise.
    """
    lag = min(max(1, round(_STEP_TIME * shortest / data.dt)), min(len(s) for s in paths.segments) - 1)
    bins = StateBins.from_samples(data.stacked())
    one, other = (step_profiles(s.segments, lag, bins) for s in (data, paths))
    coords = {"by": (("by",), ["value", "radius"]), **variable_coords(data), "tau": ((), lag * data.dt)}
    return Curve(("by", "variable", "fifth"), one[0], other[0], one[1], other[1], coords, {"tau": data.time_unit})
