"""Fields as plain data and arrays by name, and the way back."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..._core.errors import ModelFileError
from .circle import CircleCurrent
from .fields import ConstantDiffusion, Fields, RotatedScore, SharedCurrent
from .polynomials import InertialCurrent, PolynomialCurrent, PolynomialDiffusion

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        CircleCurrent,
        ConstantDiffusion,
        InertialCurrent,
        PolynomialCurrent,
        PolynomialDiffusion,
        RotatedScore,
        SharedCurrent,
    )
}
_PARTS = ("current", "diffusion")


def describe_fields(fields: Fields) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the kinds and settings of the fields, and their arrays with those of the replicas."""
    header, arrays = {}, {}
    drawn = dict(zip(_PARTS, fields.replicas or (None, None)))
    for part in _PARTS:
        field = getattr(fields, part)
        if type(field).__name__ not in _KINDS:
            raise ModelFileError(f"A model with a field of class {type(field).__name__} cannot be saved.")
        static = {f.name: getattr(field, f.name) for f in dataclasses.fields(field) if f.metadata.get("static")}
        header[part] = {"kind": type(field).__name__, **static}
        for name in _array_names(type(field)):
            arrays[f"fields.{part}.{name}"] = np.asarray(getattr(field, name))
            if drawn[part] is not None:
                arrays[f"fields.replicas.{part}.{name}"] = np.asarray(getattr(drawn[part], name))
    return header, arrays


def rebuild_fields(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Fields:
    """Undo `describe_fields`."""

    def read(prefix: str, part: str) -> Any:
        settings: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in header[part].items()}
        kind = _KINDS[settings.pop("kind")]
        return kind(**{name: jnp.asarray(arrays[f"{prefix}{part}.{name}"]) for name in _array_names(kind)}, **settings)

    replicas: Any = None
    if any(name.startswith("fields.replicas.") for name in arrays):
        replicas = tuple(read("fields.replicas.", part) for part in _PARTS)
    return Fields(read("fields.", "current"), read("fields.", "diffusion"), replicas)


def _array_names(kind: type) -> list[str]:
    return [f.name for f in dataclasses.fields(kind) if not f.metadata.get("static")]
