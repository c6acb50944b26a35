"""Time to accuracy: what it costs to simulate one unit of time with variances, or autocorrelations, right to 1 %.

Wells, exact score: the errors of each stepper at each step are known without sampling (`benchmarks.invariance`), and
the largest step with 1 % is read off.

Kuramoto-Sivashinsky, the model of the demonstration: the Fourier modes against those of the same model at a small step,
by the relative error of their variances and the error of their autocorrelations (one at lag 0) at lags up to `LONGEST`.
What counts is the largest among those that the sample knows well enough (the fast modes, which is where a long step
does harm). From a first guess the step is made longer or shorter until 1 % lies between two steps, or the next one is
unstable. The cost is the time of a step over its length.

The same model is also stepped with half and with whole digits: densities and covariance must not differ by more than
twice as much as those of two runs with whole digits do.
"""

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

import effective_langevin as el
from effective_langevin.cli.demo import choose_demo
from effective_langevin.model.simulation import standard_equation
from effective_langevin.simulate import integrate
from effective_langevin.statistics import distances

from .harness import Report, Result, compare
from .models import Parts, ring_model

FLOW = "Kuramoto-Sivashinsky, U-Net"
WANTED = 0.01
KNOWN = {"variances": 0.0035, "autocorrelations": 0.002}
NEXT = 1.5
TRIES = 4
SAVED, LONGEST = 0.25, 2.0
# First guesses in units of one over the stiffness.
GUESSES = {
    "variances": {"EulerMaruyama": 0.05, "ExponentialEuler": 0.2, "StochasticHeun": 0.4, "LeimkuhlerMatthews": 1.5},
    "autocorrelations": {
        "EulerMaruyama": 0.4,
        "ExponentialEuler": 0.4,
        "StochasticHeun": 0.7,
        "LeimkuhlerMatthews": 0.4,
    },
}


def run(quick: bool) -> Report:
    report = Report()
    wells(report)
    if jax.default_backend() == "cpu" and not quick:
        print("  Kuramoto-Sivashinsky: for a GPU only; on a CPU one step size takes minutes for one mode", flush=True)
        return report
    members, duration = (16, 4.0) if quick else (16384, 40.0)
    model = ring_model(8_000, 1, 2640) if quick else demonstration()
    digits(report, model, members, duration)
    for what, steps in ring_steps(report, model, members, duration).items():
        price(report, f"{FLOW}, {what}", Parts(model), steps, members)
    priced = [r for r in report.results if r.case == f"{FLOW}, variances" and r.ratio]
    best = min(priced, key=lambda r: r.ratio, default=None)
    if best is not None and not quick:
        gain = 1 / best.ratio
        claim = f"time to 1 % in variances on KS, {best.contender} against Euler-Maruyama"
        report.promise(claim, ">= 5 x less", f"{gain:.1f} x", gain >= 5)
    return report


def demonstration() -> el.LangevinModel:
    """The model of `effective-langevin demo kuramoto-sivashinsky`."""
    demo = choose_demo("kuramoto-sivashinsky")
    return el.fit(demo.series(0), score=demo.score, symmetry=demo.symmetry, seed=1)


def wells(report: Report) -> None:
    """From the errors that `benchmarks.invariance` has written."""
    known = Path(__file__).parent / "results" / "invariance.json"
    if not known.exists():
        print("  wells: run `python -m benchmarks.invariance` first", flush=True)
        return
    measured = json.loads(known.read_text())
    drifts = {"EulerMaruyama": 1, "ExponentialEuler": 1, "StochasticHeun": 2}
    for what, kind in (("variances", "variance_error"), ("autocorrelations", "acf_error")):
        costs = {}
        for name, found in measured.items():
            errors = np.abs(found[kind])
            step = float(np.exp(np.interp(np.log(WANTED), np.log(errors[::-1]), np.log(found["step"][::-1]))))
            costs[name] = drifts[name] / step
            ratio, said = costs[name] / costs["EulerMaruyama"], f"1 % at step {step:.4f}"
            result = Result(f"wells, exact score, {what}", name, accuracy=said, ratio=ratio, ratio_fastest=ratio)
            result.note = f"{costs[name]:.0f} drift evaluations per unit of time; over Euler-Maruyama"
            report.results.append(result)


def digits(report: Report, model: el.LangevinModel, members: int, duration: float) -> None:
    """The steady state with half the digits against whole ones, and runs with whole digits against each other."""
    half = standard_equation(model, members)
    whole = eqx.tree_at(lambda e: e.drift.score, half, model.score.function.lower())
    step, stepper = model.automatic_step(), model.default_stepper
    equations = {"whole": whole, "whole, again": whole, "whole, a third time": whole, "half": half}
    runs = [
        simulated(model, stepper.advance(equation, step), step, members, duration, seed).reshape(-1, model.dimension)
        for seed, equation in enumerate(equations.values())
    ]
    edges = np.linspace(*np.quantile(runs[0][::100], [0.0005, 0.9995]), 201)
    counts, covariances = zip(*((np.histogram(x, edges)[0][None], np.cov(x.T)) for x in runs))
    kl = [float(distances.pdf_kl(counts[0], other)[0]) for other in counts]
    apart = [distances.matrix_error(other, covariances[0]) for other in covariances]
    for name, density, covariance in list(zip(equations, kl, apart))[1:]:
        said = f"pdf_kl {density:.1e}, covariance_error {covariance:.4f}"
        report.results.append(Result(f"{FLOW}, digits, against a run with whole ones", name, accuracy=said))
        print(f"  KS digits {name}: {said}", flush=True)
    for name, (_, *same, other) in (("pdf_kl", kl), ("covariance_error", apart)):
        wanted = 2 * float(np.mean(same))
        report.promise(
            f"{name} of half the digits", f"<= {wanted:.2g}, twice its noise", f"{other:.2g}", other <= wanted
        )


