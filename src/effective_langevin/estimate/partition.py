"""Partition of state space into cells by a bisecting 2-means tree, grown one whole level at a time.

Every node is cut by the hyperplane half-way between the two centres that 2-means finds in it. The samples of a node are
gathered side by side, nodes of about equal size in one array, so that on a CPU all iterations of 2-means find them in
its cache. A large node is cut by 2-means on a part of its samples: its cut hardly depends on more of them.
"""

from functools import partial, reduce
from operator import add

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, Int

from .._core import checks, progress
from .._core.types import Samples
from ..execution.compilation import pad_rows

_POWER_ITERATIONS = 4
_LLOYD_ITERATIONS = 12
_BLOCK = 1 << 16
_WIDTHS = np.array([256, 1024, 4096])
_ROWS_AT_ONCE = 1 << 15
_FEW = 8


class Tree(eqx.Module):
    """A partition: hyperplanes of the inner nodes, children, and the cell number of each leaf."""

    normals: Float[Array, "node var"]
    offsets: Float[Array, " node"]
    children: Int[Array, "node side"]
    cell_of_leaf: Int[Array, " node"]
    centroids: Float[np.ndarray, "cell var"]
    counts: Int[np.ndarray, " cell"]
    depth: int = eqx.field(static=True)

    @property
    def cells(self) -> int:
        return len(self.counts)

    def descend(self, points: Float[Array, "sample var"]) -> Int[Array, " sample"]:
        """Return the cell of each point, following the hyperplanes from the root (traceable, one block)."""
        own = jnp.arange(len(self.children))[:, None]
        next_node = jnp.where(self.children < 0, own, self.children).ravel()  # a leaf leads to itself

        def level(_, node):
            beyond = _lies_beyond(points, node, self.normals, self.offsets)
            return _at(next_node, 2 * node + beyond.astype(jnp.int32))

        leaf = jax.lax.fori_loop(0, self.depth, level, jnp.zeros(len(points), jnp.int32))
        return self.cell_of_leaf[leaf]

    def assign(self, points: Samples) -> np.ndarray:
        """Return the cell of each point, in blocks of bounded memory."""
        blocks = [_descend(self, points[i : i + _BLOCK]) for i in range(0, len(points), _BLOCK)]
        return np.concatenate([np.asarray(b) for b in blocks])


def _lies_beyond(points, row, normals, offsets):
    """Tell which points lie beyond the hyperplane in their row; one formula for all, so that rounding is the same.

    For a few variables it is a sum over columns, which on a CPU is several times faster than one over gathered rows.
    """
    if points.shape[1] > _FEW:
        return jnp.sum(points * _at(normals, row), axis=1) > _at(offsets, row)
    products = (points[:, k] * _at(normals[:, k], row) for k in range(points.shape[1]))
    return reduce(add, products) > _at(offsets, row)


def _at(table, rows):
    """Rows of a table, all of which exist: no check of each."""
    return table.at[rows].get(mode="promise_in_bounds")


_descend = eqx.filter_jit(lambda tree, points: tree.descend(jnp.asarray(points, jnp.float32)))
_sides = jax.jit(_lies_beyond)
_gather = jax.jit(lambda points, rows: points[rows])


def grow_tree(points: Samples, *, cells: int | None = None, min_mass: float | None = None, key: jax.Array) -> Tree:
    """Partition `points` into `cells` cells, or split nodes while they hold more than 2 `min_mass` of all points.

    With `cells`, the most populated nodes are split first. A node whose points coincide stays a leaf.
    """
    if (cells is None) == (min_mass is None):
        raise ValueError("Give either `cells` or `min_mass`.")
    if cells is not None:
        target, floor = checks.integer_at_least("cells", cells, 1), 1.0
    else:
        target, floor = len(points), 2 * checks.fraction("min_mass", min_mass) * len(points)
    capacity = min(target, int(2 * len(points) / max(floor, 2)) + 1)
    growth = _Growth(np.asarray(points, np.float32), min(target, len(points)), floor, capacity)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    with progress.task("Growing the partition", 1) as tick:
        while len(active := growth.nodes_to_split()):
            growth.split(active, rng)
        tick(1, f"{growth.leaves.sum()} cells")
    return growth.finish()


