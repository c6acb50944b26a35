"""Circular convolution of fields on a periodic grid, in the form that is fastest where it runs.

Four forms of one function. On a CPU and a short grid, one product per Fourier mode: a circular convolution does not
mix modes, which leaves 2.5 times fewer multiplications than a kernel of five points and nothing to copy. On a CPU and a
long grid, the library's convolution. On a GPU and a short grid, one matrix over all points and channels: several times
the arithmetic, which matrix units do in no time, and nothing to copy. On a GPU and a long grid, the product of shifted
copies of the input with one matrix. The forms on a GPU give the same bits every time, unlike the library's convolution.
"""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .batches import one_cpu

Fields = Float[Array, "batch point channel"]
Kernel = Float[Array, "tap input output"]
SHORT_GRID = 32
_HIDDEN = 8  # fewer inputs are the state itself, which keeps its full precision


class Convolution(eqx.Module):
    """Circular convolution; with `stride` equal to the length of the kernel the windows do not overlap."""

    weight: Float[Array, "window out"]
    bias: Float[Array, " out"]
    stride: int = eqx.field(static=True, default=1)

    @classmethod
    def fresh(cls, inputs: int, outputs: int, kernel: int, stride: int = 1, *, key: jax.Array) -> "Convolution":
        """Draw weights of variance 2 / (number of inputs), which keeps the size of the signal through swish layers."""
        scale = np.sqrt(2.0 / (kernel * inputs))
        return cls(scale * jax.random.normal(key, (kernel * inputs, outputs)), jnp.zeros(outputs), stride)

    def __call__(self, h: Fields, low_precision: bool = False) -> Fields:
        """Convolve a batch; `low_precision` allows bfloat16 on a GPU."""
        points, taps = h.shape[1], self.weight.shape[0] // h.shape[2]
        if taps > 1 and points <= SHORT_GRID and not one_cpu():
            kernel = self.weight.reshape(taps, h.shape[2], -1)
            return by_matrix(h, kernel, self.stride, low_precision and h.shape[2] >= _HIDDEN) + self.bias
        if self.stride > 1:
            h = jnp.concatenate([h, h[:, : -points % taps]], axis=1)
            return h.reshape(len(h), -1, taps * h.shape[2]) @ self.weight + self.bias
        if taps == 1:
            return (h @ self.weight if one_cpu() else by_column(h, self.weight)) + self.bias
        form = by_window if not one_cpu() else by_mode if points <= SHORT_GRID else by_library
        return form(h, self.weight.reshape(taps, h.shape[2], -1)) + self.bias


def by_column(h: Fields, weight: Float[Array, "input output"]) -> Fields:
    """Multiply by each column: a GPU takes longer for two at once than a third of a whole training step."""
    return jnp.stack([h @ column for column in weight.T], axis=-1)


def by_window(h: Fields, kernel: Kernel) -> Fields:
    """Put all shifted copies of the input side by side and multiply them by one matrix."""
    points, (taps, inputs, outputs) = h.shape[1], kernel.shape
    wrapped = _wrap(h, taps)
    windows = jnp.concatenate([wrapped[:, i : i + points] for i in range(taps)], axis=-1)
    return windows @ kernel.reshape(taps * inputs, outputs)


def by_matrix(h: Fields, kernel: Kernel, stride: int = 1, low_precision: bool = False) -> Fields:
    """Multiply by one matrix for all points and channels."""
    matrix = write_out(kernel, h.shape[1], stride)
    dtype = jnp.bfloat16 if low_precision else h.dtype
    product = h.reshape(len(h), -1).astype(dtype) @ matrix.reshape(-1, matrix[0, 0].size).astype(dtype)
    return product.astype(h.dtype).reshape(len(h), *matrix.shape[2:])


def by_library(h: Fields, kernel: Kernel) -> Fields:
    """Call the convolution of the array library."""
    return jax.lax.conv_general_dilated(
        _wrap(h, len(kernel)), kernel, (1,), "VALID", dimension_numbers=("NHC", "HIO", "NHC")
    )


