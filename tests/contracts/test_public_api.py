import importlib
import inspect
import json
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import effective_langevin as el

PUBLIC = [
    "KGMM",
    "MLP",
    "ArgumentError",
    "CorrelationFit",
    "DataError",
    "Delays",
    "DenoisingScore",
    "Diagnosis",
    "DivergenceError",
    "EffectiveLangevinError",
    "EstimateWarning",
    "EulerMaruyama",
    "ExponentialEuler",
    "Extrapolated",
    "Finding",
    "FiniteVolume",
    "Gaussian",
    "IntegratedResponse",
    "LangevinEstimator",
    "LangevinModel",
    "LeimkuhlerMatthews",
    "LogCorrelation",
    "Mobility",
    "ModelFileError",
    "QuadraticVariation",
    "RecordSplit",
    "Standardizer",
    "StateDependent",
    "StochasticHeun",
    "StochasticMidpoint",
    "TimeSeries",
    "Translations",
    "TranslationsAndReflections",
    "UNet1D",
    "Validation",
    "Velocity",
    "compare",
    "diagnose",
    "fit",
    "fit_many",
    "hindcast",
    "load",
    "match_variances",
    "plots",
    "predict_held_out",
    "preprocess",
    "read",
    "systems",
    "validate",
]

FRESH = """
import json, sys
import jax
before = dict(jax.config.values)
import effective_langevin as el
heavy = ["matplotlib", "xarray", "pandas", "jinja2", "typer", "rich", "h5netcdf", "dask"]
imported = [name for name in heavy if name in sys.modules]
el.systems.AsymmetricWells().drift([[0.0, 0.0]])
after = dict(jax.config.values)
print(json.dumps({
    "imported": imported,
    "changed": sorted(k for k in before if after[k] != before[k]),
    "x64": jax.config.jax_enable_x64,
    "dtype": str(jax.numpy.ones(1).dtype),
}))
"""
TIMED = "import time; a = time.process_time(); import effective_langevin; print(time.process_time() - a)"


