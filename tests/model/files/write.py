"""Write the reference models and what they answer; run with the version whose files are to be kept readable.

    PYTHONPATH=path/to/old/src python write.py

The files here were written by commit 51134fe (format version 1). Series, networks and kept states are small on
purpose: what counts is that every kind of part a model can have is in a file.
"""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import effective_langevin as el

HERE = Path(__file__).parent
KGMM = el.KGMM(noise_level=0.2, cells=40, hidden=(6, 4), max_draws=4, steps=100)


def wells():
    return el.systems.AsymmetricWells().simulate(duration=100.0, dt=0.05, members=2, seed=1)


def linear(size: int):
    return el.systems.OrnsteinUhlenbeck.rotating(size).simulate(duration=150.0, dt=0.1, members=2, seed=3, step=0.05)


def fields():
    """Eight points on a ring, coupled to their neighbours, turning to the right."""
    roll = np.roll(np.eye(8), 1, axis=0)
    drift = 2.0 * np.eye(8) - 1.2 * roll - 0.3 * roll.T
    return el.systems.OrnsteinUhlenbeck(drift).simulate(duration=100.0, dt=0.1, members=2, seed=5, step=0.05)


def angles(columns: int):
    """Angles in degrees, the second one drawn along by the first, with a preferred direction."""
    rng, steps = np.random.default_rng(7), 2000
    path = np.zeros((steps, columns))
    for t in range(1, steps):
        force = 0.2 * np.sin(path[t - 1]) + 0.1 * np.cos(path[t - 1])
        path[t] = path[t - 1] - 0.5 * force + 0.3 * rng.normal(size=columns)
    return el.TimeSeries(np.degrees(path) % 360, 0.5, names=["phi", "psi"][:columns], units=["deg"] * columns)


def seasonal():
    """Two positive variables with a trend and a season, beginning at time 4."""
    noise = linear(2).values[:, :1200]
    time = 4 + 0.1 * np.arange(noise.shape[1])
    wave = np.stack([np.sin(2 * np.pi * time / 12), np.cos(2 * np.pi * time / 12)], axis=1)
    return el.TimeSeries(np.exp(0.2 * noise + 0.4 * wave + 0.002 * time[:, None]), 0.1, names=["T", "h"],
                         units=["K", "m"], time_unit="d", start=4.0)  # fmt: skip


def models():
    steps = [el.preprocess.Log(), el.preprocess.Detrend(), el.preprocess.RemoveSeasonalCycle(period=12.0)]
    unet = el.UNet1D(base=2, multipliers=(1, 2), kernel=3, normalization="batch")
    denoising = el.DenoisingScore(unet, noise_level=0.3, epochs=2, epoch_samples=1000, batch=200)
    mlp = el.DenoisingScore(el.MLP((6,)), noise_level=0.3, epochs=2, epoch_samples=1000, batch=200)
    kgmm = el.fit(wells(), score=KGMM, seed=1)
    gaussian = el.fit(linear(3), score=el.Gaussian(), mobility=el.LogCorrelation(), seed=2)
    periodic = el.preprocess.Periodic(period=360.0)
    return {
        "kgmm": kgmm,
        "kgmm-settled": kgmm.settled(5.0, members=64, rounds=2),
        "gaussian-settled": gaussian.settled(5.0, members=64, rounds=1),
        "extrapolated": el.fit(wells(), score=el.Extrapolated(KGMM), mobility=el.QuadraticVariation(), seed=3),
        "unet-translations": el.fit(fields(), score=denoising, symmetry=el.Translations(), seed=4),
        "gaussian-reflections": el.fit(fields(), score=el.Gaussian(), mobility=el.FiniteVolume(cells=20),
                                       symmetry=el.TranslationsAndReflections(), seed=4),
        "gaussian-preprocessed": el.fit(seasonal(), score=el.Gaussian(), mobility=el.LogCorrelation(),
                                        preprocess=steps, seed=5),
        "delays": el.fit(linear(2), score=el.Gaussian(), mobility=el.CorrelationFit(),
                         preprocess=[el.preprocess.PCA(components=2), el.preprocess.DelayEmbedding(1)], seed=5),
        "angle": el.fit(angles(1), score=el.KGMM(noise_level=0.2, cells=24), preprocess=[periodic], seed=6),
        "angles-denoising": el.fit(angles(2), score=mlp, seed=6,
                                   preprocess=el.preprocess.Periodic(["phi"], period=360.0)),
    }  # fmt: skip


def small(model):
    """The model with few states and few bootstrap draws."""
    mobility = model.mobility
    few = replace(mobility, replicas=mobility.replicas[:12], covariances=mobility.covariances[:12])
    return replace(model, states=model.states[:100], mobility=few)


def answers(model) -> dict:
    """What a model says: drift, diffusion, analysis, first states of a simulation with every kind of noise.

    Stepper and step are those that were the default when the files were written.
    """
    phi = model.mobility
    reversible = model.fields is None and np.abs(phi.antisymmetric).max() <= 1e-9 * np.abs(phi.matrix).max()
    stepper, resolution = (el.LeimkuhlerMatthews(), 0.5) if reversible else (el.StochasticHeun(), 0.2)
    step = resolution / model.stiffness()
    paths = model.simulate(4 * model.dt, members=3, seed=11, stepper=stepper, step=step)
    times, entropy = model.timescales(), model.entropy_production()
    return {
        "drift": model.drift(model.states[:5]).tolist(),
        "score": model.score_function(model.states[:5]).tolist(),
        "diffusion": np.asarray(model.diffusion(model.states[0])).tolist(),
        "step": step,
        "paths": np.stack(paths.segments).tolist(),
        "start": float(paths.starts[0]),
        "names": list(paths.names),
        "timescales": times.value.tolist(),
        "frequencies": model.circulation().frequency.tolist(),
        "entropy_production": [entropy.value, entropy.standard_error, entropy.bias],
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    stored = {}
    for name, model in models().items():
        small(model).save(HERE / f"{name}.safetensors")
        stored[name] = answers(el.load(HERE / f"{name}.safetensors"))
    (HERE / "answers.json").write_text(json.dumps(stored, indent=1) + "\n")
