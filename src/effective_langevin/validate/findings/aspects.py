"""The tests behind the verdict: steady state, time scales, increments, return times and score.

Each compares many differences between data and model together. Up to `small` a difference does not matter in practice;
beyond `large` it spoils the model. Both are judgements; the levels of the tests are measured by `benchmarks.verdict`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from ..._core.format import after_number, short
from ...data import TimeSeries
from ...model import LangevinModel
from ...statistics.joint_tests import (
    POWER,
    Differences,
    Grouped,
    Outcome,
    ResampledNull,
    StudentNull,
    estimate_in_groups,
    shares_below,
)
from ...statistics.lags import LaggedMoments
from ...statistics.resampling import GROUPS
from ..curves import Curve

if TYPE_CHECKING:
    from ..sides import Sides
    from ..validation import Validation
    from ..views import View

# What is small and what is large, and how a size is written.
LIMITS: dict[str, tuple[float, float]] = {
    "probability": (0.02, 0.1),
    "covariance": (0.05, 0.3),
    "correlation time": (np.log(1.1), np.log(1.3)),
    "correlation": (0.03, 0.15),
    "mean squared increment": (np.log(1.1), np.inf),
    "return time": (np.log(1.1), np.inf),
    "Stein's identity": (0.1, 0.3),
}
RATIOS = ("correlation time", "mean squared increment", "return time")
FAMILY = 5  # tests among which the levels are shared, at most
USABLE_CHANCE, POOR_CHANCE = 0.05, 0.01  # of an alarm about a right model, over all tests together
SEED_ERRORS = 2.0  # a verdict that changes when differences move by so many of their Monte-Carlo errors is a close call
_PROBABILITIES = np.linspace(0.05, 0.95, 19)
_LEVEL_SAMPLES = 100_000  # from which levels are taken; the probabilities below them are those of all samples
_LAGS, _CROSS_LAGS = 16, 6
_MOST_CROSSED = 6
_DECAYED = 0.1  # autocorrelation at which the integral of a correlation time ends
_HONEST = 10  # independent parts of the record that give an error; with fewer, the model's own scatter is used
_STEIN_PARTS, _HELD_OUT = 10, 0.2
_KNOWN = 0.25  # relative error up to which a return time is compared


@dataclass(frozen=True)
class Aspect:
    """The outcome of one joint test: the difference that decides, what could be detected, and by how much seeds matter.

    `outcomes` are those of differences made smaller by twice their Monte-Carlo error, as they are, and made larger;
    `seed_error` is that error. `largest` is the largest difference of each kind, `detectable` the size that would have
    been detected.
    """

    name: str
    kind: str
    label: str
    data: float
    model: float
    gap: float
    error: float
    seed_error: float
    outcomes: tuple[Outcome, ...]
    largest: dict[str, float]
    detectable: dict[str, float]

    @property
    def limits(self) -> tuple[float, float]:
        return LIMITS[self.kind]

    @property
    def p(self) -> float:
        """Chance of so large a difference if the true ones are small."""
        return self.outcomes[1].p_small

    def words(self) -> str:
        """Name the difference that decides, with its size."""
        if self.kind in RATIOS:
            return f"the {self.label} is {np.exp(self.gap):.2f} ± {np.exp(self.gap) * self.error:.2f} times the data's"
        if self.kind == "Stein's identity":
            return f"Stein's identity is violated by {self.gap:.2f} ± {self.error:.2f} on held-out samples"
        error = f" (standard error of the difference {short(self.error)})"
        return f"{self.label} is {self.model:.3f} in the model and {self.data:.3f} in the data{error}"

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Aspect":
        """Restore it from the plain data of `asdict`."""
        outcomes = tuple(Outcome(**outcome) for outcome in content["outcomes"])
        return cls(**{**content, "outcomes": outcomes})


def size_words(kind: str, size: float) -> str:
    """Write a size of this kind of difference."""
    if not np.isfinite(size):
        return "none"
    return f"{100 * np.expm1(size):.0f} %" if kind in RATIOS else short(size)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What is compared: kinds and labels of the differences, and an estimate of all of them from weighted groups."""

    kinds: list[str]
    labels: list[str]
    of_data: Callable[[np.ndarray], np.ndarray]
    of_model: Callable[[np.ndarray], np.ndarray]

    def __add__(self, other: "_Parts") -> "_Parts":
        pairs = ((self.of_data, other.of_data), (self.of_model, other.of_model))
        both = (lambda w, one=one, two=two: np.concatenate([one(w), two(w)]) for one, two in pairs)
        return _Parts(self.kinds + other.kinds, self.labels + other.labels, *both)

    def test(self, name: str, groups: int, more_model: float, other: float | np.ndarray = 0.0) -> Aspect:
        """Compare both sides; `groups` independent parts of the record, `more_model` times as much model as data.

        With few independent parts the error of the data is that of a piece of the model as long as the data.
        """
        blocks = GROUPS if groups >= GROUPS else _HONEST if groups >= _HONEST else 5 if groups >= 5 else 4
        data, model = estimate_in_groups(self.of_data, blocks), estimate_in_groups(self.of_model)
        known = np.isfinite(data.value) & np.isfinite(model.value)
        data, model = (Grouped(s.value[known], s.influence[:, known]) for s in (data, model))
        if groups >= _HONEST:
            pulls, error, cautious = data.influence, data.error, data.error
        else:
            pulls = model.influence * np.sqrt(more_model)
            error = model.error * np.sqrt(more_model)
            cautious = np.maximum(error, data.error)
        kinds = [kind for kind, kept in zip(self.kinds, known) if kept]
        labels = [label for label, kept in zip(self.labels, known) if kept]
        more = np.broadcast_to(other, known.shape)[known]
        total, shown = (np.sqrt(e**2 + model.error**2 + more**2) for e in (error, cautious))
        null = ResampledNull.of([pulls, model.influence])
        small, large = np.array([LIMITS[kind] for kind in kinds]).T
        gap = model.value - data.value
        found = Differences(gap, total, model.error, small, large, null, blocks, shown)
        return _aspect(name, kinds, labels, data.value, model.value, found)