def by_mode(h: Fields, kernel: Kernel) -> Fields:
    """Transform to Fourier modes, multiply in each, and transform back."""
    paired, lone = kernel_modes(kernel, h.shape[1])
    to_modes, to_points, waves, _ = transforms(h.shape[1], 1)
    modes = jnp.tensordot(jnp.asarray(to_modes, h.dtype), h, [[1], [1]])
    pairs = jnp.matmul(jnp.concatenate([modes[:waves], modes[waves : 2 * waves]], axis=2), paired)
    answers = jnp.concatenate([*jnp.split(pairs, 2, axis=2), jnp.matmul(modes[2 * waves :], lone)])
    return jnp.tensordot(jnp.asarray(to_points, h.dtype), answers, 1).transpose(1, 0, 2)


def _write_out(kernel: Kernel, points: int, stride: int = 1):
    """Return the matrix of a convolution, (point, input, point out, output): which tap reaches where."""
    reached = _reached_inputs(points, len(kernel), stride)[:, None, :] == np.arange(points)[:, None]
    return sum(jnp.where(at[:, None, :, None], tap[:, None, :], 0.0) for at, tap in zip(reached, kernel))


def _sum_diagonals(points, stride, kernel, gradient):
    """The gradient of a tap is a sum along its diagonal; the rest of the matrix is not even read."""
    reached = _reached_inputs(points, len(kernel), stride)
    return (jnp.stack([gradient[at, :, np.arange(len(at)), :].sum(axis=0) for at in reached]),)


write_out: Any = jax.custom_vjp(_write_out, nondiff_argnums=(1, 2))
write_out.defvjp(lambda kernel, points, stride: (write_out(kernel, points, stride), kernel), _sum_diagonals)


def _reached_inputs(points: int, taps: int, stride: int) -> np.ndarray:
    """The input that each tap of each output reaches: a centred kernel, or windows that do not overlap."""
    first = 0 if stride > 1 else (taps - 1) // 2
    return (stride * np.arange(-(-points // stride)) + np.arange(taps)[:, None] - first) % points


def kernel_modes(kernel: Kernel, points: int) -> tuple[Array, Array]:
    """sum_i w_i exp(2 pi i k offset_i / points): real matrices for (cosine, sine) of each wave, and for the lone modes.

    The mean and, on a grid of even length, the shortest wave are alone and real.
    """
    waves, phases = transforms(points, len(kernel))[2:]
    real, imaginary = (jnp.tensordot(jnp.asarray(phase, kernel.dtype), kernel, 1) for phase in phases)
    rows = jnp.concatenate([real, imaginary], axis=2), jnp.concatenate([-imaginary, real], axis=2)
    return jnp.concatenate([row[:waves] for row in rows], axis=1), real[waves:]


@cache
def transforms(points: int, taps: int) -> tuple[np.ndarray, np.ndarray, int, tuple[np.ndarray, np.ndarray]]:
    """Real Fourier transform and its inverse as matrices, number of complex modes, phases of the kernel's taps.

    Order of modes: cosines, then sines, of the complex ones; then the mean and, if there is one, the shortest wave.
    """
    waves = (points - 1) // 2
    order = np.array([*range(1, waves + 1), 0, *([points // 2] if points % 2 == 0 else [])])
    angle = 2 * np.pi / points * np.outer(order, np.arange(points))
    to_modes = np.concatenate([np.cos(angle[:waves]), -np.sin(angle[:waves]), np.cos(angle[waves:])])
    counted = np.repeat([2.0, 1.0], [2 * waves, len(order) - waves])
    shift = 2 * np.pi / points * np.outer(order, np.arange(taps) - (taps - 1) // 2)
    return to_modes, to_modes.T * counted / points, waves, (np.cos(shift), np.sin(shift))


def _wrap(h: Fields, taps: int) -> Fields:
    """Continue the fields around the grid by as many points on either side as a kernel of `taps` points reaches."""
    before = (taps - 1) // 2
    return jnp.pad(h, ((0, 0), (before, taps - 1 - before), (0, 0)), mode="wrap")
