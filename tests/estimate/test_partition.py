import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import effective_langevin as el
from effective_langevin.estimate.partition import grow_tree, segment_sums

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def cloud():
    """A correlated, skewed cloud of 3000 points in the plane."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 2)) @ [[1.0, 0.6], [0.0, 0.5]]
    return np.column_stack([x[:, 0], x[:, 1] + 0.3 * x[:, 0] ** 2]).astype(np.float32)


@pytest.fixture(scope="module")
def tree(cloud):
    return grow_tree(cloud, cells=60, key=KEY)


def inner_nodes(tree):
    """(node, points below it) of every node that was split."""
    children, cell = np.asarray(tree.children), np.asarray(tree.cell_of_leaf)

    def below(node):
        return tree.counts[cell[node]] if children[node, 0] < 0 else sum(below(c) for c in children[node])

    return [(node, below(node)) for node in range(len(children)) if children[node, 0] >= 0]


def inertia(points, labels):
    """Sum of squared distances to the mean of each cell."""
    return sum(((points[labels == c] - points[labels == c].mean(axis=0)) ** 2).sum() for c in np.unique(labels))


def two_means(points):
    """Lloyd's algorithm to convergence, from two points along the principal axis."""
    centred = points - points.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    beyond = centred @ axis > 0
    while True:
        low, high = points[~beyond].mean(axis=0), points[beyond].mean(axis=0)
        now = ((points - high) ** 2).sum(axis=1) < ((points - low) ** 2).sum(axis=1)
        if (now == beyond).all():
            return beyond
        beyond = now


def sequential_bisection(points, cells):
    """The reference: split the most populated cell by 2-means until there are enough."""
    labels = np.zeros(len(points), int)
    for new in range(1, cells):
        rows = np.flatnonzero(labels == np.bincount(labels).argmax())
        labels[rows[two_means(points[rows])]] = new
    return labels


@pytest.mark.parametrize("cells", [1, 7, 60])
def test_the_number_of_cells_is_the_one_asked_for(cloud, cells):
    tree = grow_tree(cloud, cells=cells, key=KEY)
    assert tree.cells == cells
    assert tree.counts.sum() == len(cloud)
    assert tree.counts.min() >= 1


@pytest.mark.parametrize("min_mass", [0.004, 0.6])
def test_min_mass_splits_exactly_the_nodes_above_twice_that_mass(cloud, min_mass):
    tree = grow_tree(cloud, min_mass=min_mass, key=KEY)
    limit = 2 * min_mass * len(cloud)
    assert tree.counts.max() <= limit
    assert all(count > limit for _, count in inner_nodes(tree))
    assert tree.counts.sum() == len(cloud)


def test_min_mass_leaves_coinciding_points_together():
    points = np.concatenate([np.zeros((500, 2)), np.random.default_rng(0).normal(size=(500, 2)) + 5])
    tree = grow_tree(points, min_mass=0.02, key=KEY)
    largest = tree.counts.argmax()
    assert tree.counts[largest] == 500
    np.testing.assert_array_equal(tree.centroids[largest], 0)
    assert np.delete(tree.counts, largest).max() <= 2 * 0.02 * 1000


def test_counts_and_centroids_are_those_of_the_assigned_points(cloud, tree):
    labels = tree.assign(cloud)
    np.testing.assert_array_equal(np.bincount(labels, minlength=tree.cells), tree.counts)
    means = [cloud[labels == c].mean(axis=0, dtype=float) for c in range(tree.cells)]
    np.testing.assert_allclose(tree.centroids, means, atol=1e-12)


def test_new_points_fall_on_the_side_of_the_nearer_centre(tree):
    """Descend by hand, in double precision; points within 1e-5 of a hyperplane may go either way."""
    new = np.random.default_rng(5).normal(size=(4000, 2)).astype(np.float32) * 1.5
    normals, offsets, children = (np.asarray(a) for a in (tree.normals, tree.offsets, tree.children))
    cells, clear = np.zeros(len(new), int), np.ones(len(new), bool)
    for row, point in enumerate(new.astype(float)):
        node = 0
        while children[node, 0] >= 0:
            distance = (normals[node].astype(float) @ point - offsets[node]) / np.linalg.norm(normals[node])
            clear[row] &= abs(distance) > 1e-5
            node = children[node, int(distance > 0)]
        cells[row] = tree.cell_of_leaf[node]
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(tree.assign(new)[clear], cells[clear])


