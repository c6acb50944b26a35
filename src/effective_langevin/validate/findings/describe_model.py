"""The model in words and tables: relaxation, rotation, irreversibility and noise."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._core.format import after_number, listed, plus_minus, short, typeset
from ...diagnose import Finding
from ...model import LangevinModel
from ...model.analysis import EntropyProduction
from ...statistics.resampling import critical

_MOST_MODES = 8
_NAMED = 3
_TAKES_PART = 0.15
_VARIABLES = 6
_ASSUMED_GROUPS = 20
_CHANCE = 0.0027  # of a circulation that is not there: three standard errors for a single pair


class CirculationTest(NamedTuple):
    """The entry of Phi_A that is clearest, in standard errors from zero, and how many of them would be significant."""

    row: int
    column: int
    size: float
    limit: float
    groups: int
    significant: bool


def check_circulation(model: LangevinModel, groups: int | None = None) -> CirculationTest | None:
    """Test every entry of Phi_A (Student, Bonferroni over all pairs); None where Phi_A is zero by construction.

    Only observed variables count: that hidden velocities turn x is no circulation.

    `groups` is the number of independent parts of the record, if the mobility does not know it.
    """
    phi, error = model.mobility.antisymmetric, model.mobility.antisymmetric_error
    rows, columns = np.triu_indices(model.space.observed, 1)
    if np.abs(phi).max() < 1e-9 * np.abs(model.mobility.matrix).max() or not len(rows):
        return None
    sizes = np.abs(phi[rows, columns]) / np.maximum(error[rows, columns], np.finfo(float).tiny)
    groups = model.mobility.evidence.blocks or groups or _ASSUMED_GROUPS
    top, limit = int(np.argmax(sizes)), critical(groups, len(rows), _CHANCE)
    size = float(sizes[top])
    return CirculationTest(int(rows[top]), int(columns[top]), size, limit, groups, size > limit)


def _write(value: float, error: float) -> str:
    return typeset(plus_minus(float(value), float(error)))


class ModelDescription:
    """Time scales, rotations and entropy production of a model as findings and rows of tables.

    `groups` is the number of independent parts of the record, if the mobility does not know it.
    """

    def __init__(self, model: LangevinModel, groups: int | None = None):
        self.model, self.test = model, check_circulation(model, groups)
        self.timescales, self.circulation = model.timescales(), model.circulation()

    @cached_property
    def entropy(self) -> EntropyProduction:
        return self.model.entropy_production()

    def findings(self) -> list[Finding]:
        """Describe relaxation, noise, circulation and irreversibility, as far as there are any."""
        words = {"relaxation": self._relaxation(), "noise": self._noise()}
        if self.test is not None:
            words |= {"circulation": self._circulation(self.test), "irreversibility": self._irreversibility(self.test)}
        return [Finding(name, "note", text) for name, text in words.items() if text]

    def timescale_rows(self) -> list[list[str]]:
        """Variables, relaxation time and period of the slowest modes; the two of a pair that oscillates are one row."""
        found = self.timescales
        times = {k: _write(found.value[k], found.standard_error[k]) for k in self._modes[:_MOST_MODES]}
        return [[self._where(k), time, self._period(k) or "–"] for k, time in times.items()]

    def rotation_rows(self) -> list[list[str]]:
        """Plane, frequency and period of the fastest rotations."""
        found, rows = self.circulation, []
        turns = zip(found.frequency[:_MOST_MODES], found.standard_error, found.period, self._planes)
        for frequency, error, period, plane in turns if self.test and found.defined else ():
            if frequency > 0:
                turn = _write(period, period * error / frequency) if frequency > 2 * error else "–"
                rows.append([plane, _write(frequency, error), turn])
        return rows

    def entropy_row(self) -> str:
        """Entropy production with its error, or why there is none."""
        if not self.entropy.defined:
            return f"undefined: {self.entropy.reason}"
        value = _write(self.entropy.value, self.entropy.standard_error)
        return f"{value} per {self.model.time_unit or 'unit of time'}"

    def more_modes(self) -> int:
        """How many modes are not among the rows."""
        return max(0, len(self._modes) - _MOST_MODES)

    def _period(self, mode: int) -> str:
        """Write the period of a mode, nothing where it is not known to a half."""
        period, error = self.timescales.period[mode], self.timescales.period_error[mode]
        return _write(period, error) if np.isfinite(period) and not error > 0.5 * period else ""

    def _relaxation(self) -> str:
        found, unit = self.timescales, after_number(self.model.time_unit)
        times = [plus_minus(float(found.value[k]), float(found.standard_error[k])) for k in self._modes]
        if self.model.dimension == 1:
            return f"the correlation begins to decay over a time of {times[0]}{unit}."
        span = f"correlations begin to decay over {times[0]}{unit}"
        if len(times) > 1:
            span += f" in the slowest direction ({self._where(0)}) and over {times[-1]}{unit} in the fastest"
        swings = [k for k in self._modes if self._period(k) and found.period[k] < 20 * found.value[k]]
        if swings:
            span += f", and oscillate with a period of {self._period(swings[0])}{unit}"
        return f"{span}."

    def _noise(self) -> str:
        """Compare the noise over one sampling interval with the spread of each variable but delayed ones."""
        model = self.model
        told = model.dimension if model.space.rates else model.space.observed
        if model.dimension > _VARIABLES:
            return ""
        step = np.sqrt(2 * np.diagonal(model.mobility.symmetric) * model.dt)[:told]
        parts = [
            f"{name} by {short(float(s))}{after_number(unit)} ({short(float(100 * s / std))} % of its spread)"
            for name, unit, s, std in zip(model.names, model.units, step, model.standardizer.std)
            if s > 0
        ]
        interval = f"{model.dt:g}{after_number(model.time_unit)}"
        return f"over one sampling interval of {interval} it moves {listed(parts, _VARIABLES)}."

    def _circulation(self, test: CirculationTest) -> str:
        found, unit = self.circulation, self.model.time_unit or "unit of time"
        if not found.defined:
            return f"withheld: {found.reason}."
        frequency, error = float(found.frequency[0]), float(found.standard_error[0])
        turn = f"{plus_minus(frequency, error)} radians per {unit}"
        if not test.significant:
            return f"none beyond sampling errors; the fastest rotation is one of {turn}."
        period = plus_minus(float(found.period[0]), float(found.period[0] * error / frequency))
        after = after_number(self.model.time_unit)
        return f"the state turns {self._planes[0]}, once in {period}{after} ({turn}), besides relaxation and noise."

    def _irreversibility(self, test: CirculationTest) -> str:
        found, unit = self.entropy, self.model.time_unit or "unit of time"
        if not found.defined:
            return f"the entropy production is undefined: {found.reason}."
        value = f"entropy is produced at {plus_minus(found.value, found.standard_error)} per {unit}"
        if test.significant:
            words = "the dynamics are distinguishable from their time reversal"
            return f"{value} (units of Boltzmann's constant): {words}."
        known = self.model.diagnosis.findings if self.model.diagnosis else ()
        differs = any(f.name == "time reversal" and f.level == "note" for f in known)  # which the model does not know
        but = ", but the data differ from their reverse in third moments or turns" if differs else ""
        bias = short(max(found.bias, 0.0))
        return f"{value}, where sampling noise alone makes {bias}: reversible within sampling errors{but}."

    @cached_property
    def _modes(self) -> list[int]:
        """Modes, one of those that are the same: an oscillation, or waves of one length on a periodic grid."""
        times, periods = self.timescales.value, self.timescales.period
        same = np.isclose(times[1:], times[:-1]) & np.isclose(periods[1:], periods[:-1])
        kept: list[int] = []
        for k in range(len(times)):
            paired = k and same[k - 1] and kept[-1] == k - 1 and np.isfinite(periods[k])
            alike = (p for p in kept if np.isclose(times[p], times[k]) and not np.isfinite(periods[[p, k]]).any())
            if not (paired or any(self._where(p) == self._where(k) for p in alike)):
                kept.append(k)
        return kept

    def _where(self, mode: int) -> str:
        """Name the variables that take part in a mode, the strongest first; of fields, the number of waves."""
        channels = self.model.space.channels
        if channels is not None:
            fields = self.timescales.directions[mode].reshape(channels, -1)
            power = np.sum(np.abs(np.fft.fft(fields, axis=1)) ** 2, axis=0)
            wave = int(np.argmax(power))
            return f"Fourier mode {min(wave, fields.shape[1] - wave)}"
        shares = self.timescales.shares[mode]
        order = [v for v in np.argsort(-shares) if shares[v] > _TAKES_PART][:_NAMED]
        return ", ".join(self.model.names[v] for v in order) if order else "many variables"

    @cached_property
    def _planes(self) -> list[str]:
        """Describe each plane: from which variable towards which, with signs."""
        words = []
        observed = self.model.standardizer.std[: self.model.space.observed]
        for first, second in self.circulation.planes / observed:
            size = first**2 + second**2
            if size.max() < _TAKES_PART * size.sum():
                words.append("in a plane of many variables")
                continue
            i, j = np.argsort(-size)[:2]
            start, end = (i, j) if first[i] * second[j] - first[j] * second[i] > 0 else (j, i)
            words.append(f"from {self.model.names[start]} towards {self.model.names[end]}")
        return words
