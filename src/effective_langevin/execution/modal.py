"""A frozen U-Net on a short grid, on a CPU: its convolutions as products in Fourier modes, with nothing to copy.

Fields are (point, channel, batch). The real Fourier transform is a product with a small matrix whose rows are (cosine,
sine) of one wave after the other; the mean and the shortest wave, both alone, make up the last pair. A pair of modes
of all channels is then a stretch of memory, and so are the inputs of a product per pair.
"""

from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .batches import Batched
from .convolution import Convolution, kernel_modes, transforms

Fields = Float[Array, "point channel batch"]


class ModalConvolution(eqx.Module):
    """A circular convolution of several fields side by side, each with the modes of its part of the kernel at hand.

    A field on half as many points is repeated, every point twice.
    """

    weights: tuple[Float[Array, "pair twoout twoin"], ...]
    bias: Float[Array, "out one"]

    @classmethod
    def of(cls, convolution: Convolution, points: int, *channels: int) -> "ModalConvolution":
        """Transform the kernel of a convolution with stride 1, for fields with so many channels on that many points."""
        kernel = convolution.weight.reshape(-1, sum(channels), len(convolution.bias))
        parts = jnp.split(kernel, np.cumsum(channels)[:-1], axis=1)
        return cls(tuple(_pair_weights(part, points) for part in parts), convolution.bias[:, None])

    def __call__(self, *fields: Fields) -> Fields:
        points, _, batch = fields[-1].shape
        to_pairs, to_points = _pair_transforms(points)

        def answer(weight, h):
            repeated = np.arange(points) if len(h) == points else np.arange(points) // 2
            forward = to_pairs @ (repeated[:, None] == np.arange(len(h)))
            modes = jnp.asarray(forward, h.dtype) @ h.reshape(len(h), -1)
            return weight @ modes.reshape(len(weight), -1, batch)

        answers = reduce(jnp.add, map(answer, self.weights, fields))
        back = jnp.asarray(to_points, answers.dtype) @ answers.reshape(to_points.shape[1], -1)
        return back.reshape(points, -1, batch) + self.bias


class Pointwise(eqx.Module):
    """A convolution whose windows do not overlap: one product for every window."""

    weight: Float[Array, "window out in"]
    bias: Float[Array, "out one"]

    @classmethod
    def of(cls, convolution: Convolution, points: int) -> "Pointwise":
        """Repeat the weights of a convolution for every window on that many points."""
        weight = convolution.weight.T
        return cls(
            jnp.broadcast_to(weight, (-(-points // convolution.stride), *weight.shape)), convolution.bias[:, None]
        )

    def __call__(self, h: Fields) -> Fields:
        missing = len(self.weight) * self.weight.shape[2] // h.shape[1] - len(h)
        h = jnp.concatenate([h, h[:missing]]) if missing else h
        return self.weight @ h.reshape(len(self.weight), -1, h.shape[2]) + self.bias


class ModalUNet(Batched):
    """The same function as a frozen U-Net."""

    encoder: list[tuple[ModalConvolution, ModalConvolution]]
    down: list[Pointwise]
    bottleneck: tuple[ModalConvolution, ModalConvolution]
    decoder: list[tuple[ModalConvolution, ModalConvolution]]
    out: Pointwise
    channels: int = eqx.field(static=True)

    @classmethod
    def of(cls, network: Any, dimension: int) -> "ModalUNet":
        """Work out the modes of all kernels of a `UNet`, for states of that dimension."""
        channels = network.description.channels
        points, width, sizes, encoder, down, decoder = dimension // channels, channels, [], [], [], []

        for level, narrower in zip(network.encoder, network.down):
            encoder.append(_transform_block(level.convolutions, points, width))
            down.append(Pointwise.of(narrower, points))
            width = len(narrower.bias)
            sizes.append((points, width))
            points = -(-points // 2)
        bottleneck = _transform_block(network.bottleneck.convolutions, points, width)
        width = len(bottleneck[1].bias)
        for level, (points, beside) in zip(network.decoder, reversed(sizes)):
            decoder.append(_transform_block(level.convolutions, points, width, beside))
            width = beside
        return cls(encoder, down, bottleneck, decoder, Pointwise.of(network.out, points), channels)

    def in_batch(self, x: Float[Array, "batch var"]) -> Float[Array, "batch var"]:
        h, skips = x.reshape(len(x), self.channels, -1).transpose(2, 1, 0), []
        for block, down in zip(self.encoder, self.down):
            h = _apply_block(block, h)
            skips.append(h)
            h = down(h)
        h = _apply_block(self.bottleneck, h)
        for block, skip in zip(self.decoder, reversed(skips)):
            h = _apply_block(block, h, skip)
        return self.out(h).transpose(2, 1, 0).reshape(len(x), -1)


def _transform_block(convolutions: Any, points: int, *inputs: int) -> tuple[ModalConvolution, ModalConvolution]:
    first, second = convolutions
    return ModalConvolution.of(first, points, *inputs), ModalConvolution.of(second, points, len(first.bias))


def _apply_block(block: tuple[ModalConvolution, ModalConvolution], *fields: Fields) -> Fields:
    first, second = block
    return jax.nn.swish(second(jax.nn.swish(first(*fields))))


def _pair_weights(kernel: Float[Array, "tap input output"], points: int) -> Float[Array, "pair twoout twoin"]:
    """The matrix of every pair of modes; in the last one, the mean and the shortest wave do not mix."""
    paired, lone = kernel_modes(kernel, points)
    (_, inputs, outputs), last = kernel.shape, jnp.zeros((1, *paired.shape[1:]), kernel.dtype)
    for i, matrix in enumerate(lone):
        last = last.at[0, i * inputs : (i + 1) * inputs, i * outputs : (i + 1) * outputs].set(matrix)
    return jnp.concatenate([paired, last]).transpose(0, 2, 1)


def _pair_transforms(points: int) -> tuple[np.ndarray, np.ndarray]:
    """The transforms with modes in pairs; on a grid of odd length the shortest wave of the last pair is left empty."""
    to_modes, to_points, waves, _ = transforms(points, 1)
    order = [*np.arange(2 * waves).reshape(2, -1).T.ravel(), *range(2 * waves, points)]
    empty = ((0, points % 2), (0, 0))
    return np.pad(to_modes[order], empty), np.pad(to_points.T[order], empty).T
