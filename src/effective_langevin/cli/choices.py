"""Names on the command line and in TOML files, and the objects that they stand for: the one table."""

import tomllib
from dataclasses import fields
from typing import Any

from .._core import checks
from ..data import preprocess as pp
from ..estimate.closure.state_dependent import StateDependent
from ..estimate.mobility import CorrelationFit, FiniteVolume, IntegratedResponse, LogCorrelation, QuadraticVariation
from ..estimate.score import KGMM, MLP, DenoisingScore, Extrapolated, Gaussian, UNet1D
from ..estimate.symmetry import NoSymmetry, Translations, TranslationsAndReflections

CHOICES: dict[str, dict[str, Any]] = {
    "score": {"kgmm": KGMM, "denoising": DenoisingScore, "gaussian": Gaussian, "extrapolated": Extrapolated},
    "network": {"mlp": MLP, "unet": UNet1D},
    "mobility": {
        "integrated-response": IntegratedResponse,
        "finite-volume": FiniteVolume,
        "quadratic-variation": QuadraticVariation,
        "correlation-fit": CorrelationFit,
        "log-correlation": LogCorrelation,
        "state-dependent": StateDependent,
    },
    "symmetry": {
        "none": NoSymmetry,
        "translations": Translations,
        "translations-and-reflections": TranslationsAndReflections,
    },
    "preprocess": {
        "log": pp.Log,
        "box-cox": pp.BoxCox,
        "detrend": pp.Detrend,
        "deseason": pp.RemoveSeasonalCycle,
        "periodic": pp.Periodic,
        "pca": pp.PCA,
        "delay": pp.DelayEmbedding,
        "phase": pp.PhaseAugmentation,
    },
}


def choose(role: str, given: Any) -> Any:
    """Return the object meant by a name, a name with settings ("kgmm:cells=500,hidden=[64, 32]") or a table.

    A table holds its `kind`, known also by the name of the class. Settings are values of TOML; an object is returned
    as it is.
    """
    if isinstance(given, str):
        name, _, text = given.partition(":")
        try:
            given = {**tomllib.loads(f"settings = {{{text}}}")["settings"], "kind": name}
        except tomllib.TOMLDecodeError:
            example = "a name, or a name with settings such as kgmm:noise_level=0.05,cells=500"
            raise checks.refused(role, example, given) from None
    if not isinstance(given, dict):
        return given
    settings = dict(given)
    name = settings.pop("kind", "")
    known = {_plain(alias): kind for short, kind in CHOICES[role].items() for alias in (short, kind.__name__)}
    if _plain(name) not in known:
        checks.one_of(role, name, CHOICES[role])
    kind = known[_plain(name)]
    checks.known_keys(settings, [field.name for field in fields(kind)], f"{role} {kind.__name__}")
    for key, value in settings.items():
        settings[key] = choose(key, value) if key in CHOICES else tuple(value) if isinstance(value, list) else value
    return kind(**settings)


def _plain(name: Any) -> str:
    return str(name).strip().lower().replace("-", "").replace("_", "")
