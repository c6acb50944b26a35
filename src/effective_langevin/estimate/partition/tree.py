"""The bisecting 2-means tree, grown one whole level at a time.

Every node is cut by the hyperplane half-way between the two centres that 2-means finds in it. All nodes of a level are
cut at once: sums over the samples of each node are segment sums over all samples, so a level costs the same whether it
holds one node or thousands.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._core import checks, progress
from ..._core.types import Samples

_POWER_ITERATIONS = 4
_LLOYD_ITERATIONS = 12
_BLOCK = 1 << 16


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
        """Number of cells."""
        return len(self.counts)

    def descend(self, points: Float[Array, "sample var"]) -> Int[Array, " sample"]:
        """Cell of each point, by following the hyperplanes from the root (traceable, one block)."""

        def level(_, node):
            beyond = jnp.sum(points * self.normals[node], axis=1) > self.offsets[node]
            child = self.children[node, beyond.astype(jnp.int32)]
            return jnp.where(child < 0, node, child)

        leaf = jax.lax.fori_loop(0, self.depth, level, jnp.zeros(len(points), jnp.int32))
        return self.cell_of_leaf[leaf]

    def assign(self, points: Samples) -> np.ndarray:
        """Cell of each point, in blocks of bounded memory."""
        blocks = [_descend(self, points[i : i + _BLOCK]) for i in range(0, len(points), _BLOCK)]
        return np.concatenate([np.asarray(b) for b in blocks])


@eqx.filter_jit
def _descend(tree: Tree, points):
    return tree.descend(jnp.asarray(points, jnp.float32))


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
    return _Growth(np.asarray(points, np.float32), min(target, len(points)), floor, capacity).run(key)


class _Growth:
    """The growing tree: tables with one row per node on the host, the node of every sample on the device."""

    def __init__(self, points: np.ndarray, target: int, floor: float, capacity: int):
        self.points, self.target, self.floor = jnp.asarray(points), target, floor
        self.capacity = _power_of_two(capacity)
        self.node_of_sample = jnp.zeros(len(points), jnp.int32)
        self.nodes = _new_nodes(np.array([len(points)]), np.array([0]), points.shape[1])

    def run(self, key: jax.Array) -> Tree:
        with progress.task("Growing the partition", 1) as tick:
            while len(active := self._nodes_to_split()):
                key, now = jax.random.split(key)
                self._split(active, now)
            tick(1, f"{self._leaves().sum()} cells")
        return self._finished()

    def _leaves(self) -> np.ndarray:
        return self.nodes["children"][:, 0] < 0

    def _nodes_to_split(self) -> np.ndarray:
        """Open leaves over the floor, most populated first, at most as many as cells are still wanted."""
        counts, leaves = self.nodes["counts"], self._leaves()
        candidates = np.flatnonzero(leaves & ~self.nodes["closed"] & (counts > max(self.floor, 1)))
        candidates = candidates[np.argsort(-counts[candidates], kind="stable")]
        if len(candidates) and self.floor <= 1:
            candidates = candidates[counts[candidates] > 0.5 * counts[candidates[0]]]
        return candidates[: min(self.target - leaves.sum(), self.capacity)]

    def _split(self, active: np.ndarray, key: jax.Array) -> None:
        """Cut the active nodes; one with an empty side (coinciding points) is closed instead."""
        nodes, known = self.nodes, len(self.nodes["counts"])
        table = np.full(_power_of_two(max(known, 2 * self.capacity)), self.capacity, np.int32)
        table[active] = np.arange(len(active))
        exact = jax.default_backend() != "cpu"
        with jax.enable_x64(exact):
            cut = _two_means(self.points, self.node_of_sample, jnp.asarray(table), key, self.capacity, exact)
        normals, offsets, sizes = (np.asarray(a)[: len(active)] for a in cut[:3])
        divides = sizes.min(axis=1) > 0
        nodes["closed"][active[~divides]] = True
        parents = active[divides]
        children = known + np.arange(2 * len(parents)).reshape(-1, 2)
        nodes["children"][parents] = children
        nodes["normals"][parents], nodes["offsets"][parents] = normals[divides], offsets[divides]
        born = _new_nodes(sizes[divides].ravel(), np.repeat(nodes["level"][parents] + 1, 2), normals.shape[1])
        moves = np.tile(np.arange(len(table), dtype=np.int32)[:, None], 2)
        moves[parents] = children
        self.nodes = {name: np.concatenate([nodes[name], born[name]]) for name in nodes}
        self.node_of_sample = _move(self.node_of_sample, cut[3], jnp.asarray(moves))

    def _finished(self) -> Tree:
        leaves = self._leaves()
        cell_of_leaf = np.where(leaves, np.cumsum(leaves) - 1, -1).astype(np.int32)
        labels = cell_of_leaf[np.asarray(self.node_of_sample)]
        counts = np.bincount(labels, minlength=leaves.sum())
        sums = [np.bincount(labels, weights=column, minlength=len(counts)) for column in np.asarray(self.points).T]
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


def _power_of_two(least: int) -> int:
    return 1 << max(0, int(least) - 1).bit_length()


@jax.jit
def _move(node, side, child_table):
    return child_table[node, side]


def segment_sums(values, segment, count: int, exact: bool):
    """Sum of the values in each segment.

    On a GPU the order of a sum is not fixed, and with it its last bits. With `exact` the values are added as integers,
    multiples of 2^-30, for which the order does not matter; this needs 64-bit integers to be enabled.
    """
    if not exact:
        return jax.ops.segment_sum(values, segment, num_segments=count)
    whole = jnp.round(values.astype(jnp.float64) * 2.0**30).astype(jnp.int64)
    return (jax.ops.segment_sum(whole, segment, num_segments=count) * 2.0**-30).astype(jnp.float32)


@partial(jax.jit, static_argnames=("capacity", "exact"))
def _two_means(points, node, slot_of_node, key, capacity: int, exact: bool):
    """2-means in every active node at once; start along the widest direction, found by power iteration."""
    slot = slot_of_node[node]
    total = capacity + 1
    ones = jnp.ones(len(points), jnp.float32)

    def per_slot(values):
        return segment_sums(values, slot, total, exact)

    count = jnp.maximum(per_slot(ones), 1.0)
    mean = per_slot(points) / count[:, None]
    centred = points - mean[slot]

    def widen(_, direction):
        reach = jnp.sum(centred * direction[slot], axis=1)
        longer = per_slot(centred * reach[:, None])
        return longer / jnp.maximum(jnp.linalg.norm(longer, axis=1, keepdims=True), 1e-30)

    direction = jax.random.normal(key, mean.shape, jnp.float32)
    direction = jax.lax.fori_loop(0, _POWER_ITERATIONS, widen, direction)
    spread = jnp.sqrt(per_slot(jnp.sum(centred * direction[slot], axis=1) ** 2) / count)

    def sides(low, high):
        normal = high - low
        offset = 0.5 * jnp.sum(normal * (high + low), axis=1)
        return normal, offset, (jnp.sum(centred * normal[slot], axis=1) > offset[slot]).astype(jnp.int32)

    def lloyd(_, centres):
        low, high = centres
        beyond = sides(low, high)[2]
        both = segment_sums(centred, 2 * slot + beyond, 2 * total, exact).reshape(total, 2, -1)
        size = segment_sums(ones, 2 * slot + beyond, 2 * total, exact).reshape(total, 2, 1)
        new = jnp.where(size > 0, both / jnp.maximum(size, 1.0), jnp.stack(centres, axis=1))
        return new[:, 0], new[:, 1]

    start = 0.8 * spread[:, None] * direction
    low, high = jax.lax.fori_loop(0, _LLOYD_ITERATIONS, lloyd, (-start, start))
    normal, offset, _ = sides(low, high)
    offset = offset + jnp.sum(normal * mean, axis=1)
    beyond = (jnp.sum(points * normal[slot], axis=1) > offset[slot]).astype(jnp.int32)
    size = segment_sums(ones, 2 * slot + beyond, 2 * total, exact).reshape(total, 2)
    return normal, offset, size.astype(jnp.int32), beyond
