"""Figures of low-dimensional systems: `python -m examples.paper wells` (or scalar, lorenz63, affine_noise).

For one series, the published recipe, a constant mobility and a closure that depends on the state side by side: PDFs,
ACFs and, where the configuration has a `path_step`, trajectories driven by the noise of the original system. Writes
figure.png, metrics.json and the tables of README.md into the folder.
"""

import argparse
import json
import tomllib
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import effective_langevin as el
from docs.generated import short, with_error
from effective_langevin._core import progress
from effective_langevin.systems import FokkerPlanck
from effective_langevin.validate.validation import METRICS

PUBLISHED, CONSTANT, FIELD = "published", "constant", "state-dependent"
COLOURS = {"observed": "#1f4e9c", FIELD: "#d1495b", CONSTANT: "#2a9d8f", PUBLISHED: "#8a8a8a"}


def fit_all(series: el.TimeSeries, config: dict) -> dict[str, el.LangevinModel]:
    """The published recipe and ours, with the paper's settings of the score in all."""
    kgmm = {"noise_level": config["noise_level"], "cells": config["cells"], "hidden": tuple(config["hidden"])}
    published = el.fit(
        series,
        score=el.KGMM(**kgmm, calibrate=False),
        mobility=el.FiniteVolume(cells=config["cells"]),
        seed=config["seed"],
    )
    ours = {CONSTANT: el.IntegratedResponse(), FIELD: el.StateDependent()}
    return {
        PUBLISHED: published,
        **{name: el.fit(series, score=el.KGMM(**kgmm), mobility=m, seed=config["seed"]) for name, m in ours.items()},
    }


def same_noise_paths(system, models: dict[str, el.LangevinModel], config: dict, members: int = 64):
    """Paths of the system and of the models, all driven by the Brownian increments of the system.

    Noise that depends on the state enters the model as the unit-variance increment along its direction there.
    """
    step, duration = config["path_step"], config["path_duration"]
    start = system.simulate(1.0, dt=1.0, members=members, seed=config["seed"] + 5).values[:, -1]
    truth, noise = system.simulate_with_noise(
        duration, dt=step, members=members, seed=config["seed"] + 6, step=step, initial=start
    )
    factor = system.noise_factor(truth.values[:, :-1])
    if factor.shape[-1] != system.dimension:
        noise = (factor @ noise[..., None])[..., 0] / np.linalg.norm(factor, axis=-1)
    paths = {
        name: m.simulate(duration, members=members, dt=step, step=step, initial=start, noise=noise)
        for name, m in models.items()
    }
    return truth, paths


def path_correlation(truth: el.TimeSeries, path: el.TimeSeries, duration: float = 5.0) -> float:
    """Median over members of the correlation with the true path over the first time units."""
    steps = round(duration / truth.dt)
    a, b = (s.values[:, :steps] - s.values[:, :steps].mean(axis=1, keepdims=True) for s in (truth, path))
    return float(np.median(np.sum(a * b, (1, 2)) / np.sqrt(np.sum(a**2, (1, 2)) * np.sum(b**2, (1, 2)))))