class _Growth:
    """The growing tree: tables with one row per node, and the node of every sample."""

    def __init__(self, points: np.ndarray, target: int, floor: float, capacity: int):
        self.target, self.floor, self.capacity = target, floor, capacity
        self.points, self.count = jnp.asarray(pad_rows(points)), len(points)
        self.node_of_sample = np.zeros(len(points), np.int32)
        self.nodes = _new_nodes(np.array([len(points)]), np.array([0]), points.shape[1])

    @property
    def leaves(self) -> np.ndarray:
        return self.nodes["children"][:, 0] < 0

    def nodes_to_split(self) -> np.ndarray:
        """Return open leaves over the floor, most populated first, at most as many as cells are still wanted."""
        counts, leaves = self.nodes["counts"], self.leaves
        candidates = np.flatnonzero(leaves & ~self.nodes["closed"] & (counts > max(self.floor, 1)))
        candidates = candidates[np.argsort(-counts[candidates], kind="stable")]
        if len(candidates) and self.floor <= 1:
            candidates = candidates[counts[candidates] > 0.5 * counts[candidates[0]]]
        return candidates[: min(self.target - leaves.sum(), self.capacity)]

    def split(self, active: np.ndarray, rng: np.random.Generator) -> None:
        """Cut the active nodes; one with an empty side (coinciding points) is closed instead."""
        nodes, known, size = self.nodes, len(self.nodes["counts"]), len(active)
        slot_of_node = np.full(known, self.capacity, np.int32)
        slot_of_node[active] = np.arange(size)
        slot = slot_of_node[self.node_of_sample]
        normals, offsets = self._find_cuts(active, rng)
        beyond = np.asarray(_sides(self.points, pad_rows(slot), normals, offsets))[: self.count].astype(np.int8)
        sizes = np.bincount(2 * slot + beyond, minlength=2 * size)[: 2 * size].reshape(-1, 2)
        divides = sizes.min(axis=1) > 0
        nodes["closed"][active[~divides]] = True
        parents = active[divides]
        children = known + np.arange(2 * len(parents)).reshape(-1, 2)
        nodes["children"][parents] = children
        nodes["normals"][parents], nodes["offsets"][parents] = normals[:size][divides], offsets[:size][divides]
        born = _new_nodes(sizes[divides].ravel(), np.repeat(nodes["level"][parents] + 1, 2), normals.shape[1])
        moves = np.tile(np.arange(known, dtype=np.int32)[:, None], 2)
        moves[parents] = children
        self.nodes = {name: np.concatenate([nodes[name], born[name]]) for name in nodes}
        self.node_of_sample = moves[self.node_of_sample, beyond]

    def _find_cuts(self, active: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Normal and offset of every active node; zeros fill the tables, and their last row is for all other nodes."""
        rows, dimension, exact = self.count, self.points.shape[1], jax.default_backend() != "cpu"
        normals, offsets = np.zeros((self.capacity + 1, dimension), np.float32), np.zeros(self.capacity + 1, np.float32)
        counts, found = self.nodes["counts"], []
        # A column for every node with the rows of its samples in order: a sort in linear time.
        one_per_row = np.ones(rows, bool), self.node_of_sample, np.arange(rows + 1)
        rows_by_node = sp.csr_array(one_per_row, shape=(rows, len(counts))).tocsc()
        with jax.enable_x64(exact):
            for places, rows, valid in _batches(rows_by_node, active, counts[active], rng):
                start = rng.standard_normal((len(rows), dimension), np.float32)
                found.append((places, _two_means(_gather(self.points, rows), valid, start, exact)))
        for places, cut in found:
            normals[places], offsets[places] = (np.asarray(a)[: len(places)] for a in cut)
        return normals, offsets

    def finish(self) -> Tree:
        """Number the leaves and measure the cells."""
        leaves = self.leaves
        cell_of_leaf = np.where(leaves, np.cumsum(leaves) - 1, -1).astype(np.int32)
        labels = cell_of_leaf[self.node_of_sample]
        counts, points = np.bincount(labels, minlength=leaves.sum()), np.asarray(self.points)[: self.count]
        sums = [np.bincount(labels, weights=column, minlength=len(counts)) for column in points.T]
        return Tree(
            *(jnp.asarray(self.nodes[name]) for name in ("normals", "offsets", "children")),
            cell_of_leaf=jnp.asarray(cell_of_leaf),
            centroids=np.stack(sums, axis=1) / counts[:, None],
            counts=counts,
            depth=int(self.nodes["level"].max()),
        )


def _new_nodes(counts: np.ndarray, level: np.ndarray, width: int) -> dict[str, np.ndarray]:
    size = len(counts)
    return {
        "counts": counts.astype(np.int64),
        "level": level,
        "closed": np.zeros(size, bool),
        "children": np.full((size, 2), -1, np.int32),
        "normals": np.zeros((size, width), np.float32),
        "offsets": np.zeros(size, np.float32),
    }


def _batches(table: sp.csc_array, active: np.ndarray, counts: np.ndarray, rng: np.random.Generator):
    """Batches of nodes of about equal size: places in `active`, rows of their samples (node, sample), which ones count.

    A node with more samples than fit is represented by one drawn from each of as many equal stretches of its samples.
    """
    widths = _WIDTHS[np.minimum(np.searchsorted(_WIDTHS, counts), len(_WIDTHS) - 1)]
    for width in np.unique(widths):
        column, most = np.arange(width), _ROWS_AT_ONCE // width
        drawn = (column + rng.random(width)) / width
        alike = np.flatnonzero(widths == width)
        for places in np.split(alike, range(most, len(alike), most)):
            filled = np.pad(places, (0, most - len(places)), mode="edge")
            count, first = counts[filled, None], table.indptr[active[filled], None]
            place = np.where(count > width, (drawn * count).astype(int), np.minimum(column, count - 1))
            yield places, table.indices[first + place], column < count


def segment_sums(values, segment, count: int, exact: bool):
    """Sum the values in each segment.

    On a GPU the order of a sum is not fixed, and with it its last bits. With `exact` the values are added as integers,
    multiples of 2^-30, for which the order does not matter; this needs 64-bit integers to be enabled.
    """
    if not exact:
        return jax.ops.segment_sum(values, segment, num_segments=count)
    return _from_whole(jax.ops.segment_sum(_whole(values), segment, num_segments=count))


def _whole(values):
    return jnp.round(values.astype(jnp.float64) * 2.0**30).astype(jnp.int64)


def _from_whole(sums):
    return (sums * 2.0**-30).astype(jnp.float32)


@partial(jax.jit, static_argnames="exact")
def _two_means(points, valid, start, exact: bool):
    """Normal and offset of the cut of every node, from (node, sample, var); on a CPU one node after the other."""
    if exact:
        return jax.vmap(partial(_cut, exact=True))(points, valid, start)
    return jax.lax.map(lambda node: _cut(*node, exact=False), (points, valid, start))


def _cut(points, valid, start, exact: bool):
    """2-means in one node; it starts from the two sides of the mean in the widest direction, found by power iteration.

    Around the mean, the sum s of the h out of n samples on one side gives both centres, s / h and -s / (n - h).
    """

    def along(direction):
        return jnp.sum(centred * direction, axis=1) if exact else centred @ direction

    def total(weights, rows):
        return _from_whole(jnp.sum(_whole(weights[:, None] * rows), axis=0)) if exact else weights @ rows

    def widen(_, direction):
        longer = total(along(direction), centred)
        return longer / jnp.maximum(jnp.linalg.norm(longer), 1e-30)

    def lloyd(state):
        iteration, _, (normal, offset), beyond = state
        many = jnp.sum(beyond.astype(jnp.float32))
        shift = total(beyond.astype(jnp.float32), centred)
        high, low = shift / jnp.maximum(many, 1.0), -shift / jnp.maximum(count - many, 1.0)
        divided = (many > 0) & (many < count)
        normal = jnp.where(divided, high - low, normal)
        offset = jnp.where(divided, 0.5 * jnp.sum(normal * (high + low)), offset)
        now = (along(normal) > offset) & valid
        return iteration + 1, jnp.any(now != beyond), (normal, offset), now

    weights = valid.astype(jnp.float32)
    count = jnp.sum(weights)
    mean = total(weights, points) / count
    centred = jnp.where(valid[:, None], points - mean, 0.0)
    direction = jax.lax.fori_loop(0, _POWER_ITERATIONS, widen, start)
    state = 0, True, (direction, jnp.float32(0)), (along(direction) > 0) & valid
    unfinished = lambda state: (state[0] < _LLOYD_ITERATIONS) & state[1]  # noqa: E731
    normal, offset = jax.lax.while_loop(unfinished, lloyd, state)[2]
    return normal, offset + jnp.sum(normal * mean)