def test_every_cut_is_half_way_between_the_means_of_its_sides(cloud, tree):
    """The fixed point of 2-means, to the 12 Lloyd iterations made: 5 % of the distance between the two means."""
    labels, children, cell = tree.assign(cloud), np.asarray(tree.children), np.asarray(tree.cell_of_leaf)

    def rows_below(node):
        if children[node, 0] < 0:
            return labels == cell[node]
        return rows_below(children[node, 0]) | rows_below(children[node, 1])

    for node, count in inner_nodes(tree):
        if count < 200:
            continue
        low, high = (cloud[rows_below(c)].mean(axis=0) for c in children[node])
        normal, offset = np.asarray(tree.normals[node]), float(tree.offsets[node])
        assert normal @ (high - low) > 0
        off_centre = (normal @ (0.5 * (low + high)) - offset) / np.linalg.norm(normal)
        assert abs(off_centre) < 0.05 * np.linalg.norm(high - low)


def test_two_clusters_are_told_apart():
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], [300, 700])
    points = rng.normal(size=(1000, 3)) * 0.2 + truth[:, None] * [4.0, -3.0, 2.0] + 100.0
    labels = grow_tree(points, cells=2, key=KEY).assign(points.astype(np.float32))
    assert (labels == labels[0])[truth == 0].all()
    assert (labels != labels[0])[truth == 1].all()


def test_a_node_too_large_to_be_seen_whole_is_cut_like_one_that_is():
    """Half-way between the means of its sides, to 2 % of their distance, and as good: inertia within 1 %."""
    rng = np.random.default_rng(3)
    many = rng.normal(size=(40_000, 2)).astype(np.float32) * [2.0, 1.0] + [7.0, 0.0]
    tree = grow_tree(many, cells=2, key=KEY)
    labels = tree.assign(many)
    low, high = (many[labels == c].mean(axis=0) for c in range(2))
    normal, offset = np.asarray(tree.normals[0]), float(tree.offsets[0])
    assert abs(normal @ (0.5 * (low + high)) - offset) < 0.02 * np.linalg.norm(normal) * np.linalg.norm(high - low)
    assert inertia(many, labels) < 1.01 * inertia(many, two_means(many).astype(int))


def test_the_part_of_a_large_node_that_is_seen_does_not_follow_a_rhythm_of_the_data():
    """Two clusters in turns: every second sample would be of one cluster only."""
    truth = np.arange(8192) % 2
    points = np.random.default_rng(1).normal(size=(8192, 2)) * 0.2 + 4.0 * truth[:, None]
    labels = grow_tree(points, cells=2, key=KEY).assign(points.astype(np.float32))
    np.testing.assert_array_equal(labels == labels[0], truth == 0)


def test_same_key_same_tree(cloud, tree):
    again = grow_tree(cloud, cells=60, key=KEY)
    for one, other in zip(jax.tree.leaves(tree), jax.tree.leaves(again)):
        np.testing.assert_array_equal(one, other)


def exact_sums(values, segments):
    with jax.enable_x64(True):
        return np.asarray(segment_sums(jnp.asarray(values), jnp.asarray(segments), 7, exact=True))


def test_exact_sums_do_not_depend_on_the_order_and_are_the_sums():
    """To the last bit, where sums of single-precision numbers differ; each is right to 1e-6 of what was added up."""
    rng = np.random.default_rng(4)
    values, segments = rng.normal(size=(20000, 3)).astype(np.float32), rng.integers(0, 6, 20000)
    sums = exact_sums(values, segments)
    assert sums.dtype == np.float32
    for _ in range(3):
        order = rng.permutation(20000)
        np.testing.assert_array_equal(exact_sums(values[order], segments[order]), sums)
    double = np.zeros((7, 3))
    np.add.at(double, segments, values.astype(float))
    np.testing.assert_allclose(sums, double, atol=1e-6 * np.abs(values).sum() / 6)
    np.testing.assert_array_equal(sums[6], 0)
    plain = segment_sums(jnp.asarray(values), jnp.asarray(segments), 7, exact=False)
    np.testing.assert_allclose(plain, double, atol=1e-6 * np.abs(values).sum() / 6)


