"""Demonstrations: a reference system, a series of it, and a model learned from the series alone."""

from collections.abc import Callable
from dataclasses import dataclass

from ._core import checks
from ._core.types import Matrix
from .data import TimeSeries
from .estimate.score import KGMM
from .fit import fit
from .model import LangevinModel
from .systems import by_name
from .validate import Validation, validate


@dataclass(frozen=True)
class Demo:
    """How a reference system is sampled for its demonstration."""

    system: str
    dt: float
    members: int = 100
    samples: int = 1_000_000
    quick_samples: int = 100_000


DEMOS = {
    "wells": Demo("wells", dt=0.05),
    "scalar": Demo("scalar", dt=0.05),
    "lorenz63": Demo("lorenz63", dt=0.01),
}


@dataclass(frozen=True)
class DemoRun:
    """What a demonstration produced."""

    series: TimeSeries
    model: LangevinModel
    validation: Validation
    exact_mobility: Matrix | None


def run_demo(
    name: str = "wells",
    *,
    seed: int = 0,
    quick: bool = False,
    keep: Callable[[LangevinModel], None] = lambda model: None,
) -> DemoRun:
    """Simulate the system, learn a model from the series alone, validate it; `keep` gets the model once it exists.

    The three stages use different seeds. `quick` takes a tenth of the samples and a fixed noise level.
    """
    demo = DEMOS[checks.one_of("system", name, DEMOS)]
    system = by_name(demo.system)
    samples = demo.quick_samples if quick else demo.samples
    series = system.simulate(samples / demo.members * demo.dt, demo.dt, members=demo.members, seed=seed)
    model = fit(series, score=KGMM(noise_level=0.05) if quick else None, seed=seed + 1)
    keep(model)
    exact = system.mobility
    return DemoRun(series, model, validate(model, series, seed=seed + 2, exact_mobility=exact), exact)