def _aspect(
    name: str, kinds: list[str], labels: list[str], data: np.ndarray, model: np.ndarray, found: Differences
) -> Aspect:
    outcomes = tuple(found.outcome(shift) for shift in (-SEED_ERRORS, 0.0, SEED_ERRORS))
    place = _deciding(found, outcomes[1])
    sizes = (np.abs(found.gap), found.detectable(USABLE_CHANCE / FAMILY))
    largest, detectable = (
        {k: float(max(s[[k == other for other in kinds]])) for k in dict.fromkeys(kinds)} for s in sizes
    )
    numbers = (data, model, found.gap, found.error, found.other_error)
    one, two, gap, error, seed_error = (float(values[place]) for values in numbers)
    return Aspect(name, kinds[place], labels[place], one, two, gap, error, seed_error, outcomes, largest, detectable)


def _deciding(found: Differences, outcome: Outcome) -> int:
    """Return the place of the difference that is too large, or the least known to be small enough."""
    if outcome.p_large < POOR_CHANCE:
        return int(np.argmax(found.sizes(found.large)))
    if outcome.shown or outcome.p_small < USABLE_CHANCE:
        return int(np.argmax(found.sizes(found.small)))
    return int(np.argmax(found.upper() / found.large))


def of_samples(sides: "Sides", view: "View", groups: int, mobility_error: float) -> tuple[Aspect, ...]:
    """Test steady state and time scales, and the densities of the original variables where there are some."""
    names, original = [str(name) for name in view.labels()["variable"][1]], sides.original
    parts = _probabilities(sides.data, sides.paths, names) + _covariances(sides, names)
    steady = parts.test("steady state", groups, sides.paths.n_samples / sides.data.n_samples)
    tests = (steady, _time_scales(sides, names, groups, mobility_error))
    if original is None:
        return tests
    parts = _probabilities(original.data, original.paths, original.data.names)
    more_model = original.paths.n_samples / original.data.n_samples
    return (*tests, parts.test("original variables", groups, more_model))


