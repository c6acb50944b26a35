"""Names on the command line and in TOML files, and the objects that they stand for: the one table."""

import tomllib
from dataclasses import fields
from typing import Any

from .._core import checks
from ..data import preprocess as pp
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


def chosen(role: str, given: Any) -> Any:
    """The object meant by a name, a name with settings ("kgmm:cells=500,hidden=[64, 32]") or a table with its `kind`.

    A kind is also known by the name of its class. Settings are values of TOML; an object is returned as it is.
    """
    if isinstance(given, str):
        name, _, text = given.partition(":")
        given = {**_settings(role, text, given), "kind": name}
    if not isinstance(given, dict):
        return given
    settings = dict(given)
    kind = _kind(role, settings.pop("kind", ""))
    known = [field.name for field in fields(kind)]
    checks.known_keys(settings, known, f"{role} {kind.__name__}")
    return kind(**{name: _value(name, value) for name, value in settings.items()})


def _kind(role: str, name: Any) -> Any:
    known = {_plain(alias): kind for short, kind in CHOICES[role].items() for alias in (short, kind.__name__)}
    if _plain(str(name)) not in known:
        checks.one_of(role, name, CHOICES[role])
    return known[_plain(str(name))]


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "").replace("_", "")


def _settings(role: str, text: str, whole: str) -> dict[str, Any]:
    try:
        return tomllib.loads(f"settings = {{{text}}}")["settings"]
    except tomllib.TOMLDecodeError:
        example = "a name, or a name with settings such as kgmm:noise_level=0.05,cells=500"
        raise checks.refused(role, example, whole) from None


def _value(name: str, value: Any) -> Any:
    if name in CHOICES:
        return chosen(name, value)
    return tuple(value) if isinstance(value, list) else value
