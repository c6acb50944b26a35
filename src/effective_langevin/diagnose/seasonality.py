"""Spectral lines: peaks of the periodogram far above what is around them, in the variables and in their squares.

A line must also stand out with a Hann taper, which the side lobes of a stronger line do not. It is steady if its
amplitude is the same throughout: a cycle imposed from outside is, a resonance of the system itself is not. Where the
unit of time is one of the calendar, the year and the day are looked for with a lower threshold, as they are expected.
"""

from dataclasses import dataclass

import numpy as np

from ..statistics.resampling import FALSE_ALARM
from ..statistics.spectra import WIDTH, background, equal_windows, half_bin_periodograms, line_thresholds
from .survey import Survey

_FIRST = 4  # periods in a window: fewer are a trend
_CONTRAST = 3.0  # a line stands this far above the bins beside it
_LEAST_SHARE = 1e-3
_MOST_LINES = 3
_CURVE_POINTS = 300
_PEAK = 30.0  # times its neighbourhood: drawn in full height
# Squared relative scatter of the amplitude: 0 for a steady cycle, (4 - pi) / pi = 0.27 for a random one.
_UNSTEADY = 0.1
_CYCLES = (365.2425, 1.0)  # the year and the day, in days
_UNITS = {
    **dict.fromkeys(("year", "years", "yr"), 365.2425),
    **dict.fromkeys(("month", "months"), 365.2425 / 12),
    **dict.fromkeys(("day", "days", "d"), 1.0),
    **dict.fromkeys(("hour", "hours", "h", "hr"), 1 / 24),
    **dict.fromkeys(("minute", "minutes", "min"), 1 / 1440),
    **dict.fromkeys(("second", "seconds", "s"), 1 / 86400),
}


@dataclass(frozen=True)
class Line:
    """A spectral line; `share` is the part of the variance (of the variable, or of its square) that it carries."""

    variable: int
    of_square: bool
    period: float
    period_error: float
    share: float
    height: float
    steady: bool


@dataclass(frozen=True)
class Spectrum:
    """The periodogram of one variable thinned for drawing (means over stretches, but peaks in full), and its level."""

    variable: int
    frequency: np.ndarray
    power: np.ndarray
    neighbourhood: np.ndarray


@dataclass(frozen=True)
class Seasonality:
    """Lines, strongest first; the spectrum of each variable; the length of the windows in time."""

    lines: tuple[Line, ...]
    spectra: tuple[Spectrum, ...]
    window: float


def spectral_lines(survey: Survey) -> Seasonality:
    """Lines in every variable and in its square."""
    series = survey.series
    windows = equal_windows(series.segments)
    duration = len(windows[0]) * series.dt
    if len(windows[0]) < 2 * WIDTH:
        return Seasonality((), (), duration)
    lines, spectra, tests = [], [], 2 * series.dimension
    calendar = calendar_bins(duration, len(windows[0]), series.time_unit)
    for i in range(series.dimension):
        for of_square in (False, True):
            samples = [np.square(w[:, i]) if of_square else w[:, i] for w in windows]
            plain, tapered = half_bin_periodograms(samples)
            level, freedom = background(plain[::2], len(windows))
            limits = [
                _on_half_bins(level * line_thresholds(len(windows), freedom, FALSE_ALARM / (tests * bins)), len(plain))
                for bins in (len(plain), max(len(calendar), 1))
            ]
            limit = np.where(np.isin(np.arange(len(plain)), calendar), limits[1], limits[0])
            for position, share in _lines(plain / limit, tapered):
                period, height = 2 * duration / position, float(plain[round(position)] / level[round(position / 2)])
                steady = is_steady(samples, period / series.dt, height)
                lines.append(Line(i, of_square, period, 0.5 * period**2 / duration, share, height, steady))
            if not of_square:
                spectra.append(_thinned(i, plain[::2], level, duration))
    lines = sorted(without_overtones(lines), key=lambda line: -line.share)
    return Seasonality(tuple(lines), tuple(spectra), duration)


def without_overtones(lines: list[Line]) -> list[Line]:
    """Without the lines that a variable's square has only because the variable itself has one, at P and at P / 2."""

    def explained(line: Line) -> bool:
        own = [other for other in lines if other.variable == line.variable and not other.of_square]
        return any(abs(np.log(line.period * k / other.period)) < 0.03 for other in own for k in (1, 2))

    return [line for line in lines if not (line.of_square and explained(line))]


def calendar_bins(duration: float, samples: int, time_unit: str) -> np.ndarray:
    """Half bins of the year and the day, as far as they are within reach of the window and of the sampling."""
    days = _UNITS.get(time_unit.strip().lower())
    cycles = [] if days is None else [2 * duration * days / cycle for cycle in _CYCLES]
    found = [round(c) + step for c in cycles if 2 * _FIRST < c < samples - 2 for step in (-1, 0, 1)]
    return np.array(found, dtype=int)


def _on_half_bins(values: np.ndarray, size: int) -> np.ndarray:
    return np.interp(np.arange(size), np.arange(0, 2 * len(values), 2), values)


def _lines(excess: np.ndarray, tapered: np.ndarray) -> list[tuple[float, float]]:
    """Position (in half bins) and share of the variance of the strongest lines; `excess` is power over its limit."""
    excess[: 2 * _FIRST] = 0
    total, found = tapered[::2].sum(), []
    for peak in np.argsort(-excess)[: 40 * _MOST_LINES]:
        if excess[peak] < 1 or len(found) == _MOST_LINES:
            break
        line = np.arange(peak - 2, peak + 3)
        beside = np.concatenate([np.arange(peak - 12, peak - 5), np.arange(peak + 6, peak + 13)])
        line, beside = (rows[(rows >= _FIRST) & (rows < len(tapered) - 2)] for rows in (line, beside))
        background = tapered[beside].mean()
        share = float((tapered[line][::2] - background).sum() / total)
        fresh = all(abs(peak - position) > 12 for position, _ in found)
        if fresh and tapered[line].max() > _CONTRAST * background and share > _LEAST_SHARE:
            above = np.maximum(tapered[line] - background, 0)
            found.append((float(above @ line / above.sum()), share))
    return found


def is_steady(windows: list[np.ndarray], period: float, height: float) -> bool:
    """Whether the amplitude at `period` (in samples) is the same in all parts of all windows, within errors."""
    size = len(windows[0])
    parts = int(np.clip(min(size / period / 3, height / 4), 1, 8))
    wave = np.exp(-2j * np.pi * np.arange(size // parts) / period)
    pieces = [w[k * len(wave) :][: len(wave)] for w in windows for k in range(parts)]
    if len(pieces) < 6:
        return True
    amplitudes = np.array([np.abs(np.dot(p - p.mean(), wave)) for p in pieces])
    scatter = amplitudes.var(ddof=1) / amplitudes.mean() ** 2
    return bool(scatter < _UNSTEADY + 0.5 * parts / height)


def _thinned(variable: int, power: np.ndarray, level: np.ndarray, duration: float) -> Spectrum:
    """At most a few hundred points, evenly spread over log frequency; peaks are kept, the rest is averaged."""
    edges = np.unique(np.geomspace(1, len(power), min(_CURVE_POINTS, len(power))).astype(int))[:-1]
    ends = np.append(edges[1:], len(power))
    highest = np.maximum.reduceat(power, edges)
    mean = np.add.reduceat(power, edges) / (ends - edges)
    unit = power[1:].sum() / duration
    shown = np.where(highest > _PEAK * level[edges], highest, mean)
    return Spectrum(variable, 0.5 * (edges + ends - 1) / duration, shown / unit, level[edges] / unit)