def _time_scales(sides: "Sides", names: Sequence[str], groups: int, mobility_error: float) -> Aspect:
    """Compare correlation times and correlations lag by lag; the mobility is known to a relative `mobility_error`."""
    tau, points = sides.data_statistics.tau, sides.data.dimension // len(names)
    data, model = (_autocorrelations(s.lagged, points) for s in sides.statistics)
    whole = data(np.ones(GROUPS))
    ends = [_first_below(curve, _DECAYED) for curve in whole.T]
    shown = np.unique(np.linspace(1, len(tau) - 1, min(_LAGS, len(tau) - 1)).round().astype(int))
    parts = _Parts(
        ["correlation time"] * len(names),
        [f"correlation time of {name}" for name in names],
        *(lambda w, of=of: _log_times(of(w), tau, ends) for of in (data, model)),
    ) + _Parts(
        ["correlation"] * (len(shown) * len(names)),
        [f"the autocorrelation of {name} at lag {_time(sides, float(t))}" for t in tau[shown] for name in names],
        *(lambda w, of=of: of(w)[shown].ravel() for of in (data, model)),
    )
    # A relative error r of the mobility changes the times by r, and a correlation C(t) by about r t C'(t).
    slopes = np.abs(tau[:, None] * np.gradient(whole, tau, axis=0))[shown].ravel()
    gains = np.concatenate([np.ones(len(names)), slopes])
    if points == 1 and 1 < len(names) <= _MOST_CROSSED:
        crossed = _cross_correlations(sides, names)
        parts, gains = parts + crossed, np.concatenate([gains, np.full(len(crossed.kinds), 1 / np.e)])
    more_model = sides.paths.n_samples / sides.data.n_samples
    return parts.test("time scales", groups, more_model, mobility_error * gains)


def of_curves(validation: "Validation", mobility_error: float) -> list[Aspect]:
    """Compare mean squared increments and return times of rare levels, as far as there are any."""
    found, (steps, rare) = [], (validation.curves.get(name) for name in ("increment", "rare_return_time"))
    if steps is not None:
        kind, unit = "mean squared increment", after_number(steps.unit("interval"))
        labels = [f"{kind} of {name} over {tau:.3g}{unit}" for tau in steps["interval"] for name in steps.labels]
        found.append(_ratios("increments", kind, steps, labels, mobility_error))
    if rare is not None:
        ends = [(name, *end) for name, row in zip(rare.labels, rare["levels"]) for end in zip(("below", "above"), row)]
        labels = [f"return time of {name} {side} {short(float(level))}" for name, side, level in ends]
        found.append(_ratios("return times", "return time", rare, labels, mobility_error))
    return [aspect for aspect in found if aspect]


def score(model: LangevinModel) -> Aspect:
    """Test Stein's identity on held-out samples: the norm of the Stein matrix against its error from ten parts.

    Under the null the squared norm is a mixture of squares of Student variables whose mean is the squared error: a
    single one has the heaviest tail. The calibration on the other samples adds its own error.
    """
    kind = "Stein's identity"
    size, error = model.score.stein_error, model.score.stein_standard_error / np.sqrt(1 - _HELD_OUT)
    small, large = LIMITS[kind]
    null = StudentNull(_STEIN_PARTS, 1)
    chances = [null.chance((size - limit) / max(error, 1e-12)) for limit in (small, large)]
    outcome = Outcome(chances[0], chances[1], True)
    detectable = small + (null.critical(USABLE_CHANCE / FAMILY) + ndtri(POWER)) * error
    return Aspect("score", kind, kind, 0.0, size, size, error, 0.0, (outcome,) * 3, {kind: size}, {kind: detectable})


