"""The one-dimensional U-Net of the paper's Kuramoto-Sivashinsky score (Supplement, "1D score U-Net architecture").

States are `channels` fields on a ring of points, field after field. Arrays are (batch, point, channel).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import Array, Float

from ..._core import checks
from ..._core.errors import ArgumentError
from .convolution import SHORT_RING, Convolution, Fields, on_cpu, written_out
from .modal import ModalUNet

_VARIANCE_FLOOR = 1e-5
Affine = tuple[Array, Array]


class BatchNorm(eqx.Module):
    """Each channel with zero mean and unit variance over the batch, then scaled and shifted."""

    scale: Float[Array, " channel"]
    shift: Float[Array, " channel"]

    def __call__(self, h: Fields) -> Fields:
        mean, gain = self._mean_and_gain(h)
        return h * gain + (self.shift - mean * gain)

    def folded_into(self, convolution: Convolution, h: Fields) -> Convolution:
        """The convolution that already normalises, with the statistics of its output `h` frozen."""
        mean, gain = self._mean_and_gain(h)
        return Convolution(convolution.weight * gain, (convolution.bias - mean) * gain + self.shift, convolution.stride)

    def _mean_and_gain(self, h: Fields) -> tuple[Array, Array]:
        """Of each channel: mean and variance in one pass over the batch, from differences to one of its values."""
        near = jax.lax.stop_gradient(h[0, 0])
        mean, square = jnp.mean(h - near, axis=(0, 1)), jnp.mean((h - near) ** 2, axis=(0, 1))
        variance = jnp.maximum(square - mean**2, 0.0)
        return near + mean, self.scale * jax.lax.rsqrt(variance + _VARIANCE_FLOOR)


class Block(eqx.Module):
    """Convolution, normalisation, swish; twice."""

    convolutions: tuple[Any, Any]
    norms: tuple[BatchNorm, BatchNorm] | None

    def __call__(self, h: Fields, half: bool = False) -> Fields:
        for convolution, norm in zip(self.convolutions, self.norms or (lambda h: h,) * 2):
            h = jax.nn.swish(norm(convolution(h, half)))
        return h

    def frozen(self, h: Fields) -> "Block":
        """The block with its normalisation folded into the convolutions, given a batch of its inputs."""
        if self.norms is None:
            return self
        first, second = self.convolutions
        inner = first(h)
        middle = jax.nn.swish(self.norms[0](inner))
        folded = self.norms[0].folded_into(first, inner), self.norms[1].folded_into(second, second(middle))
        return Block(folded, None)


class UNet(eqx.Module):
    """Encoder, bottleneck and decoder with skips, then a 1x1 convolution."""

    encoder: list[Block]
    down: list[Convolution]
    bottleneck: Block
    decoder: list[Block]
    out: Convolution
    description: "UNet1D" = eqx.field(static=True)

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        if self.bottleneck.norms is not None:
            raise ValueError("A network with batch normalisation must be frozen before it maps single states.")
        return self.in_batch(x[None])[0]

    def in_batch(self, x: Float[Array, "batch var"], half: bool = False) -> Float[Array, "batch var"]:
        """A batch of states; a normalisation uses the statistics of the batch."""
        return self._through(x, lambda block, h: block(h, half), half)

    def frozen(self, x: Float[Array, "batch var"]) -> "UNet":
        """The network with its normalisations frozen at their statistics over `x` and folded away."""
        return self._with_blocks(x, Block.frozen)

    def flat(self, dimension: int, half: bool = False) -> "UNet | FlatUNet | ModalUNet":
        """The form in which it is stepped fastest; on a GPU with `half` the digits if that will do."""
        if not on_cpu():
            return _rewritten(FlatUNet, self, dimension, jnp.dtype(jnp.bfloat16 if half else jnp.float32))
        short = dimension // self.description.channels <= SHORT_RING
        return _rewritten(ModalUNet, self, dimension, jnp.dtype(jnp.float32)) if short else self

    def scaled_by(self, factor: float) -> "UNet":
        """The network times a number, absorbed in its last layer."""

        def ends(network) -> tuple[Any, Any]:
            return network.out.weight, network.out.bias

        return eqx.tree_at(ends, self, tuple(factor * end for end in ends(self)))

    @property
    def architecture(self) -> dict[str, Any]:
        """What `rebuilt` needs to make a network of the same shape."""
        return self.description.settings

    def _with_blocks(self, x: Float[Array, "batch var"], changed: Callable[[Block, Fields], Block]) -> "UNet":
        """The network with every block replaced, given what reaches it of the states `x`."""
        blocks = []

        def change(block: Block, h: Fields) -> Fields:
            blocks.append(changed(block, h))
            return block(h)

        self._through(x, change)
        levels = len(self.encoder)
        return UNet(
            blocks[:levels], self.down, blocks[levels], blocks[levels + 1 :], self.out, self.description.without_norm
        )

    def _through(
        self, x: Float[Array, "batch var"], run: Callable[[Block, Fields], Fields], half: bool = False
    ) -> Array:
        """The wiring, once; `run` says what is done at each block."""
        h = x.reshape(len(x), self.description.channels, -1).transpose(0, 2, 1)
        skips = []
        for block, down in zip(self.encoder, self.down):
            h = run(block, h)
            skips.append(h)
            h = down(h, half)
        h = run(self.bottleneck, h)
        for block, skip in zip(self.decoder, reversed(skips)):
            wider = jnp.repeat(h, 2, axis=1)[:, : skip.shape[1]]
            h = run(block, jnp.concatenate([wider, skip], axis=-1))
        return self.out(h).transpose(0, 2, 1).reshape(x.shape)


@dataclass(frozen=True)
class UNet1D:
    """A U-Net on a ring of points, as in the paper: widths `base` times `multipliers`, twice the last at the bottom.

    `normalization` is "batch" (as published; its statistics over training samples are frozen afterwards) or "none".
    With several `channels` the state is field after field, each on the same points.
    """

    base: int = 16
    multipliers: tuple[int, ...] = (1, 2, 4)
    kernel: int = 5
    channels: int = 1
    normalization: str = "none"

    def __post_init__(self):
        for name in ("base", "kernel", "channels"):
            checks.integer_at_least(name, getattr(self, name), 1)
        object.__setattr__(self, "multipliers", checks.integers_at_least("multipliers", self.multipliers, 1))
        checks.one_of("normalization", self.normalization, ("batch", "none"))

    @property
    def settings(self) -> dict[str, Any]:
        """The description as plain data."""
        return {
            "kind": "UNet1D",
            "base": self.base,
            "multipliers": list(self.multipliers),
            "kernel": self.kernel,
            "channels": self.channels,
            "normalization": self.normalization,
        }

    @property
    def without_norm(self) -> "UNet1D":
        """The same shape after freezing."""
        return UNet1D(self.base, self.multipliers, self.kernel, self.channels)

    def build(self, dimension: int, *, key: jax.Array) -> UNet:
        """Fresh weights for a state of that dimension; the last layer starts at zero."""
        points, rest = divmod(dimension, self.channels)
        if rest or points < 2 ** len(self.multipliers):
            raise ArgumentError(
                f"UNet1D with {len(self.multipliers)} levels and {self.channels} channel(s) needs {self.channels} x "
                f"at least {2 ** len(self.multipliers)} variables, but the series has {dimension}. Use fewer "
                "`multipliers`, or another network."
            )
        keys = iter(jax.random.split(key, 8 * len(self.multipliers) + 8))
        widths = [self.base * m for m in self.multipliers]

        def block(inputs: int, outputs: int) -> Block:
            first, second = (Convolution.fresh(n, outputs, self.kernel, key=next(keys)) for n in (inputs, outputs))
            norm = BatchNorm(jnp.ones(outputs), jnp.zeros(outputs))
            return Block((first, second), (norm, norm) if self.normalization == "batch" else None)

        encoder = [block(a, b) for a, b in zip([self.channels, *widths[:-1]], widths)]
        down = [Convolution.fresh(w, w, 2, 2, key=next(keys)) for w in widths]
        above = [2 * widths[-1], *widths[:0:-1]]
        decoder = [block(a + b, b) for a, b in zip(above, widths[::-1])]
        out = Convolution.fresh(widths[0], self.channels, 1, key=next(keys))
        out = Convolution(jnp.zeros_like(out.weight), out.bias)
        return UNet(encoder, down, block(widths[-1], 2 * widths[-1]), decoder, out, self)


class FlatUNet(eqx.Module):
    """The same function as a frozen U-Net, with every convolution written out as one matrix over points and channels.

    At the few points of the lower levels a convolution is nearly a full matrix anyway: twice the arithmetic, but no
    copying of shifted inputs, which is what takes the time when many members are stepped together on a GPU. The way
    down to the next level is linear and part of the first matrix there; beside it, beyond the length of the bias,
    stand the columns for what skips to the decoder.
    """

    encoder: list[Affine]
    decoder: list[Affine]
    out: Affine

    @classmethod
    def of(cls, network: UNet, dimension: int) -> "FlatUNet":
        """Write out the convolutions for states of that dimension."""
        channels = network.description.channels
        points, width, sizes, encoder, decoder, way = dimension // channels, channels, [], [], [], None
        order = np.arange(dimension).reshape(points, channels).T.reshape(-1)
        for block, down in zip_longest([*network.encoder, network.bottleneck], network.down):
            first, second = block.convolutions
            layer, width = _written_out(first, points, width), len(first.bias)
            encoder += [layer if way is None else _followed(way, layer), _written_out(second, points, width)]
            if down is not None:
                way = _written_out(down, points, width)
                sizes.append((points, width))
                points = -(-points // 2)
        inner = points, width
        for block, level in zip(network.decoder, reversed(range(len(sizes)))):
            first, second = block.convolutions
            below, beside = _merging(first, inner, sizes[level])
            inner = sizes[level][0], len(first.bias)
            decoder += [(below, jnp.tile(first.bias, inner[0])), _written_out(second, *inner)]
            onward, bias = encoder[2 * level + 2]
            encoder[2 * level + 2] = jnp.concatenate([onward, beside], axis=1), bias
        (first, start), (last, end) = encoder[0], _written_out(network.out, *inner)
        return cls([(first[order], start), *encoder[1:]], decoder, (last[:, order], end[order]))

    def __call__(self, x: Float[Array, " var"]) -> Float[Array, " var"]:
        h, skips = x.astype(self.out[0].dtype), []
        for matrix, bias in self.encoder:
            h, skip = jnp.split(h @ matrix, [len(bias)])
            h = jax.nn.swish(h + bias)
            skips += [skip] if len(skip) else []
        for i, layer in enumerate(self.decoder):
            h = _affine(layer, h)
            h = jax.nn.swish(h if i % 2 else h + skips.pop())
        return _affine(self.out, h).astype(x.dtype)

    def in_batch(self, x: Float[Array, "batch var"], half: bool = False) -> Float[Array, "batch var"]:
        """A batch of states, with the digits it has."""
        return jax.vmap(self)(x)

    def followed_by(self, matrix: Float[Array, "var var"]) -> "FlatUNet":
        """The network and then a matrix, absorbed in the last layer."""
        whole = jax.tree.map(lambda part: part.astype(matrix.dtype), self.out)
        last = _followed(whole, (matrix.T, jnp.zeros(len(matrix))))
        return FlatUNet(
            self.encoder, self.decoder, jax.tree.map(lambda new, old: new.astype(old.dtype), last, self.out)
        )


@eqx.filter_jit
def _rewritten(form: type[FlatUNet] | type[ModalUNet], network: UNet, dimension: int, dtype: np.dtype) -> Any:
    """One program: its many small steps would each be compiled on their own."""
    return jax.tree.map(lambda array: array.astype(dtype), form.of(network, dimension))


def _affine(layer: Affine, h: Array) -> Array:
    return h @ layer[0] + layer[1]


def _followed(layer: Affine, after: Affine) -> Affine:
    """One affine map and then another, as one."""
    matrix, bias = (jnp.matmul(part, after[0], precision=Precision.HIGHEST) for part in layer)
    return matrix, bias + after[1]


def _written_out(convolution: Convolution, points: int, channels: int) -> tuple[Array, Array]:
    """Matrix and bias of a convolution over all points at once."""
    kernel = convolution.weight.reshape(-1, channels, len(convolution.bias))
    matrix = written_out(kernel, points, convolution.stride)
    return matrix.reshape(points * channels, -1), jnp.tile(convolution.bias, matrix.shape[2])


def _merging(convolution: Convolution, inner: tuple[int, int], outer: tuple[int, int]) -> tuple[Array, Array]:
    """Matrices of a decoder's first convolution for what comes from below, repeated, and for what skips beside it."""
    (few, deep), (points, wide) = inner, outer
    matrix = written_out(convolution.weight.reshape(-1, deep + wide, len(convolution.bias)), points)
    below = jnp.zeros((few, deep, *matrix.shape[2:])).at[np.arange(points) // 2].add(matrix[:, :deep])
    beside = matrix[:, deep:].reshape(points * wide, -1)
    return below.reshape(few * deep, -1), beside
