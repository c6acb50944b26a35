"""Series with known properties, made exactly (no time-stepping error)."""

import numpy as np
from scipy.signal import lfilter

import effective_langevin as el


def autoregressive(samples, tau, members=1, seed=0):
    """Ornstein-Uhlenbeck paths of unit variance and integral time `tau` samples, (member, time, 1)."""
    a, spin_up = np.exp(-1 / tau), int(20 * tau)
    noise = np.random.default_rng(seed).normal(size=(members, samples + spin_up))
    return lfilter([np.sqrt(1 - a * a)], [1, -a], noise, axis=1)[:, spin_up:, None]


def ornstein_uhlenbeck(samples, tau, members=1, seed=0, dt=1.0):
    return el.TimeSeries(autoregressive(samples, tau, members, seed), dt)


def random_walk(samples, members=1, seed=0):
    return el.TimeSeries(np.cumsum(np.random.default_rng(seed).normal(size=(members, samples, 1)), axis=1), 0.1)


def with_noise(series, share, seed=0):
    """White noise of `share` standard deviations on each sample."""
    rng, std = np.random.default_rng(seed), series.stacked().std(axis=0)
    return series.map(lambda x: x + share * std * rng.normal(size=x.shape))


def real(path, **replaced):
    """One of the shared real series."""
    data = np.load(path)
    about = {
        "names": [str(v) for v in data["variables"]],
        "units": [str(u) for u in data["units"]],
        "time_unit": str(data["dt_unit"]),
    }
    return el.TimeSeries(replaced.get("values", data["x"]), float(data["dt"]), **about)
