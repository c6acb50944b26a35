"""Partition of state space into control volumes by a bisecting k-means tree."""

from .tree import Tree, grow_tree, segment_sums

__all__ = ["Tree", "grow_tree", "segment_sums"]
