"""The Kuramoto-Sivashinsky equation, observed on a coarse grid: deterministic chaos in many dimensions (Sec. VI).

Fourier in space, fourth-order exponential time differencing (ETDRK4; Cox & Matthews 2002) in time, with the
coefficients as contour means (Kassam & Trefethen 2005). The state is the spectrum of the modes 0 ... K with
3 K < grid, so that the quadratic term is free of aliasing.
"""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, progress
from .._core.types import Samples
from .base import System

Array = np.ndarray | jax.Array
_FRAMES_PER_CALL = 64
_STEPS_PER_CALL = 2000
_CONTOUR_POINTS = 64


class Etdrk4(NamedTuple):
    """Coefficients of one step for each retained mode; arrays only, so that they travel into a compiled loop."""

    half: Array  # exp(h L / 2)
    whole: Array  # exp(h L)
    stage: Array  # h phi_1(h L / 2) / 2
    first: Array  # weight of N(u)
    middle: Array  # weight of N(a) and N(b), each
    last: Array  # weight of N(c)
    transport: Array  # -i k / 2, so that N(u) = transport * FFT(u^2)


class KuramotoSivashinsky(System):
    """u_t = -u_xx - u_xxxx - (u^2 / 2)_x + gamma u_xxx on a circle of circumference `length`.

    A mode exp(i k x) of small amplitude grows at the rate k^2 - k^4 and travels with the phase speed +gamma k^2, to the
    right for gamma > 0. With gamma = 0 the law is symmetric under u(x) -> -u(-x); any other gamma breaks that (the
    reflection maps gamma to -gamma) and the steady state rotates. Members start from random smooth states of zero mean,
    which is conserved, and are spun up for at least `burn_in`. A given `initial`, (member, grid), is taken without
    spin-up unless `burn_in` is given too; what it holds beyond the retained modes is lost. `drift` takes states on the
    full grid.

    Parameters
    ----------
    length, gamma : float
        Circumference of the circle and strength of the dispersion; defaults 34, 0.
    grid, stride : int
        Grid points of the solver, of which every `stride`-th is observed; defaults 512, 16.

    Examples
    --------
    >>> system = el.systems.KuramotoSivashinsky(grid=64, stride=8)
    >>> system.simulate(10.0, dt=1.0, members=2, burn_in=5.0).values.shape
    (2, 11, 8)
    """

    step: ClassVar[float] = 0.1
    burn_in: ClassVar[float] = 3000.0
    exact: ClassVar[tuple[str, ...]] = ()
    length: float = 34.0
    grid: int = 512
    stride: int = 16
    gamma: float = 0.0

    def __post_init__(self):
        checks.positive_number("length", self.length)
        checks.integer_at_least("grid", self.grid, 4)
        checks.one_of("stride", self.stride, [n for n in range(1, self.grid + 1) if self.grid % n == 0])
        checks.instance_of("gamma", self.gamma, (float, int))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables: u1, u2, ..."""
        return tuple(f"u{i + 1}" for i in range(self.grid // self.stride))

    @property
    def wavenumbers(self) -> np.ndarray:
        """The retained wavenumbers 2 pi j / length, j = 0 ... K with 3 K < grid (two-thirds rule)."""
        return 2 * np.pi / self.length * np.arange((self.grid - 1) // 3 + 1)

    def drift(self, x: Samples) -> Samples:
        spectrum = self._spectrum(np.asarray(x, float))
        quadratic = self._spectrum(np.fft.irfft(spectrum, self.grid) ** 2)
        return np.fft.irfft(self._linear * spectrum - 0.5j * self.wavenumbers * quadratic, self.grid)

    def _drift(self, x):
        return self.drift(x)

    def _noise(self, x):
        return np.zeros((len(x), 0))

    def _integrate(self, frames, save_every, step, *, members, seed, burn_in, initial, noise):
        """Spin up, then save the initial and `frames` further observations of every member."""
        checks.not_given("noise", noise, "the Kuramoto-Sivashinsky equation has none")
        if members == 1:
            checks.integer_at_least("duration / dt", frames, self.dimension - 1)
        default = self.burn_in if initial is None else 0.0
        burn_in = checks.non_negative_number("burn_in", default if burn_in is None else burn_in)
        start = self._random_states(members, seed) if initial is None else initial
        start = checks.shaped_array("initial", start, (members, self.grid), "(member, grid)")
        spin_up, paths = round(burn_in / step), np.empty((len(start), frames + 1, self.dimension))
        spin_calls, spin_count = _equal_calls(spin_up, _STEPS_PER_CALL)
        calls, count = _equal_calls(frames, _FRAMES_PER_CALL)
        label = f"Simulating {type(self).__name__}"
        with jax.enable_x64(True), progress.task(label, spin_up + frames * save_every) as tick:
            coefficients = Etdrk4(*map(jnp.asarray, self._etdrk4(step)))
            state = jnp.asarray(self._spectrum(start))
            for call in range(spin_calls):
                state, _ = _run_frames(coefficients, state, self.grid, self.stride, 1, spin_count)
                state.block_until_ready()
                tick(min(spin_count, spin_up - call * spin_count))
            paths[:, 0] = np.fft.irfft(np.asarray(state), self.grid)[:, :: self.stride]
            for first in range(0, calls * count, count):
                state, seen = _run_frames(coefficients, state, self.grid, self.stride, count, save_every)
                kept = min(count, frames - first)
                paths[:, first + 1 : first + 1 + kept] = np.asarray(seen[:kept]).transpose(1, 0, 2)
                tick(kept * save_every)
        return paths

    def _etdrk4(self, step: float) -> Etdrk4:
        """Return the coefficients of one step; removable singularities at L = 0 by means over a circle around h L."""
        scaled = step * self._linear
        circle = np.exp(2j * np.pi * (np.arange(_CONTOUR_POINTS) + 0.5) / _CONTOUR_POINTS)
        z = scaled[:, None] + circle
        e = np.exp(z)
        stage = (np.exp(z / 2) - 1) / z
        first = (-4 - z + e * (4 - 3 * z + z**2)) / z**3
        middle = 2 * (2 + z + e * (z - 2)) / z**3
        last = (-4 - 3 * z - z**2 + e * (4 - z)) / z**3
        means = (step * values.mean(axis=1) for values in (stage, first, middle, last))
        return Etdrk4(np.exp(scaled / 2), np.exp(scaled), *means, transport=-0.5j * self.wavenumbers)

    @property
    def _linear(self) -> np.ndarray:
        """L(k) = k^2 - k^4 - i gamma k^3."""
        k = self.wavenumbers
        return k**2 - k**4 - 1j * self.gamma * k**3

    def _spectrum(self, u: np.ndarray) -> np.ndarray:
        return np.fft.rfft(u)[..., : len(self.wavenumbers)]

    def _random_states(self, members: int, seed: int) -> Samples:
        """Return states with Gaussian amplitudes of the linearly unstable modes 0 < k < 1, of spread 1 and mean 0."""
        highest = min(max(1, int(self.length / (2 * np.pi))), len(self.wavenumbers) - 1)
        normals = np.random.default_rng(seed).normal(size=(members, highest, 2))
        spectrum = np.zeros((members, self.grid // 2 + 1), complex)
        spectrum[:, 1 : highest + 1] = self.grid / (2 * np.sqrt(highest)) * (normals[..., 0] + 1j * normals[..., 1])
        return np.fft.irfft(spectrum, self.grid)


def _step(c: Etdrk4, spectrum: Array, grid: int) -> Array:
    """Step du/dt = L u + N(u), N(u) = -(u^2 / 2)_x, for spectra (..., mode); Cox & Matthews, eqs. 26-29."""

    def nonlinear(v):
        return c.transport * jnp.fft.rfft(jnp.fft.irfft(v, grid) ** 2)[..., : v.shape[-1]]

    n_start = nonlinear(spectrum)
    a = c.half * spectrum + c.stage * n_start
    n_a = nonlinear(a)
    n_b = nonlinear(c.half * spectrum + c.stage * n_a)
    n_c = nonlinear(c.half * a + c.stage * (2 * n_b - n_start))
    return c.whole * spectrum + c.first * n_start + c.middle * (n_a + n_b) + c.last * n_c


def _equal_calls(total: int, most: int) -> tuple[int, int]:
    """Return the number of compiled calls and the units in each, all alike; the last call may overrun."""
    calls = -(-total // most)
    return calls, -(-total // max(calls, 1))


@jax.jit(static_argnames=("grid", "stride", "frames", "save_every"))
def _run_frames(coefficients, state, grid, stride, frames, save_every):
    """Advance by `frames * save_every` steps; return the last spectra and the observed points (frame, member, var)."""

    def frame(state, _):
        state = jax.lax.scan(lambda v, _: (_step(coefficients, v, grid), None), state, length=save_every)[0]
        return state, jnp.fft.irfft(state, grid)[:, ::stride]

    return jax.lax.scan(frame, state, length=frames)
