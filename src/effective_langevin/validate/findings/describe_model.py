"""The model in words: how fast it relaxes, how it turns, how irreversible it is, how strong its noise is."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from ..._core.format import after_number, plus_minus, short, typeset
from ...model import LangevinModel
from ...model.analysis import Circulation, EntropyProduction, Timescales
from ..fields import channels_of

_FALSE_ALARM = 0.0027
_MOST_MODES = 8
_NAMED = 3
_TAKES_PART = 0.15
_VARIABLES = 6


@dataclass(frozen=True)
class Portrait:
    """Timescales, circulation and entropy production of a model as sentences and rows of tables."""

    model: LangevinModel

    @cached_property
    def timescales(self) -> Timescales:
        """Relaxation times and periods."""
        return self.model.timescales()

    @cached_property
    def circulation(self) -> Circulation:
        """Rotations."""
        return self.model.circulation()

    @cached_property
    def entropy(self) -> EntropyProduction:
        """Entropy production."""
        return self.model.entropy_production()

    @property
    def circulates(self) -> bool:
        """Whether Phi_A is not zero by construction."""
        return bool(np.any(self.circulation.frequency > 1e-9 / self.timescales.value.max()))

    def sentences(self) -> list[str]:
        """One sentence each on relaxation, noise, circulation and irreversibility, as far as there are any."""
        turning = [self._circulation_words(), self._entropy_words()] if self.circulates else []
        return [self._relaxation_words(), self._noise_words(), *turning]

    def timescale_rows(self) -> list[dict[str, str]]:
        """Relaxation time, period and variables of the slowest modes; the two of a pair that oscillates are one row."""
        found = self.timescales
        return [
            {
                "time": typeset(plus_minus(float(found.value[k]), float(found.standard_error[k]))),
                "period": typeset(plus_minus(float(found.period[k]), float(found.period_error[k])))
                if np.isfinite(found.period[k])
                else "",
                "where": self._where(k),
            }
            for k in self._modes()[:_MOST_MODES]
        ]

    def rotation_rows(self) -> list[dict[str, str]]:
        """Frequency, period and plane of the fastest rotations."""
        if not self.circulates:
            return []
        found = self.circulation
        turns = zip(found.frequency[:_MOST_MODES], found.standard_error, found.period, self._planes())
        return [
            {
                "frequency": typeset(plus_minus(float(frequency), float(error))),
                "period": typeset(plus_minus(float(period), float(period * error / frequency)))
                if frequency > 2 * error
                else "–",
                "plane": plane,
            }
            for frequency, error, period, plane in turns
            if frequency > 0
        ]

    def entropy_row(self) -> str:
        """Entropy production with its error."""
        return typeset(plus_minus(self.entropy.value, self.entropy.standard_error))

    def more_modes(self) -> int:
        """How many modes are not among the rows."""
        return max(0, len(self._modes()) - _MOST_MODES)

    def _relaxation_words(self) -> str:
        found, unit = self.timescales, after_number(self.model.time_unit)
        times = [plus_minus(float(found.value[k]), float(found.standard_error[k])) for k in self._modes()]
        if self.model.dimension == 1:
            return f"Relaxation: its correlation begins to decay over a time of {times[0]}{unit}."
        if len(times) == 1:
            span = f"its correlations begin to decay over {times[0]}{unit}"
        else:
            span = f"its correlations begin to decay over {times[0]}{unit} in the slowest direction"
            span += f" ({self._where(0)}) and over {times[-1]}{unit} in the fastest"
        swings = [k for k in self._modes() if np.isfinite(found.period[k]) and found.period[k] < 20 * found.value[k]]
        if swings:
            period = plus_minus(float(found.period[swings[0]]), float(found.period_error[swings[0]]))
            span += f", swinging with a period of {period}{unit}"
        return f"Relaxation: {span}."

    def _noise_words(self) -> str:
        """Noise over one sampling interval, beside the spread of each variable."""
        model = self.model
        if model.dimension > _VARIABLES:
            return ""
        step = np.sqrt(2 * np.diagonal(model.mobility.symmetric) * model.dt)
        parts = [
            f"{name} by {short(float(s))}{after_number(unit)} ({short(float(100 * s / std))} % of its spread)"
            for name, unit, s, std in zip(model.names, model.units, step, model.standardizer.std)
        ]
        listed = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
        return f"Noise: over one sampling interval of {model.dt:g}{after_number(model.time_unit)} it moves {listed}."

    def _circulation_words(self) -> str:
        found, unit = self.circulation, self.model.time_unit or "unit of time"
        frequency, error = float(found.frequency[0]), float(found.standard_error[0])
        turn = f"{plus_minus(frequency, error)} radians per {unit}"
        if frequency < self._limit() * error:
            return f"Circulation: none beyond sampling errors; the fastest rotation found is one of {turn}."
        period = plus_minus(float(found.period[0]), float(found.period[0] * error / frequency))
        return (
            f"Circulation: the state turns {self._planes()[0]}, once in {period}{after_number(self.model.time_unit)} "
            f"({turn}), on top of its relaxation and noise."
        )

    def _entropy_words(self) -> str:
        found, unit = self.entropy, self.model.time_unit or "unit of time"
        value = f"{plus_minus(found.value, found.standard_error)} per {unit}"
        if found.value < max(found.bias, 0) + 3 * found.standard_error:
            return (
                f"Irreversibility: entropy production of {value}, of which {short(max(found.bias, 0.0))} is what noise "
                "alone makes of zero: no sign that the motion differs from its reverse."
            )
        return (
            f"Irreversibility: entropy production of {value} (in units of Boltzmann's constant): a film of the motion "
            "run backwards can be told from one run forwards."
        )

    def _limit(self) -> float:
        """Standard errors that a rotation needs: one chance in 370 of a false one, over all planes."""
        blocks, size = self.model.mobility.diagnostics.get("blocks", 20), self.model.dimension
        return float(-stdtrit(blocks - 1, _FALSE_ALARM / (size * (size - 1))))

    def _modes(self) -> list[int]:
        """Modes, one of each pair that is the same: an oscillation, or sine and cosine on a ring."""
        times, periods = self.timescales.value, self.timescales.period
        same = np.isclose(times[1:], times[:-1]) & np.isclose(periods[1:], periods[:-1])
        kept: list[int] = []
        for k in range(len(times)):
            paired = k and same[k - 1] and kept[-1] == k - 1
            if not (paired and (np.isfinite(periods[k]) or self._where(k) == self._where(k - 1))):
                kept.append(k)
        return kept

    def _where(self, mode: int) -> str:
        """The variables that take part in a mode, the strongest first; on a ring, its number of waves."""
        channels = channels_of(self.model.provenance)
        if channels is not None:
            fields = self.timescales.directions[mode].reshape(channels, -1)
            power = np.sum(np.abs(np.fft.fft(fields, axis=1)) ** 2, axis=0)
            wave = int(np.argmax(power))
            return f"Fourier mode {min(wave, fields.shape[1] - wave)}"
        shares = self.timescales.shares[mode]
        order = [v for v in np.argsort(-shares) if shares[v] > _TAKES_PART][:_NAMED]
        return ", ".join(self.model.names[v] for v in order) if order else "many variables"

    def _planes(self) -> list[str]:
        """Each plane in words: from which variable towards which, with signs."""
        words = []
        for first, second in self.circulation.planes / self.model.standardizer.std:
            size = first**2 + second**2
            if size.max() < _TAKES_PART * size.sum():
                words.append("in a plane of many variables")
                continue
            i, j = np.argsort(-size)[:2]
            towards = first[i] * second[j] - first[j] * second[i] > 0
            start, end = (i, j) if towards else (j, i)
            words.append(f"from {self.model.names[start]} towards {self.model.names[end]}")
        return words