def _probabilities(data: TimeSeries, paths: TimeSeries, names: Sequence[str]) -> _Parts:
    samples, points = data.stacked(), data.dimension // len(names)
    levels = np.quantile(samples[:: max(1, len(samples) // _LEVEL_SAMPLES)], _PROBABILITIES, axis=0).T
    ends = zip(names, levels[::points])
    labels = [f"the probability of {name} below {short(float(v))}" for name, row in ends for v in row]

    def of(shares: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        pooled = shares.reshape(GROUPS, len(names), points, -1).mean(axis=2).reshape(GROUPS, -1)
        return lambda weights: weights @ pooled / weights.sum()

    sides = (of(shares_below(s, levels)) for s in (samples, paths.stacked()))
    return _Parts(["probability"] * len(labels), labels, *sides)


def _covariances(sides: "Sides", names: Sequence[str]) -> _Parts:
    """Entries of the covariance matrix in units of the standard deviations of the data; of fields, variances only."""
    width, points = sides.data.dimension, sides.data.dimension // len(names)
    full = points == 1 and width <= _MOST_CROSSED
    rows, columns = np.triu_indices(width) if full else (np.arange(width),) * 2
    spread = np.sqrt(np.diagonal(sides.data_statistics.covariance(np.ones(GROUPS))))
    shown = zip((rows // points).tolist(), (columns // points).tolist())
    pairs_shown = [(names[i], names[j]) for i, j in shown][::points]
    labels = [f"the variance of {a}" if a == b else f"the correlation of {a} and {b}" for a, b in pairs_shown]

    def of(lagged: LaggedMoments) -> Callable[[np.ndarray], np.ndarray]:
        sums, pairs = lagged.sums[:, 0, rows, columns], lagged.pairs[:, 0]
        scale = spread[rows] * spread[columns] * points

        def covariance(weights: np.ndarray) -> np.ndarray:
            found = weights @ sums / (weights @ pairs) / scale
            return found.reshape(-1, points).sum(axis=1)

        return covariance

    return _Parts(["covariance"] * len(labels), labels, *(of(s.lagged) for s in sides.statistics))


def _autocorrelations(lagged: LaggedMoments, points: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the autocorrelations (lag, variable or field) for any weights of the groups."""
    sums = np.diagonal(lagged.sums, axis1=2, axis2=3)
    sums = sums.reshape(*sums.shape[:2], -1, points).mean(axis=-1)

    def of(weights: np.ndarray) -> np.ndarray:
        means = np.tensordot(weights, sums, 1) / np.maximum(weights @ lagged.pairs, 1)[:, None]
        return means / means[0]

    return of


def _cross_correlations(sides: "Sides", names: Sequence[str]) -> _Parts:
    tau = sides.data_statistics.tau
    shown = np.unique(np.linspace(1, (len(tau) - 1) // 2 + 1, _CROSS_LAGS).round().astype(int))
    shown = shown[shown < len(tau)]
    rows, columns = np.nonzero(~np.eye(len(names), dtype=bool))
    labels = [
        f"the correlation of {names[i]} with {names[j]} a time {_time(sides, float(time))} before"
        for time in tau[shown]
        for i, j in zip(rows.tolist(), columns.tolist())
    ]
    curves = (lambda w, s=s: s.correlation(w)[shown][:, rows, columns].ravel() for s in sides.statistics)
    return _Parts(["correlation"] * len(labels), labels, *curves)


def _log_times(acf: np.ndarray, tau: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Logarithms of the integrals of autocorrelations up to given lags; what is not positive counts as very short."""
    times = [np.trapezoid(acf[: end + 1, v], tau[: end + 1]) for v, end in enumerate(ends)]
    return np.log(np.maximum(times, 0.02 * tau[list(ends)]))


def _first_below(acf: np.ndarray, level: float) -> int:
    below = np.flatnonzero(acf < level)
    return max(int(below[0]) if len(below) else len(acf) - 1, min(2, len(acf) - 1))


def _ratios(name: str, kind: str, curve: Curve, labels: list[str], other: float) -> Aspect | None:
    """Compare the logarithms of a curve whose parts are tested by Student's law."""
    if curve.data_error is None or curve.model_error is None:
        return None
    values = (curve.data, curve.model, curve.data_error, curve.model_error)
    data, model, data_error, model_error = (np.ravel(v) for v in values)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = data_error / data, model_error / model
        known = (data > 0) & (model > 0) & np.isfinite(one) & np.isfinite(two)
        known &= one < (_KNOWN if kind == "return time" else np.inf)
    if not known.any():
        return None
    data, model, one, two = (v[known] for v in (data, model, one, two))
    error = np.sqrt(one**2 + two**2 + other**2)
    small, large = (np.full(len(data), limit) for limit in LIMITS[kind])
    null = StudentNull(GROUPS, len(data))
    found = Differences(np.log(model / data), error, two, small, large, null, GROUPS, error)
    labels = [label for label, kept in zip(labels, known) if kept]
    return _aspect(name, [kind] * len(labels), labels, data, model, found)


def _time(sides: "Sides", value: float) -> str:
    return f"{value:.3g}{after_number(sides.data.time_unit)}"
