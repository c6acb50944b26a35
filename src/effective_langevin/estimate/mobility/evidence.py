"""What the estimators of a mobility found on the way, as typed records.

`to_dict` and `from_dict` keep the flat names that model files and `model.diagnostics` have always had.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from ..._core.types import LagMatrices, Matrix, Vector
from ...statistics.resampling import SymmetryTest
from ..closure.evidence import ClosureChoice, ClosureEvidence, HeldOutCheck, MemoryChoice

_RECORDS = {"closure": ClosureEvidence, "choice": ClosureChoice, "memory": MemoryChoice, "held_out": HeldOutCheck}
Record = TypeVar("Record")
ToPhysical = Callable[[np.ndarray], np.ndarray]

UNSTABLE = 0.3  # relative error of Phi beyond which no range of horizons is stable
_SIGNIFICANT, _SUBSTANTIAL = 4.0, 0.05  # of a difference between two estimates: standard errors, share of |Phi|
STILL_RISING = 0.1  # share of the variance in directions where Phi(T) has not stopped rising

_HORIZON_KEYS = {
    "rule": "horizon_rule",
    "horizons": "horizon",
    "phi": "phi_by_horizon",
    "standard_error": "sampling_error_by_horizon",
    "chosen": "chosen_horizon",
    "degree": "horizon_degree",
    "used": "horizons_used",
    "weights": "horizon_weight",
}


@dataclass(frozen=True, eq=False)
class HorizonEvidence:
    """Phi(T) at every horizon T, and how one Phi was taken from it.

    `rule` is "mean" (a plateau), "limit" (T -> 0 of a polynomial), "finite" (the end of the rise of a smooth series) or
    "residual" (of what a current leaves over).
    Errors are relative to |Phi|. With a symmetry of a grid, `phi_by_mode` and `phi_of_mode` hold each Fourier mode.
    """

    rule: str
    horizons: Vector
    phi: LagMatrices | None = None
    standard_error: LagMatrices | None = None
    chosen: Vector | None = None
    degree: int | None = None
    used: int | None = None
    weights: Vector | None = None
    sampling_error: float | None = None
    trend_error: float | None = None
    quadrature_error: float | None = None
    held_out_error: float | None = None
    held_out_expected: float | None = None
    rising_share: float | None = None
    unresolved_directions: int | None = None
    phi_by_mode: np.ndarray | None = None
    phi_of_mode: Vector | None = None

    @property
    def error(self) -> float:
        """Estimated error of Phi from sampling, trend and quadrature together, relative to |Phi|."""
        parts = (self.sampling_error, self.trend_error, self.quadrature_error)
        return float(np.linalg.norm([part or 0.0 for part in parts]))

    def doubt(self) -> str:
        """Say that no horizon is stable and what was used, or return an empty string."""
        if (self.rising_share or 0.0) > STILL_RISING:
            return (
                f"Phi(T) still rises at the longest horizon, T = {self.horizons[-1]:g}, in directions that hold "
                f"{100 * (self.rising_share or 0.0):.0f} % of the variance. The effective mobility was taken there and "
                "may be too small. Allow longer horizons with `IntegratedResponse(lags=...)`, or give a longer series."
            )
        if self.error > UNSTABLE:
            return (
                "Phi(T) is not stable over any range of horizons. The combination with the least error was taken; it "
                f"is uncertain by {100 * self.error:.0f} % of |Phi|. Give a longer or more finely sampled series."
            )
        return ""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Phi from one estimator at one sampling interval, with its sampling and its discretisation error."""

    estimator: str
    dt: float
    phi: Matrix
    standard_error: Matrix
    discretisation_error: Matrix

    @property
    def error(self) -> float:
        return float(np.hypot(np.linalg.norm(self.standard_error), np.linalg.norm(self.discretisation_error)))

    def distance(self, other: "Estimate") -> float:
        """|Phi - Phi'|."""
        return float(np.linalg.norm(self.phi - other.phi))

    def excess(self, other: "Estimate") -> float:
        """The distance in units of what errors explain, or of a twentieth of |Phi| if that is more."""
        explained = _SIGNIFICANT * np.hypot(self.error, other.error)
        return self.distance(other) / max(explained, _SUBSTANTIAL * float(np.linalg.norm(self.phi)))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Estimates to compare, the one used first, and a sentence about a disagreement beyond errors, or ""."""

    estimates: tuple[Estimate, ...]
    disagreement: str = ""

    @property
    def contradicting(self) -> list[Estimate]:
        """The same estimator with every second sample, if it differs beyond both errors.

        Every fourth sample does not count. Where the error of an estimator falls as dt^2 or faster, that at dt is at
        most a third of the change to 2 dt, but only a fifteenth of the change to 4 dt, and less where the fastest
        motion is over within 4 dt. What is wrong at dt itself, as with motion blur or memory, shows at 2 dt.
        """
        used, *others = self.estimates
        return [
            e for e in others if e.estimator == used.estimator and np.isclose(e.dt, 2 * used.dt) and used.excess(e) > 1
        ]


@dataclass(frozen=True, eq=False)
class MobilityEvidence:
    """Everything that was found about a mobility; None where an estimator does not look at it.

    `blocks` of time give the errors. `lifted_by` is the relative change that made the diffusion positive definite.
    `discretisation_bias` is the change of Phi to twice the sampling interval. `measurement_noise` is its standard
    deviation per variable, `blur` the share of C(0) by which it lies below its extrapolation from lags >= 1, both
    standardised. `left_after_one_step` is what is left of the response of each angle after one interval,
    `antisymmetry_before_projection` is |Phi_A| / |Phi_S| before reflections average it away. `extra` holds what other
    packages' estimators want to keep, as plain data.
    """

    blocks: int = 0
    lifted_by: float = 0.0
    horizon: HorizonEvidence | None = None
    discretisation_bias: Matrix | None = None
    integral_times: Vector | None = None
    quadratic_variation_slope: float | None = None
    measurement_noise: Vector | None = None
    blur: Vector | None = None
    left_after_one_step: Vector | None = None
    antisymmetry_before_projection: float | None = None
    symmetry: SymmetryTest | None = None
    agreement: Agreement | None = None
    closure: ClosureEvidence | None = None
    choice: ClosureChoice | None = None
    memory: MemoryChoice | None = None
    held_out: HeldOutCheck | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ballistic(self) -> bool:
        """Whether the series is smooth, so that Phi is an effective one at a finite horizon."""
        return self.horizon is not None and self.horizon.rule == "finite"

    @property
    def noisy(self) -> bool:
        return self.measurement_noise is not None and bool(np.any(self.measurement_noise))

    @property
    def blurred(self) -> bool:
        """Whether samples are means over an exposure (motion blur)."""
        return self.blur is not None and bool(np.any(self.blur))

    @property
    def share_of_motion(self) -> Vector | float:
        """Variance of the motion beneath measurement noise and blur, in units of the variance of the data."""
        noise, blur = (0.0 if v is None else v for v in (self.measurement_noise, self.blur))
        return 1.0 - np.square(noise) + blur

    def to_physical(self, convert: ToPhysical) -> "MobilityEvidence":
        """Convert every mobility among the evidence to physical units."""
        agreement = self.agreement
        if agreement:
            matrices = ("phi", "standard_error", "discretisation_error")
            estimates = tuple(_convert(estimate, convert, *matrices) for estimate in agreement.estimates)
            agreement = replace(agreement, estimates=estimates)
        horizon = _convert(self.horizon, convert, "phi", "standard_error")
        return replace(_convert(self, convert, "discretisation_bias"), horizon=horizon, agreement=agreement)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, under flat names."""
        nested = ("horizon", "symmetry", "agreement", *_RECORDS, "extra")
        flat = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in nested}
        if self.horizon:
            flat |= {_HORIZON_KEYS.get(f.name, f.name): getattr(self.horizon, f.name) for f in fields(self.horizon)}
        if self.symmetry:
            flat |= {"symmetry_distance": self.symmetry.distance, "symmetry_chance": self.symmetry.chance}
        if self.agreement:
            flat["agreement"] = [{k: _plain(v) for k, v in vars(e).items()} for e in self.agreement.estimates]
            flat["disagreement"] = self.agreement.disagreement
        flat |= {name: record.to_dict() for name in _RECORDS if (record := getattr(self, name))}
        return {name: _plain(value) for name, value in {**flat, **self.extra}.items() if value is not None}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "MobilityEvidence":
        renamed = {_HORIZON_KEYS.get(f.name, f.name): f.name for f in fields(HorizonEvidence)}
        known = {*renamed, *(f.name for f in fields(cls)), "symmetry_distance", "symmetry_chance", "disagreement"}
        nested: dict[str, Any] = {"extra": {k: v for k, v in state.items() if k not in known}}
        if "horizon_rule" in state:
            nested["horizon"] = _read(HorizonEvidence, {renamed[k]: v for k, v in state.items() if k in renamed})
        if "symmetry_distance" in state:
            nested["symmetry"] = SymmetryTest(state["symmetry_distance"], state["symmetry_chance"])
        if "agreement" in state:
            rows = tuple(_read(Estimate, row) for row in state["agreement"])
            nested["agreement"] = Agreement(rows, state.get("disagreement", ""))
        nested |= {name: record.from_dict(state[name]) for name, record in _RECORDS.items() if name in state}
        outer = {name: value for name, value in state.items() if name not in ("horizon", "agreement", *_RECORDS)}
        return replace(_read(cls, outer), **nested)

    def summary(self) -> str:
        lines = [f"Errors from {self.blocks} blocks of time."]
        if self.horizon:
            rules = {
                "mean": "Phi is the mean over the plateau of Phi(T).",
                "limit": "Phi is the limit of Phi(T) at T -> 0.",
                "finite": "The series is smooth: Phi is effective, at the horizon where Phi(T) stops rising.",
                "residual": "D is the integral of the correlations of what the current leaves over.",
            }
            lines += [rules[self.horizon.rule], self.horizon.doubt()]
        causes = [w for w, there in (("measurement noise", self.noisy), ("motion blur", self.blurred)) if there]
        if causes:
            lines.append(f"Lag 0 is left out because of {' and '.join(causes)}. Phi is that of the observed variable.")
        if self.lifted_by:
            lines.append(f"The diffusion was made positive definite by a change of {100 * self.lifted_by:.2g} %.")
        lines += [self.agreement.disagreement if self.agreement else ""]
        lines += [found.summary() for found in (self.memory, self.choice, self.closure, self.held_out) if found]
        return "\n".join(line for line in lines if line)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _read(record: type[Record], state: Mapping[str, Any]) -> Record:
    """Build a record from the entries of `state` that it has, lists as arrays."""
    known = {f.name: state[f.name] for f in fields(record) if state.get(f.name) is not None}  # pyright: ignore
    return record(**{name: np.array(v, float) if isinstance(v, list) else v for name, v in known.items()})


def _convert(record: Any, convert: ToPhysical, *names: str) -> Any:
    """Convert the matrices of a record that are there."""
    there = {name: getattr(record, name, None) for name in names}
    return record and replace(record, **{name: convert(value) for name, value in there.items() if value is not None})
