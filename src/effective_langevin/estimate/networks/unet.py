"""The one-dimensional U-Net of the paper's Kuramoto-Sivashinsky score (Supplement, "1D score U-Net architecture").

States are `channels` fields on a periodic grid of points, field after field. Arrays are (batch, point, channel).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core import checks
from ..._core.errors import ArgumentError
from ...execution.convolution import Convolution, Fields
from .network import AbstractNetwork

_VARIANCE_FLOOR = 1e-5


class BatchNorm(eqx.Module):
    """Each channel with zero mean and unit variance over the batch, then scaled and shifted."""

    scale: Float[Array, " channel"]
    shift: Float[Array, " channel"]

    def __call__(self, h: Fields) -> Fields:
        mean, gain = self._mean_and_gain(h)
        return h * gain + (self.shift - mean * gain)

    def fold_into(self, convolution: Convolution, h: Fields) -> Convolution:
        """Return the convolution that also normalises, with the statistics of its output `h` frozen."""
        mean, gain = self._mean_and_gain(h)
        return Convolution(convolution.weight * gain, (convolution.bias - mean) * gain + self.shift, convolution.stride)

    def _mean_and_gain(self, h: Fields) -> tuple[Array, Array]:
        """Mean and variance of each channel in one pass over the batch, from differences to one of its values."""
        near = jax.lax.stop_gradient(h[0, 0])
        mean, square = jnp.mean(h - near, axis=(0, 1)), jnp.mean((h - near) ** 2, axis=(0, 1))
        variance = jnp.maximum(square - mean**2, 0.0)
        return near + mean, self.scale * jax.lax.rsqrt(variance + _VARIANCE_FLOOR)


class Block(eqx.Module):
    """Convolution, normalisation, swish; twice."""

    convolutions: tuple[Convolution, Convolution]
    norms: tuple[BatchNorm, BatchNorm] | None

    def __call__(self, h: Fields, low_precision: bool = False) -> Fields:
        for convolution, norm in zip(self.convolutions, self.norms or (lambda h: h,) * 2):
            h = jax.nn.swish(norm(convolution(h, low_precision)))
        return h

    def freeze(self, h: Fields) -> "Block":
        """Fold the normalisation into the convolutions, given a batch of inputs."""
        if self.norms is None:
            return self
        first, second = self.convolutions
        inner = first(h)
        middle = jax.nn.swish(self.norms[0](inner))
        folded = self.norms[0].fold_into(first, inner), self.norms[1].fold_into(second, second(middle))
        return Block(folded, None)


class UNet(AbstractNetwork):
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
        return self.map_batch(x[None])[0]

    def map_batch(
        self,
        x: Float[Array, "batch var"],
        low_precision: bool = False,
        apply: Callable[[Block, Fields], Fields] | None = None,
    ) -> Float[Array, "batch output"]:
        """Map many states; a normalisation uses the statistics of the batch. `apply` replaces the call of a block."""
        apply = apply or (lambda block, h: block(h, low_precision))
        h = x.reshape(len(x), self.description.channels, -1).transpose(0, 2, 1)
        skips = []
        for block, down in zip(self.encoder, self.down):
            h = apply(block, h)
            skips.append(h)
            h = down(h, low_precision)
        h = apply(self.bottleneck, h)
        for block, skip in zip(self.decoder, reversed(skips)):
            wider = jnp.repeat(h, 2, axis=1)[:, : skip.shape[1]]
            h = apply(block, jnp.concatenate([wider, skip], axis=-1))
        return self.out(h).transpose(0, 2, 1).reshape(len(x), -1)

    def freeze(self, x: Float[Array, "batch var"]) -> "UNet":
        """Freeze the normalisations at their statistics over `x`, folded into the convolutions."""
        blocks = []

        def freeze_block(block: Block, h: Fields) -> Fields:
            blocks.append(block.freeze(h))
            return block(h)

        self.map_batch(x, apply=freeze_block)
        levels, description = len(self.encoder), replace(self.description, normalization="none")
        return UNet(blocks[:levels], self.down, blocks[levels], blocks[levels + 1 :], self.out, description)


@dataclass(frozen=True)
class UNet1D:
    """A U-Net on a periodic grid of points, as in the paper.

    Parameters
    ----------
    base : int, default 16
        Number of channels at the first level.
    multipliers : tuple of int, default (1, 2, 4)
        Channels of each level, in units of `base`; the bottleneck has twice those of the last. Each level halves the
        number of points, so there must be at least 2 ** len(multipliers) of them.
    kernel : int, default 5
        Points of each convolution.
    channels : int, default 1
        Number of fields. The state is field after field, each on the same points.
    normalization : {"none", "batch"}, default "none"
        "batch" is as published; the statistics over training samples are frozen after training.

    Examples
    --------
    >>> el.DenoisingScore(network=el.UNet1D(base=8, multipliers=(1, 2)), noise_level=0.1).network.channels
    1
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

    def build(self, dimension: int, *, key: jax.Array, outputs: int = 1) -> UNet:
        """Draw fresh weights for states of that dimension; the last layer starts at zero.

        `outputs` is the number of vectors of that dimension that the network returns, one after the other.
        """
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
        out = Convolution.fresh(widths[0], outputs * self.channels, 1, key=next(keys))
        out = Convolution(jnp.zeros_like(out.weight), out.bias)
        return UNet(encoder, down, block(widths[-1], 2 * widths[-1]), decoder, out, self)
