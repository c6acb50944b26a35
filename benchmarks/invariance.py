"""Bias of the invariant law and of its autocorrelation against the step, with the exact score of the wells.

    python -m benchmarks.invariance

A stepper is a map x' = F(x, dW), so its Markov operator (P g)(x) = E g(F(x, dW)) can be tabulated: Gauss-Hermite nodes
for dW, cubic interpolation for g on a grid. The left eigenvector of P with eigenvalue 1 is the law the stepper
samples, and < x P^n x > its autocorrelation after n steps: no Monte Carlo is involved. Writes
benchmarks/results/invariance.json and docs/figures/invariance.png.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline
from scipy.sparse.linalg import eigs

import effective_langevin as el
from effective_langevin.simulate.steppers import Equation

from .harness import log_slope

STEPS = {
    "EulerMaruyama": (0.04, 0.02, 0.01, 0.005, 0.0025),
    "ExponentialEuler": (0.04, 0.02, 0.01, 0.005, 0.0025),
    "StochasticHeun": (0.04, 0.028, 0.02, 0.014, 0.01),
}
FINE = 0.005
LAGS = np.arange(0.25, 4.01, 0.25)
LIMITS = ((-2.5, 2.5), (-2.7, 2.7))


def exact_moments(system: el.systems.AsymmetricWells) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each variable: the density is a product, so one-dimensional quadrature is enough."""
    x = np.linspace(-4, 4, 16001)
    p = np.exp([-((x**2 - w**2) ** 2) - t * x for w, t in zip(system.wells, system.tilt)])
    p /= p.sum(axis=1, keepdims=True)
    mean = p @ x
    return mean, p @ x**2 - mean**2


def wells_equation() -> Equation:
    """The wells with their exact score and their Gaussian linear part."""
    system = el.systems.AsymmetricWells()
    mean, variance = exact_moments(system)
    linear = jnp.asarray(-system.mobility @ np.diag(1 / variance), jnp.float32)
    return Equation(system._drift, jnp.eye(2), linear=linear, centre=jnp.asarray(mean, jnp.float32))


def cubic_weights(grid: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices and weights of four-point Lagrange interpolation."""
    spacing = grid[1] - grid[0]
    i = np.clip(np.floor((x - grid[0]) / spacing).astype(int), 1, len(grid) - 3)
    t = (x - grid[0]) / spacing - i
    weights = (
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    )
    return i[:, None] + np.arange(-1, 3), np.stack(weights, axis=1)


def sampled(
    stepper, step: float, variable: int = 1, points: int = 101, nodes: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Variances of the law that a stepper samples at this step, and the autocorrelation of one variable at `LAGS`."""
    grids = [np.linspace(low, high, points) for low, high in LIMITS]
    states = np.stack([m.ravel() for m in np.meshgrid(*grids, indexing="ij")], axis=1)
    roots, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    kicks = np.sqrt(step) * np.stack([m.ravel() for m in np.meshgrid(roots, roots, indexing="ij")], axis=1)
    advance = stepper.advance(wells_equation(), step)
    move = jax.jit(lambda x, dw: advance(x, jnp.broadcast_to(dw, x.shape)))
    size, operator = points**2, sp.csr_array((points**2, points**2))
    for kick, weight in zip(kicks, weights):
        after = np.asarray(move(jnp.asarray(states, jnp.float32), jnp.asarray(kick, jnp.float32)), float)
        after = np.clip(after, *np.array(LIMITS).T)
        (i, a), (j, b) = (cubic_weights(g, after[:, d]) for d, g in enumerate(grids))
        columns = (i[:, :, None] * points + j[:, None, :]).ravel()
        values = weight * (a[:, :, None] * b[:, None, :]).ravel()
        operator = operator + sp.csr_array((values, columns, np.arange(0, 16 * size + 1, 16)), shape=(size, size))
    law = eigs(operator.T.tocsr(), k=1, v0=np.exp(-np.sum((states**2 - 1.2) ** 2, axis=1)), tol=1e-10)[1][:, 0].real
    law = law / law.sum()
    centred = states - law @ states
    variance = law @ centred**2
    later, correlation = centred[:, variable], [1.0]
    for _ in range(int(np.ceil(LAGS[-1] / step))):
        later = operator @ later
        correlation.append(law @ (centred[:, variable] * later) / variance[variable])
    return variance, CubicSpline(step * np.arange(len(correlation)), correlation)(LAGS)


def measure(steps: dict[str, tuple[float, ...]] = STEPS, variable: int = 1) -> dict:
    """Relative error of one variance for each stepper and step, and the largest error of its autocorrelation.

    The autocorrelation is compared with that of StochasticHeun at the step `FINE`, none of those measured.
    """
    exact = exact_moments(el.systems.AsymmetricWells())[1][variable]
    limit = sampled(el.StochasticHeun(), FINE, variable)[1]
    results = {}
    for name, sizes in steps.items():
        found = [sampled(getattr(el, name)(), h, variable) for h in sizes]
        results[name] = {
            "step": list(sizes),
            "variance_error": [float(variance[variable] / exact - 1) for variance, _ in found],
            "acf_error": [float(np.abs(acf - limit).max()) for _, acf in found],
        }
    return results


def slope(found: dict, kind: str) -> float:
    """Order of one kind of error, from the three smallest steps."""
    return log_slope(found["step"][-3:], np.abs(found[kind][-3:]))


def draw(results: dict) -> Figure:
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panels = {
        "variance_error": "relative error of the variance of x2",
        "acf_error": f"largest error of its autocorrelation, lags to {LAGS[-1]:g}",
    }
    for ax, (kind, label) in zip(figure.subplots(1, 2), panels.items()):
        for (name, r), style, colour in zip(results.items(), ("o-", "s--", "D-"), ("#d55e00", "#009e73", "#0072b2")):
            ax.plot(r["step"], np.abs(r[kind]), style, label=f"{name}: slope {slope(r, kind):.2f}", color=colour)
        ax.set(xscale="log", yscale="log", xlabel="step (time)", ylabel=label)
        ticks = [0.0025, 0.005, 0.01, 0.02, 0.04]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.set_xticks([], minor=True)
        ax.axhline(0.01, color="0.4", lw=1, ls=":")
        ax.legend(frameon=False)
        ax.grid(alpha=0.3, which="both")
    figure.suptitle("Wells with the exact score: bias of the law that is sampled (dotted: 1 %)")
    return figure


if __name__ == "__main__":
    measured = measure()
    for folder in ("benchmarks/results", "docs/figures"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    Path("benchmarks/results/invariance.json").write_text(json.dumps(measured, indent=2) + "\n")
    draw(measured).savefig("docs/figures/invariance.png", dpi=150)
    for name, r in measured.items():
        for kind in ("variance_error", "acf_error"):
            print(f"{name:17s} {kind:14s} slope {slope(r, kind):.2f}  {np.round(r[kind], 5)} at steps {r['step']}")
