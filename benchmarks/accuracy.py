"""Time to accuracy: what it costs to simulate one unit of time with variances that are right to 1 %.

Wells, exact score: the error of each stepper at each step is known without sampling (`benchmarks.invariance`), and the
largest step with 1 % is read off. Kuramoto-Sivashinsky, the model of the demonstration: variances of the Fourier modes
against those of the same model at a small step; the error is the largest relative difference among the modes whose
variances the sample knows well enough (the fast ones, which is where a long step does harm). From a first guess the
step is made longer or shorter until 1 % lies between two steps, or the next one is unstable. The cost is the time of a
step over its length. The same model is also stepped with half and with whole digits: densities and covariance must not
differ by more than those of two runs with whole digits do.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

import effective_langevin as el
from effective_langevin.demo import chosen
from effective_langevin.simulate import integrate
from effective_langevin.validate import distances

from .harness import Report, Result, compare
from .models import Parts, ring_model

FLOW = "Kuramoto-Sivashinsky, U-Net"
WANTED = 0.01
KNOWN = 0.005
NEXT = 1.5
TRIES = 4
# First guesses in units of one over the stiffness.
GUESSES = {"EulerMaruyama": 0.05, "ExponentialEuler": 0.05, "StochasticHeun": 0.5, "LeimkuhlerMatthews": 1.0}


def run(quick: bool) -> Report:
    report = Report()
    wells(report)
    if jax.default_backend() == "cpu" and not quick:
        print("  Kuramoto-Sivashinsky: for a GPU only; on a CPU one step size takes minutes for one mode", flush=True)
        return report
    members, duration = (16, 4.0) if quick else (8192, 40.0)
    model = ring_model(8_000, 1, 2640) if quick else demonstration()
    digits(report, model, members, duration)
    price(report, FLOW, Parts(model), ring_steps(report, model, members, duration), members)
    best = min((r for r in report.results if r.case == FLOW and r.ratio), key=lambda r: r.ratio, default=None)
    if best is not None and not quick:
        gain = 1 / best.ratio
        claim = f"time to 1 % in variances on KS, {best.contender} against Euler-Maruyama"
        report.promise(claim, ">= 5 x less", f"{gain:.1f} x", gain >= 5)
    return report


def demonstration() -> el.LangevinModel:
    """The model of `effective-langevin demo kuramoto-sivashinsky`."""
    demo = chosen("kuramoto-sivashinsky")
    return el.fit(demo.series(0), score=demo.score, symmetry=demo.symmetry, seed=1)


def wells(report: Report) -> None:
    """From the errors that `benchmarks.invariance` has written."""
    known = Path(__file__).parent / "results" / "invariance.json"
    if not known.exists():
        print("  wells: run `python -m benchmarks.invariance` first", flush=True)
        return
    steps = {}
    for name, found in json.loads(known.read_text()).items():
        errors = np.abs(found["variance_error"])
        steps[name] = float(np.exp(np.interp(np.log(WANTED), np.log(errors[::-1]), np.log(found["step"][::-1]))))
    drifts = {"EulerMaruyama": 1, "ExponentialEuler": 1, "StochasticHeun": 2}
    base = drifts["EulerMaruyama"] / steps["EulerMaruyama"]
    for name, step in steps.items():
        cost = drifts[name] / step
        result = Result("wells, exact score", name, accuracy=f"1 % at step {step:.4f}", ratio=cost / base)
        result.ratio_fastest, result.note = (
            result.ratio,
            f"{cost:.0f} drift evaluations per unit of time; over Euler-Maruyama",
        )
        report.results.append(result)


def digits(report: Report, model: el.LangevinModel, members: int, duration: float) -> None:
    """The steady state with half the digits against whole ones, and runs with whole digits against each other."""
    half = model._equation(members)
    whole = eqx.tree_at(lambda e: e.drift.score, half, model.score.function.flat())
    step, stepper = model.automatic_step(), model.default_stepper
    equations = {"whole": whole, "whole, again": whole, "whole, a third time": whole, "half": half}
    runs = [
        simulated(model, stepper.advance(equation, step), step, members, duration, seed).reshape(-1, model.dimension)
        for seed, equation in enumerate(equations.values())
    ]
    edges = np.linspace(*np.quantile(runs[0][::100], [0.0005, 0.9995]), 201)
    counts, covariances = zip(*((np.histogram(x, edges)[0][None], np.cov(x.T)) for x in runs))
    kl = [float(distances.pdf_kl(counts[0], other)[0]) for other in counts]
    apart = [distances.covariance_error(other, covariances[0]) for other in covariances]
    for name, density, covariance in list(zip(equations, kl, apart))[1:]:
        said = f"pdf_kl {density:.1e}, covariance_error {covariance:.4f}"
        report.results.append(Result(f"{FLOW}, digits, against a run with whole ones", name, accuracy=said))
        print(f"  KS digits {name}: {said}", flush=True)
    for name, (_, *same, other) in (("pdf_kl", kl), ("covariance_error", apart)):
        wanted = 2 * float(np.mean(same))
        report.promise(
            f"{name} of half the digits", f"<= {wanted:.2g}, twice its noise", f"{other:.2g}", other <= wanted
        )


def ring_steps(report: Report, model: el.LangevinModel, members: int, duration: float) -> dict[str, float]:
    """The step of each stepper at which the modes' variances are off by 1 %."""
    unit, found = 1 / model.stiffness(), {}
    exact, spread = variances(model, el.LeimkuhlerMatthews(), 0.15 * unit, members, duration)

    def error(name: str, step: float) -> float:
        """Of the worst mode that is known well enough, NaN if there is none; infinite if the stepper is unstable."""
        here, noise = variances(model, getattr(el, name)(), step, members, duration)
        known = np.sqrt(spread**2 + noise**2) / exact <= KNOWN
        worst = float(np.abs(here / exact - 1)[known].max(initial=0.0)) if known.any() else np.nan
        worst = worst if np.all(np.isfinite(here)) else np.inf
        seen = f"{known.sum()} modes are known to {100 * KNOWN} %, their variances off by up to {100 * worst:.2f} %"
        print(f"  KS {name} step {step:.4f}: {seen}", flush=True)
        return worst

    for name, guess in GUESSES.items():
        step = longest_step(partial(error, name), guess * unit)
        if step is None:
            report.results.append(Result(FLOW, name, note="off by more than 1 % at every step tried, or unknown"))
        else:
            found[name] = step
    return found


