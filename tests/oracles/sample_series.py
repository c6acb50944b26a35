"""Small series with trend, season, gaps, positive values and angles, and what it means to come back to them."""

import numpy as np

import effective_langevin as el

PERIOD, DT = 12.0, 1.0


def climate(length=600, start=108.0, seed=0):
    """Three variables of different size with a trend, a season with two harmonics, gaps, and noise, two records."""
    rng = np.random.default_rng(seed)
    records, starts = [], [start, start + 37.0]
    for first in starts:
        t = first + DT * np.arange(length)
        values = noise_of(rng, length) + trend_of(t) + season_of(t)
        values[100:103] = np.nan
        values[200, 1] = np.nan
        records.append(values)
    return el.TimeSeries(records, DT, names=["T", "h", "u"], units=["K", "m", "m/s"], time_unit="month", start=starts)


def noise_of(rng, length):
    return rng.normal(size=(length, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 20.0, 3.0], [0.0, 0.0, 0.1]])


def trend_of(t):
    return np.outer((t - 108) / 600, [3.0, -50.0, 0.2])


def season_of(t):
    angle = 2 * np.pi * t[:, None] / PERIOD
    return np.cos(angle) * [2.0, 30.0, 0.3] + np.sin(2 * angle) * [0.5, -10.0, 0.1]


def positive(seed=0, length=300):
    rng = np.random.default_rng(seed)
    return el.TimeSeries(
        np.exp(rng.normal(size=(length, 2)) * [0.5, 2.0] + [3.0, -8.0]),
        0.1,
        names=["rain", "flow"],
        units=["mm", "l/s"],
    )


def angles(seed=0):
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.uniform(-np.pi, np.pi, 200), rng.normal(size=200), rng.uniform(-np.pi, np.pi, 200)])
    return el.TimeSeries(values, 0.1, names=["phi", "r", "psi"], units=["rad", "nm", "rad"])


def assert_same(a, b, tolerance=1e-10):
    """The same series to a tolerance in units of each variable's standard deviation, description and times exact."""
    scale = b.stacked().std(axis=0)
    assert [len(s) for s in a.segments] == [len(s) for s in b.segments]
    for one, other in zip(a.segments, b.segments):
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=tolerance)
    for field in ("dt", "names", "units", "time_unit", "dropped", "starts", "records"):
        assert getattr(a, field) == getattr(b, field), field
