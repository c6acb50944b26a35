"""Time to accuracy: what it costs to simulate one unit of time with variances that are right to 1 %.

Wells, exact score: the error of each stepper at each step is known without sampling (`benchmarks.invariance`), and the
largest step with 1 % is read off. Kuramoto-Sivashinsky, U-Net score: variances of the Fourier modes against those of
the same model at a small step; the error is the largest relative difference among the modes whose variances the sample
knows well enough (the fast ones, which is where a long step does harm). A law c h (Euler-Maruyama, exponential Euler)
or c h^2 (Heun, Leimkuhler-Matthews) through the measured errors gives the step for 1 %; where no mode is known well
enough, nothing is concluded. The cost is the time of a step over its length.
"""

import json
from pathlib import Path

import jax
import numpy as np

from .harness import Report, Result, compare
from .models import Parts, ring_model

WANTED = 0.01
KNOWN = 0.005
ORDER = {"EulerMaruyama": 1, "ExponentialEuler": 1, "StochasticHeun": 2, "LeimkuhlerMatthews": 2}
SIZES = {
    "EulerMaruyama": (0.2, 0.1),
    "ExponentialEuler": (0.2, 0.1),
    "StochasticHeun": (0.5, 0.3),
    "LeimkuhlerMatthews": (1.0, 0.7),
}


def run(quick: bool) -> Report:
    report = Report()
    wells(report)
    if jax.default_backend() == "cpu" and not quick:
        print("  Kuramoto-Sivashinsky: for a GPU only; no variance would be known well enough in an hour", flush=True)
        return report
    members, duration = (16, 4.0) if quick else (8192, 200.0)
    model = ring_model(8_000, 1, 2640) if quick else ring_model(40_000, 6, 31_680)
    price(report, "Kuramoto-Sivashinsky, U-Net", Parts(model), ring_steps(report, model, members, duration), members)
    best = min(
        (r for r in report.results if r.case.startswith("Kuramoto") and r.ratio), key=lambda r: r.ratio, default=None
    )
    if best is not None and not quick:
        gain = 1 / best.ratio
        claim = f"time to 1 % in variances on KS, {best.contender} against Euler-Maruyama"
        report.promise(claim, ">= 5 x less", f"{gain:.1f} x", gain >= 5)
    return report


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


def ring_steps(report: Report, model, members: int, duration: float) -> dict[str, float]:
    """The step of each stepper at which the modes' variances are off by 1 %."""
    import effective_langevin as el

    stiffness = model.stiffness()
    exact, spread = variances(model, el.LeimkuhlerMatthews(), 0.15 / stiffness, members, duration)
    found = {}
    for name, sizes in SIZES.items():
        errors, used = [], []
        for size in sizes:
            here, noise = variances(model, getattr(el, name)(), size / stiffness, members, duration)
            if not np.all(np.isfinite(here)):
                continue
            sampling = np.sqrt(spread**2 + noise**2) / exact
            known = sampling <= KNOWN
            if not known.any():
                print(f"  KS {name}: no variance is known to {100 * KNOWN} %; simulate longer", flush=True)
                continue
            errors.append(float(np.abs(here / exact - 1)[known].max()))
            used.append(size / stiffness)
            print(
                f"  KS {name} step {used[-1]:.4f}: variances of {known.sum()} modes off by up to "
                f"{100 * errors[-1]:.2f} %, known to {100 * sampling[known].max():.2f} %",
                flush=True,
            )
        if not used:
            report.results.append(
                Result(
                    "Kuramoto-Sivashinsky, U-Net",
                    name,
                    note="unstable at the steps tried, or the sample is too small to tell",
                )
            )
            continue
        powers = np.array(used) ** ORDER[name]
        slope = np.dot(powers, errors) / np.dot(powers, powers)
        # Beyond the largest step tried nothing was seen, so nothing is claimed there.
        found[name] = float(min((WANTED / slope) ** (1 / ORDER[name]), max(used)))
    return found


def variances(model, stepper, step: float, members: int, duration: float, groups: int = 8):
    """Variance of each Fourier mode of the simulated states, with its standard error over groups of members."""
    from effective_langevin.simulate import integrate

    parts = Parts(model)
    every = max(1, round(0.25 / step))
    frames = max(8, round(duration / (every * step)))
    run = integrate(
        stepper.advance(model._equation(members), step),
        parts.initial(members),
        frames=frames,
        save_every=every,
        step=step,
        key=jax.random.key(7),
        bound=1e3,
    )
    power = np.abs(np.fft.rfft(run.paths[:, frames // 4 :], axis=-1)) ** 2
    by_group = np.array([part.mean(axis=(0, 1)) for part in np.array_split(power, groups)])[:, 1:]
    return by_group.mean(axis=0), by_group.std(axis=0, ddof=1) / np.sqrt(groups)


def price(report: Report, case: str, parts: Parts, steps: dict[str, float], members: int) -> None:
    """Seconds per member and unit of time at the steps found, over those of Euler-Maruyama."""
    import effective_langevin as el
    from effective_langevin.simulate import integrate

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