def test_with_exact_sums_the_tree_does_not_depend_on_the_order_of_the_points(monkeypatch, cloud, tree):
    """As on a GPU, which adds in any order: same cells to the last bit. With single-precision sums on a CPU the cells
    are the same up to rounding, which moves few points."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    order = np.random.default_rng(0).permutation(len(cloud))
    one, other = (grow_tree(points, cells=60, key=KEY) for points in (cloud, cloud[order]))
    for name in ("normals", "offsets", "children", "cell_of_leaf", "counts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.assign(cloud) == tree.assign(cloud)).mean() > 0.98


def test_a_tree_is_a_function_of_points_and_key_only(cloud, tree):
    """Not of what was drawn or grown before."""
    np.random.seed(7)  # noqa: NPY002
    grow_tree(cloud[:500], cells=9, key=jax.random.key(5))
    again = grow_tree(cloud.astype(np.float64), cells=60, key=jax.random.key(0))
    for one, other in zip(jax.tree.leaves(tree), jax.tree.leaves(again)):
        np.testing.assert_array_equal(one, other)


def test_all_points_equal_give_one_cell():
    tree = grow_tree(np.full((50, 2), 3.7), cells=10, key=KEY)
    assert tree.counts.tolist() == [50]
    np.testing.assert_allclose(tree.centroids, 3.7, rtol=1e-6)
    assert tree.assign(np.random.default_rng(0).normal(size=(5, 2))).tolist() == [0] * 5


def test_three_distinct_points_give_three_cells():
    points = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], [20, 5, 25], axis=0)
    tree = grow_tree(points, cells=10, key=KEY)
    assert sorted(tree.counts.tolist()) == [5, 20, 25]
    np.testing.assert_allclose(tree.centroids[tree.assign(points.astype(np.float32))], points, atol=1e-6)


@settings(max_examples=8)
@given(st.integers(0, 2**31))
def test_as_many_cells_as_points_isolates_every_point_of_a_line(seed):
    points = np.random.default_rng(seed).permutation(12).astype(float)[:, None]
    tree = grow_tree(points, cells=50, key=KEY)
    assert tree.counts.tolist() == [1] * 12
    np.testing.assert_array_equal(tree.centroids[tree.assign(points)], points)


def test_one_point_is_one_cell():
    tree = grow_tree(np.array([[1.0, 2.0]]), cells=3, key=KEY)
    assert tree.counts.tolist() == [1]
    np.testing.assert_array_equal(tree.centroids, [[1.0, 2.0]])


def test_cells_of_a_line_are_intervals():
    points = np.random.default_rng(2).normal(size=(500, 1)).astype(np.float32)
    labels = grow_tree(points, cells=16, key=KEY).assign(points)[np.argsort(points[:, 0])]
    assert np.count_nonzero(np.diff(labels)) == 15


@pytest.mark.parametrize("dimension", [1, 5])
def test_inertia_is_within_ten_percent_of_sequential_bisection(dimension):
    """The level-wise tree splits nodes in another order than the reference, so only the quality can be compared."""
    rng = np.random.default_rng(3)
    points = np.concatenate([rng.normal(size=(2000, dimension)), 0.4 * rng.normal(size=(1000, dimension)) + 2])
    points = points.astype(np.float32)
    ours = inertia(points, grow_tree(points, cells=50, key=KEY).assign(points))
    assert ours == pytest.approx(inertia(points, sequential_bisection(points, 50)), rel=0.10)


def test_block_size_does_not_change_the_assignment(monkeypatch, cloud, tree):
    whole = tree.assign(cloud)
    monkeypatch.setattr("effective_langevin.estimate.partition._BLOCK", 700)
    np.testing.assert_array_equal(tree.assign(cloud), whole)


def test_cells_or_min_mass_but_not_both(cloud):
    for arguments in ({}, {"cells": 3, "min_mass": 0.1}):
        with pytest.raises(ValueError, match="either `cells` or `min_mass`"):
            grow_tree(cloud, **arguments, key=KEY)
    with pytest.raises(el.ArgumentError, match="Argument `cells` must be an integer of at least 1"):
        grow_tree(cloud, cells=0, key=KEY)
    with pytest.raises(el.ArgumentError, match="Argument `min_mass` must be a number between 0 and 1"):
        grow_tree(cloud, min_mass=1.0, key=KEY)