def in_a_fresh_interpreter(code):
    """What the last line printed by `code` says, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def fresh():
    """What importing the package, and evaluating a system once, does to a fresh interpreter."""
    return in_a_fresh_interpreter(FRESH)


def test_the_public_names_are_these():
    """A change here is a change for every user: make it on purpose and write it in the changelog."""
    assert sorted(el.__all__) == sorted(PUBLIC)
    assert len(el.__all__) <= 49
    assert all(hasattr(el, name) for name in el.__all__)


def test_every_module_can_be_imported():
    names = [module.name for module in pkgutil.walk_packages(el.__path__, "effective_langevin.")]
    assert len(names) > 50
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name)


@pytest.mark.integration
def test_importing_takes_less_than_two_seconds():
    """Of processor time; on a slow or busy machine, two and a half times as long as equinox.

    Other work on the machine adds to both, so that each is measured right after the other; one of five must do.
    """
    codes = (TIMED, TIMED.replace("effective_langevin", "equinox"))
    pairs = ([in_a_fresh_interpreter(code) for code in codes] for _ in range(5))
    assert any(ours < 2.0 or ours / equinox < 2.5 for ours, equinox in pairs)


def test_importing_and_evaluating_a_system_do_not_change_the_configuration_of_jax(fresh):
    """The systems work in double precision on the way, which must not leak."""
    assert fresh["changed"] == []
    assert fresh["x64"] is False
    assert fresh["dtype"] == "float32"


def test_importing_does_not_import_what_only_reports_need(fresh):
    assert fresh["imported"] == []


def public_members():
    for name in el.__all__:
        thing = getattr(el, name)
        yield name, thing
        if inspect.ismodule(thing):
            yield from ((f"{name}.{n}", getattr(thing, n)) for n in thing.__all__)
        elif inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "thing"), list(public_members()), ids=lambda v: v if isinstance(v, str) else "")
def test_everything_public_has_a_docstring(name, thing):
    documentation = inspect.getdoc(thing)
    assert documentation
    # A dataclass without a docstring shows its signature instead.
    assert not documentation.startswith(f"{name}(")


def test_errors_are_one_family_and_also_the_built_in_kind():
    for error in (el.ArgumentError, el.DataError, el.ModelFileError, el.DivergenceError):
        assert issubclass(error, el.EffectiveLangevinError)
    assert issubclass(el.ArgumentError, ValueError)
    assert issubclass(el.EstimateWarning, UserWarning)


def test_only_the_estimator_has_a_method_named_score():
    """scikit-learn gives that name another meaning; a field that holds the score is fine."""
    classes = [getattr(el, name) for name in el.__all__ if inspect.isclass(getattr(el, name))]
    assert [c for c in classes if callable(vars(c).get("score"))] == [el.LangevinEstimator]


BAD_VALUES = [
    (el.KGMM, "noise_level", 0),
    (el.KGMM, "noise_level", -0.1),
    (el.KGMM, "noise_level", "auto"),
    (el.KGMM, "noise_level", np.nan),
    (el.KGMM, "cells", 1),
    (el.KGMM, "cells", 10.5),
    (el.KGMM, "hidden", (0,)),
    (el.KGMM, "hidden", 64),
    (el.KGMM, "max_draws", 1),
    (el.KGMM, "steps", 0),
    (el.KGMM, "steps", True),
    (el.DenoisingScore, "network", "MLP"),
    (el.DenoisingScore, "noise_level", 0.0),
    (el.DenoisingScore, "batch", 0),
    (el.DenoisingScore, "epochs", 1.5),
    (el.DenoisingScore, "epochs", 0),
    (el.DenoisingScore, "epoch_samples", 0),
    (el.DenoisingScore, "patience", 0),
    (el.DenoisingScore, "average", 1.0),
    (el.DenoisingScore, "final_rate", 0.0),
    (el.DenoisingScore, "learning_rate", -1e-3),
    (el.DenoisingScore, "learning_rate", None),
    (el.MLP, "hidden", (64, 0)),
    (el.MLP, "hidden", (64, "32")),
    (el.MLP, "hidden", 64),
    (el.UNet1D, "multipliers", (1, 0)),
    (el.UNet1D, "multipliers", 2),
    (el.UNet1D, "base", 0),
    (el.UNet1D, "kernel", 2.5),
    (el.UNet1D, "channels", 0),
    (el.UNet1D, "normalization", "layer"),
    (el.Translations, "channels", 0),
    (el.TranslationsAndReflections, "channels", 1.5),
    (el.TranslationsAndReflections, "parity", 0),
    (el.TranslationsAndReflections, "parity", (1, -1)),
    (el.TranslationsAndReflections, "parity", "odd"),
    (el.IntegratedResponse, "lags", 2),
    (el.IntegratedResponse, "lags", 10.0),
    (el.FiniteVolume, "min_mass", 0),
    (el.FiniteVolume, "min_mass", 1.0),
    (el.FiniteVolume, "min_mass", np.nan),
    (el.FiniteVolume, "correction", "kappa"),
    (el.FiniteVolume, "correction", None),
    (el.FiniteVolume, "cells", 0),
    (el.QuadraticVariation, "lag", 0),
    (el.QuadraticVariation, "lag", 1.0),
    (el.CorrelationFit, "degree", 0),
    (el.CorrelationFit, "lags", 2),
    (el.LogCorrelation, "lag", -1),
]


@pytest.mark.parametrize(
    ("strategy", "argument", "value"), BAD_VALUES, ids=[f"{s.__name__}-{a}-{v}" for s, a, v in BAD_VALUES]
)
def test_a_strategy_refuses_a_value_that_cannot_work_when_it_is_made(strategy, argument, value):
    with pytest.raises(el.ArgumentError, match=f"Argument `{argument}`"):
        strategy(**{argument: value})


def test_numbers_of_numpy_are_numbers():
    assert el.KGMM(noise_level=np.float64(0.1), cells=np.int64(10), hidden=(np.int32(8),)).cells == 10
    assert el.FiniteVolume(min_mass=np.float32(0.5)).min_mass == 0.5


@pytest.mark.parametrize("argument", ["score", "mobility", "symmetry"])
def test_fit_asks_for_strategies_as_objects(argument, linear_series):
    arguments = {"score": el.Gaussian(), "mobility": el.QuadraticVariation(), argument: "KGMM"}
    with pytest.raises(el.ArgumentError, match=f"Argument `{argument}`"):
        el.fit(linear_series, **arguments)