def ring_steps(report: Report, model: el.LangevinModel, members: int, duration: float) -> dict[str, dict[str, float]]:
    """The step of each stepper at which the modes' variances, and their autocorrelations, are off by 1 %."""
    unit, steps = 1 / model.stiffness(), {}
    exact = statistics(model, el.StochasticHeun(), saved_evenly(0.1 * unit), members, duration)

    @cache
    def errors(name: str, step: float) -> dict[str, float]:
        """Of the worst mode that is known well enough, NaN if there is none; infinite if the stepper is unstable."""
        here = statistics(model, getattr(el, name)(), step, members, duration)
        worst = {}
        for what, limit in KNOWN.items():
            (value, noise), (truth, spread) = here[what], exact[what]
            scale = truth if what == "variances" else 1.0
            known = np.hypot(noise, spread) / scale <= limit
            off = float((np.abs(value - truth) / scale)[known].max(initial=0.0)) if known.any() else np.nan
            worst[what] = off if np.all(np.isfinite(value)) else np.inf
            seen = f"{known.sum()} {what} are known to {100 * limit:.2g} %, they are off by up to {100 * off:.2f} %"
            print(f"  KS {name} step {step:.4f}: {seen}", flush=True)
        return worst

    def error(what: str, name: str, step: float) -> float:
        return errors(name, step)[what]

    for what, guesses in GUESSES.items():
        steps[what] = {}
        for name, guess in guesses.items():
            step = longest_step(partial(error, what, name), saved_evenly(guess * unit), saved_evenly)
            if step is None:
                note = "off by more than 1 % at every step tried, or unknown"
                report.results.append(Result(f"{FLOW}, {what}", name, note=note))
            else:
                steps[what][name] = step
    well, later = steps.values()
    return steps | {"both": {name: min(well[name], later[name]) for name in well if name in later}}


def saved_evenly(step: float) -> float:
    """The nearest step of which a whole number fits between two saved states."""
    return SAVED / max(1, round(SAVED / step))


def longest_step(
    error: Callable[[float], float], step: float, allowed: Callable[[float], float] = float
) -> float | None:
    """Where the error is 1 %, between a step that is good enough and the next one that is not."""
    here = error(step)
    good = here <= WANTED
    for _ in range(0 if np.isnan(here) else TRIES):
        other = allowed(step * NEXT if good else step / NEXT)
        there = error(other)
        if (there <= WANTED) != good:
            (below, small), (above, large) = sorted([(step, here), (other, there)])
            if not np.isfinite(large):
                return below
            return float(np.exp(np.interp(np.log(WANTED), np.log([small, large]), np.log([below, above]))))
        step, here = other, there
    return step if good else None


def statistics(model, stepper: Any, step: float, members: int, duration: float, groups: int = 8) -> dict[str, Any]:
    """Variances (mode) and autocorrelations (lag, mode) of the Fourier modes, with standard errors from groups."""
    states = simulated(model, stepper.advance(standard_equation(model, members), step), step, members, duration)
    modes = np.fft.rfft(states, axis=-1)[..., 1:]

    def of(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        variance = np.mean(np.abs(part) ** 2, axis=(0, 1))
        lags = range(1, min(round(LONGEST / SAVED), part.shape[1] - 1) + 1)
        return variance, np.array(
            [np.mean((part[:, n:] * part[:, :-n].conj()).real, axis=(0, 1)) for n in lags]
        ) / variance

    values = zip(*map(of, np.array_split(modes, groups)))
    return {
        what: (np.mean(v, axis=0), np.std(v, axis=0, ddof=1) / np.sqrt(groups))
        for what, v in zip(("variances", "autocorrelations"), values)
    }


def simulated(model, advance: Any, step: float, members: int, duration: float, seed: int = 7) -> np.ndarray:
    """Standardised states, (member, time, var), `SAVED` apart if the step divides it; the first quarter is left out."""
    every = max(1, round(SAVED / step))
    frames = max(8, round(duration / (every * step)))
    start, options = Parts(model).initial(members), {"frames": frames, "save_every": every, "bound": 1e3}
    return integrate(advance, start, step=step, key=jax.random.key(seed), **options).paths[:, frames // 4 :]


def price(report: Report, case: str, parts: Parts, steps: dict[str, float], members: int) -> None:
    """Seconds per member and unit of time at the steps found, over those of Euler-Maruyama."""

    def contender(name: str):
        advance = getattr(el, name)().advance(standard_equation(parts.model, members), steps[name])
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
