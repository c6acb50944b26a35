"""Hindcasts of measured series: `python -m benchmarks.hindcasts DATA [NAME ...]`.

Each series is learned from its first 70 % and forecast over the rest, against climatology, persistence and a linear
inverse model of the same variables (with the same memory and without the same season). What is found goes to
`benchmarks/results/hindcasts.json`. DATA is the folder of the series, which are not part of this package.
"""

import json
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el
from effective_langevin.execution.compilation import keep_compiled_programs

RESULTS = Path(__file__).parent / "results" / "hindcasts.json"
HELD_OUT = 0.3
DELAY, SEASON = el.preprocess.DelayEmbedding([1]), el.preprocess.RemoveSeasonalCycle(12)
MEMORY, AUTO = {"memory": "delays:1"}, {"memory": "auto"}


@dataclass(frozen=True)
class Case:
    """A file, its variables, what is done to it, how it is learned, and how far it is forecast."""

    file: str
    leads: tuple[float, ...]
    variables: list[str] | None = None
    preprocess: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    members: int = 999


_DAYS, _MONTHS = (1, 2, 3, 5, 10, 20, 30), (1, 2, 3, 6, 9, 12)
_ENSO: dict[str, Any] = {"leads": _MONTHS, "variables": ["Nino34", "WWV"]}
CASES = {
    "NAO, no memory": Case("nao_daily.npz", _DAYS, members=99),
    "NAO, delay": Case("nao_daily.npz", _DAYS, preprocess=DELAY, members=99),
    "NAO": Case("nao_daily.npz", _DAYS, options=MEMORY, members=99),
    "NAO, chosen memory": Case("nao_daily.npz", _DAYS, options=AUTO, members=99),
    "ENSO, delay": Case("enso_xro.npz", preprocess=[SEASON, DELAY], **_ENSO),
    "ENSO": Case("enso_xro.npz", preprocess=SEASON, options=MEMORY, **_ENSO),
    "ENSO, chosen memory": Case("enso_xro.npz", preprocess=SEASON, options=AUTO, **_ENSO),
}


def learn(series: el.TimeSeries, case: Case) -> el.LangevinModel:
    """Learn a model from the first part of a series."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return el.fit(
            series.split(HELD_OUT, blocks=1)[0], preprocess=case.preprocess, seed=1, check="off", **case.options
        )


def score(model: el.LangevinModel, series: el.TimeSeries, case: Case) -> dict[str, Any]:
    """Return the scores of all ways to forecast, by lead; several variables are pooled in units of their spread."""
    train, test = series.split(HELD_OUT, blocks=1)
    found = el.hindcast(model, test, case.leads, train=train, members=case.members, seed=2)
    ratios = {way: found.ratio(way) for way in ("linear", "climatology", "persistence")}
    choice = model.mobility.evidence.choice
    linear = ratios["linear"]
    return {
        "model": repr(model),
        "closure": choice.kind if choice else "given",
        "starts": found.starts,
        "leads": found.leads.tolist(),
        "rmse": {way: found.pooled(way, "rmse").round(4).tolist() for way in found.scores},
        "crps": {way: found.pooled(way, "crps").round(4).tolist() for way in found.scores},
        "spread_over_rmse": (found.pooled("model", "spread") / found.pooled("model", "rmse")).round(4).tolist(),
        "coverage": found.scores["model"].coverage.T.round(4).tolist(),
        "coverage_pooled": found.pooled("model", "coverage").round(4).tolist(),
        "ranks": found.scores["model"].ranks.mean(axis=(1, 2)).round(4).tolist(),
        **{
            f"crps_over_{way}": {
                name: getattr(ratio, name).round(4).tolist() for name in ("value", "standard_error", "low", "high")
            }
            for way, ratio in ratios.items()
        },
        "never_worse_than_linear_by_a_standard_error": bool((linear.value - 1 <= linear.standard_error).all()),
        "bands_of_90_hold_85_to_95": bool((np.abs(found.pooled("model", "coverage") - 0.9) <= 0.05).all()),
    }


def main(folder: str, names: list[str]) -> None:
    """Measure the series named, or all, and keep what was measured before."""
    keep_compiled_programs()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or CASES:
        case = CASES[name]
        series = el.read(Path(folder) / case.file, variables=case.variables)
        results[name] = score(learn(series, case), series, case)
        print(name, json.dumps(results[name]), flush=True)
        RESULTS.write_text(json.dumps({case: results[case] for case in CASES if case in results}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
