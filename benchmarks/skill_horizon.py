"""How far ahead chaos can be forecast: `python -m benchmarks.skill_horizon`.

Lorenz-63, with noise and without, is learned from a series. The mean of an ensemble of the model is then correlated
with what came, from states that the fit has not seen, beside ensembles of the exact equations, a linear inverse model
and persistence. The horizon is the lead at which the correlation falls below one half. What is found goes to
`benchmarks/results/skill_horizon.json` and `docs/figures/skill_horizon.png`.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import effective_langevin as el
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "skill_horizon.json"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "skill_horizon.png"
SYSTEMS = {"with noise": el.systems.StochasticLorenz63(), "without noise": el.systems.StochasticLorenz63(noise=0.0)}
DT, LONGEST, EVERY = 0.01, 8.0, 10
MEMBERS, STARTS, TRAINED, SPLITS = 16, 200, 200_000, 20
LEVEL = 0.5
BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
SCORE = el.KGMM(noise_level=0.05, steps=1000, max_draws=8)
SETTINGS = {"check": "off", "compare_estimators": False}
# Without noise, nearby paths separate e-fold in about one unit of time: what a state is known to decides the horizon.
UNKNOWN = 0.01  # of the standard deviation of each variable


def measure(system: Any) -> dict[str, Any]:
    """Return correlations of forecasts with outcomes by lead, mean over variables, and horizons with errors."""
    series = system.simulate(TRAINED / 40 * DT, dt=DT, members=40, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = el.fit(series, score=SCORE, mobility=el.StateDependent(), seed=0, **SETTINGS)
    truth = system.simulate(LONGEST, dt=DT, members=STARTS, seed=2)
    values = np.stack(truth.segments)
    steps = np.arange(EVERY, round(LONGEST / DT) + 1, EVERY)
    noise = UNKNOWN * values.std(axis=(0, 1)) * np.random.default_rng(3).normal(size=(MEMBERS, *values[:, 0].shape))
    seen = values[:, 0] + noise
    outcome, leads = values[:, steps], steps * DT
    means = {
        "model": _mean_of(model.simulate(LONGEST, initial=_stacked(seen), members=seen.size // 3, seed=4), steps),
        "exact equations": _mean_of(
            system.simulate(LONGEST, dt=DT, initial=_stacked(seen), members=seen.size // 3, seed=5), steps
        ),
        "linear inverse model": _linear(series, seen.mean(axis=0), steps),
        "persistence": np.repeat(seen.mean(axis=0)[:, None], len(steps), axis=1),
    }
    found = {way: _correlation(mean, outcome) for way, mean in means.items()}
    return {
        "model_fitted": repr(model),
        "leads": leads.round(6).tolist(),
        "correlation": {way: curve.round(4).tolist() for way, curve in found.items()},
        "horizon": {way: _horizon(mean, outcome, leads) for way, mean in means.items()},
    }


def _stacked(states: np.ndarray) -> np.ndarray:
    return states.reshape(-1, states.shape[-1])


def _mean_of(paths: el.TimeSeries, steps: np.ndarray) -> np.ndarray:
    """Return the mean over members (start, lead, var)."""
    values = np.stack(paths.segments)[:, steps]
    return values.reshape(MEMBERS, STARTS, *values.shape[1:]).mean(axis=0)


def _linear(series: el.TimeSeries, states: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return mean forecasts x' = G x with G = C(h) C(0)^-1."""
    centre = series.stacked().mean(axis=0)
    before, after = (
        np.concatenate([s[part] for s in series.segments]) - centre for part in (slice(-1), slice(1, None))
    )
    step = after.T @ before @ np.linalg.inv(before.T @ before)
    return np.stack([(states - centre) @ np.linalg.matrix_power(step, int(k)).T + centre for k in steps], axis=1)


def _correlation(mean: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Return the correlation over starts at each lead, mean over variables."""
    one, other = mean - mean.mean(axis=0), outcome - outcome.mean(axis=0)
    product = (one * other).sum(axis=0) / np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    return product.mean(axis=-1)


def _first_below(curve: np.ndarray, leads: np.ndarray) -> float:
    """Return the lead at which a curve first falls below the level, between two leads by a straight line."""
    below = np.flatnonzero(curve < LEVEL)
    if not len(below):
        return float(leads[-1])
    k = int(below[0])
    left, height = (0.0, 1.0) if k == 0 else (leads[k - 1], curve[k - 1])
    return float(left + (leads[k] - left) * (height - LEVEL) / (height - curve[k]))


def _horizon(mean: np.ndarray, outcome: np.ndarray, leads: np.ndarray) -> dict[str, float]:
    """Return the horizon with its standard error; starts are independent and are left out in groups."""
    parts = np.array_split(np.arange(len(mean)), SPLITS)
    others = [np.setdiff1d(np.arange(len(mean)), part) for part in parts]
    left = np.array([_first_below(_correlation(mean[rows], outcome[rows]), leads) for rows in others])
    error = np.sqrt((SPLITS - 1) * left.var())
    return {"value": round(_first_below(_correlation(mean, outcome), leads), 3), "standard_error": round(error, 3)}


def draw(results: dict[str, Any]) -> Figure:
    """Draw the correlations against the lead, one panel for each system."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    styles = {
        "exact equations": ("black", "-"),
        "model": ("#d95f02", "-"),
        "linear inverse model": ("#1b6ca8", "--"),
        "persistence": ("0.55", ":"),
    }
    axes = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for ax, (name, found) in zip(axes, results.items()):
        for way, (color, style) in styles.items():
            horizon = found["horizon"][way]
            label = f"{way}: {horizon['value']:.2f} ± {horizon['standard_error']:.2f}"
            ax.plot([0, *found["leads"]], [1, *found["correlation"][way]], style, color=color, label=label)
        ax.axhline(LEVEL, color="0.8", lw=0.8, zorder=0)
        ax.set(title=f"Lorenz-63 {name}", xlabel="lead (time)", xlim=(0, _shown(found)), ylim=(-0.3, 1.02))
        ax.legend(frameon=False, fontsize=8, title="horizon at correlation 0.5", title_fontsize=8, **BELOW)
    axes[0].set_ylabel("correlation with what came")
    return figure


def _shown(found: dict[str, Any]) -> float:
    """Return the longest lead of a panel: three horizons of the exact equations."""
    return min(3 * found["horizon"]["exact equations"]["value"], found["leads"][-1])


def main(names: list[str]) -> None:
    """Measure the systems named, or all, and draw the figure."""
    keep_compiled_programs()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or SYSTEMS:
        results[name] = measure(SYSTEMS[name])
        print(name, json.dumps(results[name]["horizon"]), flush=True)
        RESULTS.write_text(json.dumps({name: results[name] for name in SYSTEMS if name in results}, indent=1) + "\n")
    draw(results).savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
