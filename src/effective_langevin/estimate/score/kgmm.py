"""KGMM: conditional means of the noise in k-means cells, interpolated by a small network (paper, Sec. II.B).

    y = x + sigma z,   s(c_j) = -E[z | y in cell j] / sigma,   network fitted to (c_j, s_j)

The average over z is repeated with fresh antithetic draws until its Monte-Carlo error is below the sampling error of
the data themselves (half of it, to be safe); the network is fitted with each cell weighted by its population.

In one or two dimensions a few cells of many samples resolve the density, and the network goes through their means. In
more there must be many cells of few samples: their means are noisy, and the network that is kept is that of the epoch
that predicts the means of held-out samples best.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core import checks, keys, progress
from ..._core.types import Samples, Vector
from ...execution.batches import evaluate_batch, on_all_cores, one_cpu
from ...execution.compilation import with_room
from ..networks import MLP, scale
from ..partition import Tree, grow_tree, segment_sums
from ..space import StateSpace
from . import circular_density
from .calibration import perturbed
from .evidence import LearnedScore, ScoreEvidence
from .fit_score import ScoreStrategy
from .noise_level import CANDIDATES, choose_noise_level, gaussian_if_as_good
from .score import Score
from .training import Schedule, train

_BLOCK = 1 << 15
_GROUPS = 8
_EPOCH, _SHORT_EPOCH = 200, 50  # steps, without and with held-out samples
_IN_CELL, _FEW_IN_CELL, _FINE = 500, 10, 1000  # samples of a cell, in up to two dimensions and in more, up to so many
_FEW_DIMENSIONS = 2
_DRAWS_AT_ONCE = 4


@dataclass(frozen=True)
class KGMM(ScoreStrategy):
    """k-means Gaussian-mixture score, for a few dimensions.

    Noise of width sigma is added to the samples; its mean in each of many cells is minus sigma times the score of the
    smoothed density there, and a small network interpolates between the cells. For one or two angles and nothing else
    the cells are those of a regular grid, in which the means are known exactly; no network is needed then.

    Parameters
    ----------
    noise_level : float, optional
        Smoothing width sigma in units of the spread of the data. By default it is chosen by the held-out loss, and the
        Gaussian score is taken where it is as good on held-out samples. For angles it is chosen by the held-out
        likelihood.
    cells : int, optional
        Number of cells. By default one per 500 samples, between 20 and 200, 2000 or 4000 in one, two or more
        dimensions; in three and more one per 10 samples, up to 1000.
    hidden : tuple of int, default (128, 64)
        Widths of the hidden layers of the network.
    max_draws : int, default 32
        Largest number of antithetic pairs of noise for each sample.
    steps : int, default 2000
        Training steps of the network. In three and more dimensions held-out samples choose when it was best.
    calibrate : bool, default True
        Impose Stein's identity on the learned score.
    narrowest : float, default 0.1
        The noise follows the spread of the data in each direction, down to this variance; `inf`: equal noise in all,
        as published.

    See Also
    --------
    DenoisingScore : for more than about six dimensions.

    Examples
    --------
    >>> el.KGMM(noise_level=0.1, cells=500).hidden
    (128, 64)
    """

    noise_level: float | None = None
    cells: int | None = None
    hidden: tuple[int, ...] = (128, 64)
    max_draws: int = 32
    steps: int = 2000
    calibrate: bool = True
    narrowest: float = 0.1

    def __post_init__(self):
        checks.optional_positive_number("noise_level", self.noise_level)
        checks.positive_or_infinite("narrowest", self.narrowest)
        if self.cells is not None:
            checks.integer_at_least("cells", self.cells, 2)
        MLP(self.hidden)
        checks.integer_at_least("max_draws", self.max_draws, 2)
        checks.integer_at_least("steps", self.steps, 1)
        checks.instance_of("calibrate", self.calibrate, (bool,))

    def supports(self, space: StateSpace) -> bool:
        return not space.angles or len(space.angles) == space.dimension <= circular_density.MOST_ANGLES

    def learn(self, train: Samples, held_out: Samples, *, space: StateSpace, key: jax.Array) -> LearnedScore:
        """Choose the smoothing width unless it is given, average z in cells, fit the network."""
        if space.angles:
            return self._learn_on_circles(train, held_out, space)
        level, choice, gain = self.noise_level, None, None
        train = np.asarray(space.symmetry.moved(jnp.asarray(train), key=keys.named(key, "orbit")))
        if level is None:
            pilot = self._partition(train, CANDIDATES[-1], key=key)
            level, choice = choose_noise_level(
                lambda sigma: self._fit(pilot, train, held_out, sigma, 4, 800, key=key)[0],
                held_out,
                key=keys.named(key, "noise level"),
            )
        tree = self._partition(train, level, key=key)
        score, evidence = self._fit(tree, train, held_out, level, self.max_draws, self.steps, key=key)
        if self.noise_level is None:
            gain_key = keys.named(key, "gain")
            score, level, gain = gaussian_if_as_good(score, level, train, held_out, space, key=gain_key)
        return LearnedScore(score, level, replace(evidence, noise_level_choice=choice, gain_over_gaussian=gain))

    def _learn_on_circles(self, train: Samples, held_out: Samples, space: StateSpace) -> LearnedScore:
        """Take the score of the smoothed density on a grid around the circles."""
        density, level, choice = circular_density.CircularDensity(train, space, self.cells), self.noise_level, None
        if level is None:
            level, choice = circular_density.choose_noise_level(density, held_out)
        score = Score.trained_on(train, density.score(level), level, angles=space.angles)
        return LearnedScore(score, level, ScoreEvidence(choice, cells=int(np.prod(density.shape))))

    def _partition(self, samples: Samples, sigma: float, *, key: jax.Array) -> Tree:
        noisy = perturbed(samples, sigma, key=keys.named(key, "first draw"))
        cells = min(self.cells or _count_cells(*samples.shape), len(samples) // 2)
        return grow_tree(noisy, cells=cells, key=keys.named(key, "tree"))

    def _fit(
        self,
        tree: Tree,
        samples: Samples,
        held_out: Samples,
        sigma: float,
        max_draws: int,
        steps: int,
        *,
        key: jax.Array,
    ):
        means = average_noise(tree, samples, sigma, max_draws, key=keys.named(key, "draws"))
        test = None
        if samples.shape[1] > _FEW_DIMENSIONS:
            test = average_noise(tree, held_out, sigma, max_draws, key=keys.named(key, "held-out draws"))
        trained, size = _interpolate(means, test, MLP(self.hidden), steps, key=keys.named(key, "network"))
        return Score.trained_on(samples, scale(trained.network, size), sigma), ScoreEvidence(
            cells=tree.cells,
            draws=means.draws,
            monte_carlo_error=means.monte_carlo_error,
            sampling_error=means.sampling_error,
            **trained.history(),
        )


def _count_cells(samples: int, dimension: int) -> int:
    """Return the number of cells for so many samples: in more than two dimensions many cells of few samples."""
    most = {1: 200, 2: 2000}.get(dimension, 4000)
    fine = min(samples // _FEW_IN_CELL, _FINE) if dimension > _FEW_DIMENSIONS else 0
    return int(np.clip(max(samples // _IN_CELL, fine), 20, most))


@dataclass(frozen=True, eq=False)
class CellScores:
    """Score in each cell: where, how much, with which weight, and how precise."""

    centres: Samples
    scores: Samples
    weights: Vector
    draws: int
    monte_carlo_error: float
    sampling_error: float

    def arrays(self, unit: float) -> tuple[jax.Array, ...]:
        return tuple(jnp.asarray(a, jnp.float32) for a in (self.centres, self.scores / unit, self.weights))


def average_noise(tree: Tree, samples: Samples, sigma: float, max_draws: int, *, key: jax.Array) -> CellScores:
    """Return s(c_j) = -E[z | cell j] / sigma over antithetic draws, stopped when more draws would not help."""
    blocks = -(-len(samples) // (_BLOCK * _GROUPS)) * _GROUPS
    rows = -(-len(samples) // blocks)
    room = ((0, 0), (0, with_room(rows) - rows))
    filled = np.pad(samples, ((0, blocks * rows - len(samples)), (0, 0)), mode="edge").reshape(blocks, rows, -1)
    x = jnp.asarray(np.pad(filled, (*room, (0, 0)), mode="edge"), jnp.float32)
    valid = jnp.asarray(np.pad(np.arange(blocks * rows).reshape(blocks, rows) < len(samples), room), jnp.float32)
    width, draws, monte_carlo, sampling = samples.shape[1], [], np.inf, 0.0
    exact = not one_cpu()

    def average(draw: int) -> np.ndarray:
        with jax.enable_x64(exact):
            sums = _sum_one_draw(tree, x, valid, jnp.float32(sigma), jax.random.fold_in(key, draw), exact)
            return np.asarray(sums, float)

    with progress.task("Averaging noise in cells", max_draws) as tick:
        while len(draws) < max_draws:
            # The first alone: it compiles the program.
            stop = min((len(draws) // _DRAWS_AT_ONCE + 1) * _DRAWS_AT_ONCE, max_draws) if draws else 1
            found = on_all_cores(average, range(len(draws), stop))
            draws += found
            tick(len(found))
            if len(draws) % _DRAWS_AT_ONCE == 0:
                monte_carlo, sampling = _estimate_errors(np.array(draws), sigma, width)
                if monte_carlo < 0.5 * sampling:
                    tick(max_draws - len(draws))
                    break
    total = np.sum(draws, axis=(0, 1))
    count, weights = np.maximum(total[:, -1:], 1.0), total[:, -1] / total[:, -1].sum()
    centres, scores = total[:, width:-1] / count, -total[:, :width] / count / sigma
    return CellScores(centres, scores, weights, len(draws), monte_carlo, sampling)


@eqx.filter_jit
def _sum_one_draw(tree: Tree, x, valid, sigma, key, exact: bool):
    """Sums of z, y and 1 per cell and group of blocks, for one antithetic pair of draws."""

    def block(sums, inputs):
        points, valid, key, group = inputs
        z = jax.random.normal(key, points.shape, jnp.float32)
        for sign in (1.0, -1.0):
            y = points + sign * sigma * z
            rows = jnp.concatenate([sign * z, y, jnp.ones_like(y[:, :1])], axis=1) * valid[:, None]
            sums += segment_sums(rows, group * tree.cells + tree.descend(y), len(sums), exact)
        return sums, None

    groups = jnp.arange(len(x)) * _GROUPS // len(x)
    start = jnp.zeros((_GROUPS * tree.cells, 2 * x.shape[-1] + 1), jnp.float32)
    sums = jax.lax.scan(block, start, (x, valid, jax.random.split(key, len(x)), groups))[0]
    return sums.reshape(_GROUPS, tree.cells, -1)


def _estimate_errors(draws: np.ndarray, sigma: float, width: int) -> tuple[float, float]:
    """Monte-Carlo error (spread between draws) and sampling error (spread between stretches of the record)."""
    weights = draws.sum(axis=(0, 1))[:, -1]
    weights = weights / weights.sum()

    def spread(sums: np.ndarray) -> float:
        scores = sums[..., :width] / np.maximum(sums[..., -1:], 1.0) / sigma
        variance = scores.var(axis=0, ddof=1) / len(scores)
        return float(weights @ variance.mean(axis=1))

    monte_carlo, total = spread(draws.sum(axis=1)), spread(draws.sum(axis=0))
    return float(np.sqrt(monte_carlo)), float(np.sqrt(max(total - monte_carlo, 0.0)))


def _interpolate(means: CellScores, test: CellScores | None, network: MLP, steps: int, *, key: jax.Array):
    """Fit the network to the cell scores in units of their size, keep that which meets `test` best; return both."""
    size = float(np.sqrt(means.weights @ (means.scores**2).mean(axis=1)))
    data, held_out = (found and found.arrays(size) for found in (means, test))
    epoch = min(steps, _EPOCH if test is None else _SHORT_EPOCH)
    schedule = Schedule(-(-steps // epoch), epoch, learning_rate=5e-3)
    fresh = network.build(means.centres.shape[1], key=key)
    label = "Fitting the network"
    return train(fresh, WeightedCells(), data, schedule, key=key, label=label, held_out=held_out), size


@dataclass(frozen=True)
class WeightedCells:
    """Mean squared error over cells, each counted by its population; every step sees all cells."""

    def batches(self, data, steps: int, *, key: jax.Array):
        return jnp.arange(steps)

    def loss(self, network, data, batch):
        centres, scores, weights = data
        return jnp.sum(weights[:, None] * (evaluate_batch(network, centres) - scores) ** 2)

    def held_out_loss(self, network, held_out):
        return self.loss(network, held_out, None)
