"""Current velocity and diffusion as functions of the standardised state, for many states at once.

Both are pytrees whose arrays are data: they are stored like networks, and one compilation serves all of one shape.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.matrices import square_root
from ..._core.types import Matrix
from ...execution.batches import times

States = Float[Array, "batch var"]
Tensors = Float[Array, "batch var var"]


class CurrentField(eqx.Module):
    """nu(x), the mean velocity at x. Every subclass is final."""

    @abstractmethod
    def in_batch(self, x: States, score: States) -> States:
        """Return nu at each state, given the score there."""


class DiffusionField(eqx.Module):
    """D(x), positive semi-definite everywhere. Every subclass is final."""

    @abstractmethod
    def in_batch(self, x: States) -> Tensors:
        """Return D at each state."""

    @abstractmethod
    def factor(self, x: States) -> Tensors:
        """Return a matrix whose product with its transpose is D, at each state."""

    def divergence(self, x: States) -> States:
        """Return sum_j d_j D_ij at each state, of the very field that `in_batch` returns."""

        def along(direction):
            return jax.jvp(self.in_batch, (x,), (jnp.broadcast_to(direction, x.shape),))[1]

        slopes = [along(direction) for direction in np.eye(x.shape[1], dtype=x.dtype)]
        # Entry by entry: the compiler then leaves out what is not used of the slopes.
        rows = [sum(slope[:, i, j] for j, slope in enumerate(slopes)) for i in range(x.shape[1])]
        return jnp.stack(rows, axis=1)


class RotatedScore(CurrentField):
    """nu(x) = A s(x) with an antisymmetric A: the current of a constant mobility."""

    matrix: Float[Array, "var var"]

    def in_batch(self, x: States, score: States) -> States:
        return times(self.matrix, score)


class SharedCurrent(CurrentField):
    """nu(x) = A w(x) with w the further outputs of the score's network, which come with the score itself."""

    matrix: Float[Array, "var var"]

    def in_batch(self, x: States, score: States) -> States:
        return times(self.matrix, score[:, x.shape[1] :])


class ConstantDiffusion(DiffusionField):
    """The same D everywhere; `root` times its transpose is D."""

    matrix: Float[Array, "var var"]
    root: Float[Array, "var var"]

    @classmethod
    def of(cls, matrix: Matrix) -> "ConstantDiffusion":
        """Take a symmetric, positive semi-definite matrix."""
        return cls(*(jnp.asarray(part, jnp.float32) for part in (matrix, square_root(matrix))))

    def in_batch(self, x: States) -> Tensors:
        return jnp.broadcast_to(self.matrix, (len(x), *self.matrix.shape))

    def factor(self, x: States) -> Tensors:
        return jnp.broadcast_to(self.root, (len(x), *self.root.shape))

    def divergence(self, x: States) -> States:
        return jnp.zeros_like(x)


class Fields(eqx.Module):
    """nu(x) and D(x) of one closure, standardised.

    `replicas` has the same structure with one more axis in front of every array: the fields from blocks of time drawn
    with replacement. It is None where there are none.
    """

    current: CurrentField
    diffusion: DiffusionField
    replicas: Any = None

    def drawn(self) -> list["Fields"]:
        if self.replicas is None:
            return []
        count = len(jax.tree.leaves(self.replicas)[0])
        return [Fields(*jax.tree.map(lambda leaf, i=i: leaf[i], self.replicas)) for i in range(count)]


def stack_replicas(fields: list[tuple[CurrentField, DiffusionField]]) -> Any:
    """Return fields of one structure as one pytree, with the number of the replica as first axis."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *fields) if fields else None
