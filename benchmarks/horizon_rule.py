"""How to choose among the combinations of horizons: by errors from leaving out blocks, or by cross-validation.

    python -m benchmarks.horizon_rule

On series whose mobility is known exactly: wells with a learned and with the exact score at four intervals, and rotating
Ornstein-Uhlenbeck processes of 4000 samples. Both rules see the same candidates; `possible` is the best of them, known
only here. Writes benchmarks/results/horizon_rule.json.
"""

import json
from pathlib import Path

import numpy as np

import effective_langevin as el
from effective_langevin.estimate.mobility.horizon_selection import candidate_weights, held_out_error, quadrature_error
from effective_langevin.estimate.mobility.response import Combined
from effective_langevin.estimate.mobility.responses import Moments
from effective_langevin.estimate.symmetry import NoSymmetry
from effective_langevin.statistics.distances import matrix_error
from effective_langevin.statistics.integral_time import error_groups, integral_times

STRIDES, SEEDS, PROCESSES = (1, 5, 10, 20), (1, 2, 7), 12
CIRCULATING = np.array([[1.0, -2.0], [2.0, 1.0]])
RESULTS = Path(__file__).parent / "results" / "horizon_rule.json"


def errors(series: el.TimeSeries, scores: list[np.ndarray], exact: np.ndarray) -> dict[str, float]:
    """Error of Phi by each rule, and that of the best candidate."""
    times = integral_times(series.segments, series.dt)
    lags = el.IntegratedResponse()._lags(series, times, False)
    moments = Moments.of(series, scores, lags, error_groups(series.segments, series.dt, times), True).with_rates(
        series, scores
    )
    found = Combined.of(moments, NoSymmetry(), 0)
    candidates = [weights for _, weights in candidate_weights(moments.tau[0] + moments.tau[1:])]

    def by_horizon(weights):
        return moments.phi_by_horizon(weights, NoSymmetry(), 0)

    apart = held_out_error(by_horizon, moments.groups, candidates, candidates[-1])
    coarse = moments.phi_by_horizon(np.ones(moments.groups), NoSymmetry(), 0, 2)
    signed = quadrature_error(found.by_horizon, coarse)
    rated = [a**2 + np.sum(np.tensordot(w, signed, 1) ** 2) for a, w in zip(apart, candidates)]
    off = [matrix_error(np.tensordot(w, found.by_horizon, 1), exact) for w in candidates]
    chosen = next(i for i, w in enumerate(candidates) if np.array_equal(w, found.combination.weights))
    return {
        "blocks left out": off[chosen],
        "cross-validation": off[int(np.argmin(rated))],
        "possible": min(off),
        "held out, over expected": apart[chosen] / found.combination.expected_held_out,
    }


def wells(seed: int) -> dict[str, dict[str, float]]:
    """Thinned wells, 1e6 samples at 0.01, with the score learned at the interval and with the exact one."""
    system = el.systems.AsymmetricWells()
    fine, found = system.simulate(100.0, dt=0.01, members=100, seed=seed), {}
    for stride in STRIDES:
        series = fine.thin(stride)
        model = el.fit(series, score=el.KGMM(noise_level=0.05), seed=seed)
        standard, exact = (
            series.map(model.standardizer.to_standard),
            model.standardizer.mobility_to_standard(system.mobility),
        )
        ends = np.cumsum([len(s) for s in series.segments])[:-1]
        for name, scores in (
            ("learned", np.split(model.score.function.over(standard.stacked().astype(np.float32)), ends)),
            ("exact", [system.score_function(s) * model.standardizer.std for s in series.segments]),
        ):
            found[f"wells, {name} score, dt = {stride * 0.01:g}, seed {seed}"] = errors(standard, scores, exact)
    return found


def rotating(seed: int) -> dict[str, dict[str, float]]:
    """An Ornstein-Uhlenbeck process that turns, at half and at a tenth of its relaxation time."""
    dt = 0.5 if seed < PROCESSES // 2 else 0.1
    system = el.systems.OrnsteinUhlenbeck(CIRCULATING, np.eye(2))
    values = system.simulate(4000 * dt, dt=dt, members=1, seed=seed).values
    values = values - values.mean(axis=0)
    scores = [-values @ np.linalg.inv(np.cov(values.T))]
    return {f"rotating, dt = {dt}, seed {seed}": errors(el.TimeSeries(values, dt), scores, system.mobility)}


def main() -> None:
    found = {}
    for case in (*(wells(seed) for seed in SEEDS), *(rotating(seed) for seed in range(PROCESSES))):
        for name, errors in case.items():
            print(name, {key: round(value, 4) for key, value in errors.items()}, flush=True)
        found |= case
    typical = {
        key: float(np.exp(np.mean(np.log([e[key] for e in found.values()])))) for key in next(iter(found.values()))
    }
    print("geometric mean", {key: round(value, 4) for key, value in typical.items()})
    RESULTS.write_text(json.dumps({"geometric mean": typical, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
