"""Spectral lines in the variables and in their squares.

Where the unit of time is one of the calendar, the year and the day need less to be called a line: they are expected.
"""

from dataclasses import dataclass

import numpy as np

from .._core.format import listed, measured, percent
from .._core.timeunits import SECONDS, canonical
from ..execution.batches import on_all_cores
from ..statistics.resampling import FALSE_ALARM
from ..statistics.spectral_lines import FIRST, WIDTH, equal_windows, find_peaks, is_steady
from . import thresholds
from .finding import Finding, Quantity
from .moments import SeriesMoments

_MOST_WINDOWS = 256  # more make the periodogram smoother, but not the background it is compared with


@dataclass(frozen=True)
class Line:
    """A spectral line; `share` is the part of the variance (of the variable, or of its square) that it carries."""

    variable: int
    of_square: bool
    period: float
    period_error: float
    share: float
    steady: bool


def find_lines(moments: SeriesMoments) -> tuple[list[Line] | None, float]:
    """Lines in every variable and in its square, strongest first, and the length in time of the windows.

    None for windows that are too short to look for lines.
    """
    series = moments.excerpt
    windows = equal_windows(series.segments)
    windows = windows[:: -(-len(windows) // _MOST_WINDOWS)]
    duration = len(windows[0]) * series.dt
    if len(windows[0]) < 2 * WIDTH:
        return None, duration
    chance = FALSE_ALARM / (2 * series.dimension)
    calendar = calendar_bins(duration, len(windows[0]), series.time_unit)

    def find(i: int) -> list[Line]:
        lines = []
        for of_square in (False, True):
            samples = [np.square(w[:, i]) if of_square else w[:, i] for w in windows]
            for peak in find_peaks(samples, chance, calendar):
                period = 2 * duration / peak.position
                steady = is_steady(samples, period / series.dt, peak.height)
                lines.append(Line(i, of_square, period, 0.5 * period**2 / duration, peak.share, steady))
        return lines

    lines = [line for found in on_all_cores(find, range(series.dimension)) for line in found]
    return sorted(without_overtones(lines), key=lambda line: -line.share), duration


def without_overtones(lines: list[Line]) -> list[Line]:
    """Without the lines that a variable's square has only because the variable itself has one, at P and at P / 2."""

    def explained(line: Line) -> bool:
        own = [other for other in lines if other.variable == line.variable and not other.of_square]
        return any(abs(np.log(line.period * k / other.period)) < 0.03 for other in own for k in (1, 2))

    return [line for line in lines if not (line.of_square and explained(line))]


def calendar_bins(duration: float, samples: int, time_unit: str) -> np.ndarray:
    """Half bins of the year and the day, as far as they are within reach of the window and of the sampling."""
    unit = SECONDS.get(canonical(time_unit))
    cycles = [] if unit is None else [2 * duration * unit / SECONDS[cycle] for cycle in ("year", "day")]
    found = [round(c) + step for c in cycles if 2 * FIRST < c < samples - 2 for step in (-1, 0, 1)]
    return np.array(found, dtype=int)


def check_seasonality(moments: SeriesMoments) -> Finding:
    """Say which lines the spectra of the variables or of their squares have."""
    (found, window), unit, names = find_lines(moments), moments.series.time_unit, moments.series.names
    lines = found or []
    numbers = {
        "periods": Quantity([line.period for line in lines], [line.period_error for line in lines], unit),
        "shares_of_variance": Quantity([line.share for line in lines]),
        "variables": Quantity([names[line.variable] for line in lines]),
        "of_square": Quantity([line.of_square for line in lines]),
        "steady": Quantity([line.steady for line in lines]),
        "window": Quantity(window, unit=unit),
    }
    if not lines:
        meaning = f"No spectral line with a period below {measured(window / 4, None, unit)}."
        meaning = "The records are too short to look for cycles." if found is None else meaning
        return Finding("seasonality", "ok", meaning, "", numbers)
    what = listed(
        [
            f"period {measured(line.period, line.period_error, unit)} in {'the variance of ' * line.of_square}"
            f"{names[line.variable]} ({percent(line.share)} of its fluctuations)"
            for line in lines
        ],
        2,
    )
    first = lines[0]
    if not first.steady:
        meaning = f"A narrow peak in the spectrum: {what}. Its strength varies: a resonance, not a fixed cycle."
        return Finding("seasonality", "note", meaning, "Nothing, unless you know of a cycle of that period.", numbers)
    phase = f"add its phase with `preprocess=[el.preprocess.PhaseAugmentation({first.period:.6g})]`"
    advice = (
        f"Divide by the spread of each phase, or {phase}."
        if first.of_square
        else f"Remove it with `preprocess=[el.preprocess.RemoveSeasonalCycle({first.period:.6g})]`, or {phase}."
    ) + " Give the exact period if you know it."
    level = "warning" if first.share > thresholds.CYCLE_SHARE else "note"
    return Finding("seasonality", level, f"There is a cycle: {what}.", advice, numbers)