def draw(truth, paths, validations) -> Figure:
    """The paper's three rows, trajectories, PDFs and ACFs; without `paths` the last two."""
    first = next(iter(validations.values()))
    data = first.data_statistics
    size = len(data.edges)
    figure = Figure(figsize=(6.2 * size, 9 if paths else 6), layout="constrained")
    axes = figure.subplots(3 if paths else 2, size, squeeze=False)[-2:]
    above = np.reshape(figure.axes, (-1, size))[0]
    everyone = np.ones(20)
    for i, name in enumerate(first.data.names):
        if paths:
            time = truth.dt * np.arange(truth.values.shape[1])
            above[i].plot(time, truth.values[0, :, i], color=COLOURS["observed"], label="observed", lw=2.2, zorder=2)
            above[i].set(xlabel="time", ylabel=name, title=f"{name}: same noise realisation")
        centres = 0.5 * (data.edges[i, 1:] + data.edges[i, :-1])
        axes[0, i].fill_between(centres, data.density()[i], color=COLOURS["observed"], alpha=0.25, label="observed")
        axes[1, i].plot(
            data.tau, data.acf(everyone)[:, i], color=COLOURS["observed"], lw=3, alpha=0.6, label="observed"
        )
        for label, validation in validations.items():
            style = {"color": COLOURS[label], "label": label, "ls": "--" if label == PUBLISHED else "-", "lw": 1.3}
            model = validation.model_statistics
            front = {"zorder": 1, "alpha": 0.6} if label == PUBLISHED else {"zorder": 3}
            if paths:
                above[i].plot(time, paths[label].values[0, :, i], **{**style, **front, "lw": 0.8})
            axes[0, i].plot(centres, model.density()[i], **style)
            axes[1, i].plot(model.tau, model.acf(everyone)[:, i], **style)
        axes[0, i].set(xlabel=name, ylabel="probability density", ylim=(0, None))
        axes[1, i].set(xlabel="lag (time)", ylabel="autocorrelation")
        axes[1, i].axhline(0, color="0.7", lw=0.8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def constant_closure(system, tau: np.ndarray) -> tuple[float, float]:
    """Exact ACF error and ratio of integral times of dx = <M> s dt + sqrt(2 <M>) dW for a scalar system."""
    phi = system.mobility
    limits, points = [(-0.24, 1.6)], 4001
    closure = FokkerPlanck.from_functions(
        lambda x: system.score_function(x) @ phi.T, lambda x: np.broadcast_to(phi, (len(x), 1, 1)), limits, points
    )
    truth = FokkerPlanck.from_system(system, limits, points)
    curves = (fp.correlation(tau[1] - tau[0], len(tau) - 1)[:, 0, 0] for fp in (truth, closure))
    exact, closed = (c / c[0] for c in curves)
    return float(np.sqrt(np.mean((exact - closed) ** 2))), float(np.trapezoid(closed, tau) / np.trapezoid(exact, tau))


def table(rows: dict[str, dict[str, float]]) -> str:
    """Metrics of all models ± standard error, and the same distance between two halves of the data."""
    first = next(iter(rows.values()))
    lines = ["| | " + " | ".join(rows) + " | two halves of the data |", "|---|" + "---|" * (len(rows) + 1)]
    for name in (n for n in (*METRICS, "path_correlation") if n in first):
        half = first.get(f"{name}_floor")
        cells = [with_error(row, name) for row in rows.values()] + ["" if half is None else short(half)]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(name: str) -> None:
    folder = Path(__file__).parent / name
    config = tomllib.loads((folder / "config.toml").read_text())
    system, members = el.systems.by_name(config["system"]), config["members"]
    with progress.shown():
        duration = config["samples"] / members * config["dt"]
        series = system.simulate(duration, dt=config["dt"], members=members, seed=config["seed"])
        models = fit_all(series, config)
        exact = system.mobility
        validations = {k: el.validate(m, series, seed=config["seed"], exact_mobility=exact) for k, m in models.items()}
        truth, paths = same_noise_paths(system, models, config) if "path_step" in config else (None, {})
    rows = {k: dict(v.metrics) for k, v in validations.items()}
    for k, path in paths.items():
        rows[k]["path_correlation"] = path_correlation(truth, path)
    extra = {}
    if system.dimension == 1:
        tau = np.arange(0, 5.0001, config["dt"])
        extra["constant_closure_acf_rmse_on_0_5"] = constant_closure(system, tau)[0]
        extra["constant_closure_integral_time_ratio"] = constant_closure(system, np.arange(0, 20.01, config["dt"]))[1]
        extra["constant_closure_acf_rmse"] = constant_closure(system, validations[CONSTANT].data_statistics.tau)[0]
        extra["standardised_mobility"] = models[CONSTANT].standardizer.mobility_to_standard(
            models[CONSTANT].mobility.matrix
        )[0, 0]
    draw(truth, paths, validations).savefig(folder / "figure.png", dpi=110)
    (folder / "metrics.json").write_text(json.dumps({**rows, **extra}, indent=2) + "\n")
    readme = folder / "README.md"
    parts = readme.read_text().split("<!-- measured -->")
    readme.write_text("<!-- measured -->".join([parts[0], "\n" + table(rows) + "\n", parts[2]]))
    print(table(rows), extra)


if __name__ == "__main__":
    names = sorted(config.parent.name for config in Path(__file__).parent.glob("*/config.toml"))
    parser = argparse.ArgumentParser(prog="python -m examples.paper", description=__doc__)
    parser.add_argument("name", choices=names)
    main(parser.parse_args().name)
