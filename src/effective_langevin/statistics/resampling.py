"""Error bars from groups of consecutive samples, and how many of them a deviation must exceed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri, stdtrit

from .._core.types import Samples
from ..data.lazy import window

# Chance that one check raises an alarm about a series that is as it should be, over all that it compares together.
FALSE_ALARM = 0.002
# Groups of consecutive samples for the error bars of curves and densities: the error itself is known to 16 %.
GROUPS = 20
_LEAST_RATING = 16
_DRAWS_OF_SYMMETRY = 1000


class OverWeights:
    """An estimate for any weights of the groups that takes many of them at once, (draw, group) -> (draw, ...)."""

    def __init__(self, function: Callable[[np.ndarray], np.ndarray]):
        self.together = function

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        return self.together(weights[None])[0]


def for_each(estimate: Callable[[np.ndarray], np.ndarray], weights: Float[np.ndarray, "draw group"]) -> np.ndarray:
    """Estimate with each of many weights, (draw, ...)."""
    if isinstance(estimate, OverWeights):
        return estimate.together(weights)
    return np.array([estimate(one) for one in weights])


def jackknife(estimate: Callable[[np.ndarray], np.ndarray], groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Estimate from all groups, with the standard error from leaving out each in turn."""
    return estimate(np.ones(groups)), jackknife_error(left_out(estimate, groups))


def left_out(estimate: Callable[[np.ndarray], np.ndarray], groups: int) -> np.ndarray:
    """Estimate without each of the groups, (group, ...)."""
    return for_each(estimate, 1.0 - np.eye(groups))


def jackknife_error(others: np.ndarray) -> np.ndarray:
    """Standard error from estimates without each of the groups."""
    return np.sqrt((len(others) - 1) * others.var(axis=0))


def simplest_of_best(
    losses: Float[np.ndarray, "candidate group"], spared: float = 0.0
) -> tuple[int, Float[np.ndarray, " candidate"], Float[np.ndarray, " candidate"]]:
    """Return the first candidate whose loss is within one standard error, and `spared`, of the best.

    Also the excess of each over the best, and its standard error.
    """
    gaps = losses - losses[losses.mean(axis=1).argmin()]
    excess, errors = gaps.mean(axis=1), gaps.std(axis=1, ddof=1) / np.sqrt(gaps.shape[1])
    return int(np.flatnonzero(excess <= errors + spared)[0]), excess, errors


def rating_groups(groups: int) -> int:
    """Return how many groups rate candidates by their scatter: a multiple of those for error bars, 16 at least.

    Among candidates rated by a few groups the best is one whose scatter is small by chance, and so is its error bar.
    """
    return groups * -(-_LEAST_RATING // groups)


def bootstrap(estimate: Callable[[np.ndarray], np.ndarray], groups: int, draws: int = 200, seed: int = 0) -> np.ndarray:
    """Estimate from groups drawn with replacement, (draw, ...)."""
    return for_each(estimate, drawn_weights(groups, draws, seed))


def drawn_weights(groups: int, draws: int = 200, seed: int = 0) -> Float[np.ndarray, "draw group"]:
    """How often each group counts when as many groups are drawn with replacement."""
    return np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), draws).astype(float)


def moving_blocks(cells: int, blocks: int, draws: int = 200, seed: int = 0) -> Float[np.ndarray, "draw cell"]:
    """How often each cell counts when as many blocks of consecutive cells are drawn as fill the record.

    A block begins at any cell, and goes on from the last to the first: of a few blocks there are then more than a few.
    """
    length = cells // blocks
    first = np.random.default_rng(seed).integers(cells, size=(draws, blocks))
    drawn = (first[..., None] + np.arange(length)).reshape(draws, -1) % cells
    return np.array([np.bincount(row, minlength=cells) for row in drawn], float)


def critical(groups: int, tests: int = 1, chance: float = FALSE_ALARM) -> float:
    """Return how many jackknife errors a deviation must exceed to be real (Student's law, Bonferroni over `tests`)."""
    return float(stdtrit(groups - 1, 1 - chance / (2 * max(tests, 1))))


def scatter_of_draws(drawn: np.ndarray, groups: int) -> np.ndarray:
    """Return the standard error from groups drawn with replacement, which scatter too little if there are few."""
    return np.std(drawn, axis=0) * np.sqrt(groups / (groups - 1) if groups > 1 else 1.0)


def student_limit(groups: int, level: float) -> float:
    """Return how many standard errors from so many groups an interval of that level reaches; normal without groups."""
    return float(stdtrit(groups - 1, 0.5 * (1 + level)) if groups > 1 else ndtri(0.5 * (1 + level)))


def split(segments: Sequence[Samples], number: int) -> Iterator[list[Samples]]:
    """Cut segments into `number` groups of equally many consecutive samples, as views that do not cross borders."""
    edges = np.linspace(0, sum(len(s) for s in segments), number + 1).astype(int)
    starts = np.cumsum([0, *(len(s) for s in segments)])
    for low, high in pairwise(edges):
        first, last = np.searchsorted(starts, low, side="right") - 1, np.searchsorted(starts, high, side="left")
        yield [window(segments[k], int(max(low - starts[k], 0)), int(high - starts[k])) for k in range(first, last)]


@dataclass(frozen=True)
class SymmetryTest:
    """How far the data are from a symmetry, relative to their size, and how often chance does as much."""

    distance: float
    chance: float

    @property
    def respected(self) -> bool:
        """Whether the departure is within what the sampling error explains (1 in 1000)."""
        return self.chance > 1e-3


def compare_with_image(departure: Callable[[np.ndarray], np.ndarray], size: float, groups: int) -> SymmetryTest:
    """Test whether `departure`, moments less their images for given weights of the groups, is zero within errors.

    `size` is what the distance is relative to, such as the norm of the moments.
    """
    observed = departure(np.ones(groups))
    scattered = bootstrap(departure, groups, _DRAWS_OF_SYMMETRY) - observed
    scatter = np.sqrt((scattered**2).sum(axis=tuple(range(1, scattered.ndim))))
    distance = np.linalg.norm(observed)
    chance = (1 + np.sum(scatter >= distance)) / (1 + _DRAWS_OF_SYMMETRY)
    return SymmetryTest(float(distance / size), float(chance))