def longest_step(error: Callable[[float], float], step: float) -> float | None:
    """Where the error is 1 %, between a step that is good enough and the next one that is not."""
    here = error(step)
    good = here <= WANTED
    for _ in range(0 if np.isnan(here) else TRIES):
        other = step * NEXT if good else step / NEXT
        there = error(other)
        if (there <= WANTED) != good:
            (below, small), (above, large) = sorted([(step, here), (other, there)])
            if not np.isfinite(large):
                return below
            return float(np.exp(np.interp(np.log(WANTED), np.log([small, large]), np.log([below, above]))))
        step, here = other, there
    return step if good else None


def variances(model: el.LangevinModel, stepper: Any, step: float, members: int, duration: float, groups: int = 8):
    """Variance of each Fourier mode of the simulated states, with its standard error over groups of members."""
    states = simulated(model, stepper.advance(model._equation(members), step), step, members, duration)
    power = np.abs(np.fft.rfft(states, axis=-1)) ** 2
    by_group = np.array([part.mean(axis=(0, 1)) for part in np.array_split(power, groups)])[:, 1:]
    return by_group.mean(axis=0), by_group.std(axis=0, ddof=1) / np.sqrt(groups)


def simulated(model, advance: Any, step: float, members: int, duration: float, seed: int = 7) -> np.ndarray:
    """Standardised states, (member, time, var), about four in a unit of time; the first quarter is left out."""
    every = max(1, round(0.25 / step))
    frames = max(8, round(duration / (every * step)))
    start, options = Parts(model).initial(members), {"frames": frames, "save_every": every, "bound": 1e3}
    return integrate(advance, start, step=step, key=jax.random.key(seed), **options).paths[:, frames // 4 :]


def price(report: Report, case: str, parts: Parts, steps: dict[str, float], members: int) -> None:
    """Seconds per member and unit of time at the steps found, over those of Euler-Maruyama."""

    def contender(name: str):
        advance = getattr(el, name)().advance(parts.model._equation(members), steps[name])
        start, options = parts.initial(members), {"frames": 1, "save_every": 10, "key": jax.random.key(0)}
        return lambda: integrate(advance, start, step=steps[name], **options)

    timings = compare(case, {name: contender(name) for name in steps}, work=10 * members, per="unit of time and member")
    base = next((r.seconds / steps[r.contender] for r in timings if r.contender == "EulerMaruyama" and r.seconds), None)
    for result in timings:
        result.seconds, result.fastest = (t / steps[result.contender] for t in (result.seconds, result.fastest))
        result.accuracy = f"1 % at step {steps[result.contender]:.4f}"
        if base:
            result.ratio = result.ratio_fastest = result.seconds / base
            result.note = "ratio is over Euler-Maruyama"
    report.results += timings
