"""A frozen U-Net with every convolution written out as one matrix over points and channels, for a GPU."""

from itertools import zip_longest
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import Array, Float

from .convolution import Convolution, write_out
from .lowering import absorb_matrix

Affine = tuple[Array, Array]


class FlatUNet(eqx.Module):
    """The same function as a frozen U-Net.

    At the few points of the lower levels a convolution is nearly a full matrix anyway: twice the arithmetic, but no
    copying of shifted inputs, which is what takes the time when many members are stepped together on a GPU. The way
    down to the next level is linear and part of the first matrix there; beside it, beyond the length of the bias,
    stand the columns for what skips to the decoder.
    """

    encoder: list[Affine]
    decoder: list[Affine]
    out: Affine

    @classmethod
    def of(cls, network: Any, dimension: int) -> "FlatUNet":
        """Write out the convolutions of a `UNet` for states of that dimension."""
        channels = network.description.channels
        points, width, sizes, encoder, decoder, way = dimension // channels, channels, [], [], [], None
        order = np.arange(dimension).reshape(points, channels).T.reshape(-1)
        for block, down in zip_longest([*network.encoder, network.bottleneck], network.down):
            first, second = block.convolutions
            layer, width = _as_affine(first, points, width), len(first.bias)
            encoder += [layer if way is None else _compose(way, layer), _as_affine(second, points, width)]
            if down is not None:
                way = _as_affine(down, points, width)
                sizes.append((points, width))
                points = -(-points // 2)
        inner = points, width
        for block, level in zip(network.decoder, reversed(range(len(sizes)))):
            first, second = block.convolutions
            below, beside = _split_merging_convolution(first, inner, sizes[level])
            inner = sizes[level][0], len(first.bias)
            decoder += [(below, jnp.tile(first.bias, inner[0])), _as_affine(second, *inner)]
            onward, bias = encoder[2 * level + 2]
            encoder[2 * level + 2] = jnp.concatenate([onward, beside], axis=1), bias
        (first, start), (last, end) = encoder[0], _as_affine(network.out, *inner)
        back = np.arange(len(end)).reshape(inner[0], -1).T.reshape(-1)
        return cls([(first[order], start), *encoder[1:]], decoder, (last[:, back], end[back]))

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        h, skips = x.astype(self.out[0].dtype), []
        for matrix, bias in self.encoder:
            h, skip = jnp.split(h @ matrix, [len(bias)])
            h = jax.nn.swish(h + bias)
            skips += [skip] if len(skip) else []
        for i, (matrix, bias) in enumerate(self.decoder):
            h = h @ matrix + bias
            h = jax.nn.swish(h if i % 2 else h + skips.pop())
        return (h @ self.out[0] + self.out[1]).astype(x.dtype)


@absorb_matrix.register
def _(network: FlatUNet, matrix: Float[Array, "var var"]) -> FlatUNet:
    """The last layer absorbs it."""
    whole = jax.tree.map(lambda part: part.astype(matrix.dtype), network.out)
    last = _compose(whole, (matrix.T, jnp.zeros(len(matrix), matrix.dtype)))
    last = jax.tree.map(lambda new, old: new.astype(old.dtype), last, network.out)
    return FlatUNet(network.encoder, network.decoder, last)


def _compose(layer: Affine, after: Affine) -> Affine:
    """One affine map and then another, as one."""
    matrix, bias = (jnp.matmul(part, after[0], precision=Precision.HIGHEST) for part in layer)
    return matrix, bias + after[1]


def _as_affine(convolution: Convolution, points: int, channels: int) -> Affine:
    """Matrix and bias of a convolution over all points at once."""
    kernel = convolution.weight.reshape(-1, channels, len(convolution.bias))
    matrix = write_out(kernel, points, convolution.stride)
    return matrix.reshape(points * channels, -1), jnp.tile(convolution.bias, matrix.shape[2])


def _split_merging_convolution(
    convolution: Convolution, inner: tuple[int, int], outer: tuple[int, int]
) -> tuple[Array, Array]:
    """Matrices of a decoder's first convolution for what comes from below, repeated, and for what skips beside it."""
    (few, deep), (points, wide) = inner, outer
    matrix = write_out(convolution.weight.reshape(-1, deep + wide, len(convolution.bias)), points)
    below = jnp.zeros((few, deep, *matrix.shape[2:]), matrix.dtype).at[np.arange(points) // 2].add(matrix[:, :deep])
    return below.reshape(few * deep, -1), matrix[:, deep:].reshape(points * wide, -1)
