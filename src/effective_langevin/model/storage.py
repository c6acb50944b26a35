"""Models on disk: safetensors with a JSON header, no pickle.

The header says what the file is, its format version, the architecture of the score and everything that is not an
array; the arrays are stored by the name of their place in the model. A checksum covers both.
"""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .._core import checks, files
from .._core.errors import ModelFileError
from .._core.matrices import square_root
from ..data import Standardizer
from ..data.preprocess.base import from_dict, pack, unpack
from ..data.preprocess.chain import join
from ..data.preprocess.pointwise import FittedPeriodic
from ..estimate.closure.storage import describe_fields, rebuild_fields
from ..estimate.mobility import Mobility
from ..estimate.mobility.evidence import MobilityEvidence
from ..estimate.networks import describe_network, rebuild_network
from ..estimate.score import Score, ScoreEvidence, ScoreFit
from ..estimate.space import StateSpace

if TYPE_CHECKING:
    from .langevin import LangevinModel

FORMAT = "effective-langevin"
FORMAT_VERSION = 2
_WITHOUT_FIELDS = 1  # written for models with a constant mobility, so that earlier versions read them
_OPTIONAL = ("frame", "restoring", "velocity_unit")
_OF_MOBILITY = ("matrix", "standard_error", "replicas", "covariances")
_MAY_BE_UNKNOWN = ("score.stein", "mobility.standard_error", "preprocess.")  # arrays that may hold NaN
# What a file that is no model can cause on the way from its bytes to a model.
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError)


def write(path: str | os.PathLike, model: "LangevinModel") -> None:
    """Write the file whole or not at all: a full disk or an interrupt leaves the old file intact."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ModelFileError(f"Cannot save to {path}: the folder {path.parent} does not exist.")
    arrays, header = _dismantle(model)
    version = _WITHOUT_FIELDS if model.fields is None else FORMAT_VERSION
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {"format": FORMAT, "format_version": str(version), "model": json.dumps(header)}
    metadata["sha256"] = _checksum(arrays, metadata)
    try:
        with files.replaced(path) as temporary:
            temporary.write_bytes(_ordered(save(arrays, metadata)))
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"Cannot write {path}: {error}.") from error


def fingerprint(model: "LangevinModel") -> str:
    """Return a digest of everything that makes a model."""
    arrays, header = _dismantle(model)
    return _checksum({name: np.asarray(array) for name, array in arrays.items()}, {"model": json.dumps(header)})


def read(path: str | os.PathLike) -> dict[str, Any]:
    """Return the fields of a model written by `write`."""
    arrays, header = _parse(path)
    try:
        return _assemble(arrays, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except _DAMAGE as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise ModelFileError(f"{path} lacks a part of the model or holds one that cannot be: {reason}.") from error


def _ordered(content: bytes) -> bytes:
    """The same file with its metadata in order, which the library shuffles: equal models are equal files."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[start:]


def _parse(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the header of a file made by `write`."""
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(
            f"{path} is not a readable model file (damaged, truncated or of another kind): {error}."
        ) from error
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file, but not a model written by effective-langevin.")
    written_with = metadata.get("format_version", "")
    if not (written_with.isascii() and written_with.isdecimal() and int(written_with[:9]) > 0):
        raise ModelFileError(f"The header of {path} is damaged: its format version is {written_with[:20]!r}.")
    if int(written_with[:9]) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {written_with[:9]}; this version of effective-langevin reads up to "
            f"{FORMAT_VERSION}. Upgrade effective-langevin."
        )
    if metadata.pop("sha256", None) not in (None, _checksum(arrays, metadata)):  # None: written before there was one
        raise ModelFileError(
            f"{path} was changed after it was written: its checksum is wrong. Copy it again, or refit."
        )
    try:
        return arrays, checks.instance_of("model", json.loads(metadata.get("model", "")), (dict,))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The header of {path} is damaged: {error}.") from error


def _checksum(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> str:
    """Return a digest of everything that makes the model."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _dismantle(model: "LangevinModel") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    score, mobility = model.score, model.mobility
    arrays = {
        f"score.function{jax.tree_util.keystr(path)}": np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(score.function)
    }
    arrays |= {
        "score.stein": score.stein,
        "score.covariance": score.covariance,
        **{f"score.{name}": value for name in _OPTIONAL if (value := getattr(score, name)) is not None},
        "units.mean": model.standardizer.mean,
        "units.std": model.standardizer.std,
        **{f"mobility.{name}": getattr(mobility, name) for name in _OF_MOBILITY},
        "states": model.states,
    }
    transform, stored = (None, {}) if model.transform is None else pack(model.transform.to_dict())
    fields, values = (None, {}) if model.fields is None else describe_fields(model.fields)
    arrays |= stored | values
    network = score.function.network
    header = {
        "network": None if network is None else describe_network(network),
        "score": {
            "noise_level": score.noise_level,
            "stein_standard_error": score.stein_standard_error,
            "diagnostics": score.evidence.to_dict(),
        },
        "mobility": {"method": mobility.method, "diagnostics": mobility.diagnostics},
        "dt": model.dt,
        "names": model.names,
        "unit_labels": model.units,
        "time_unit": model.time_unit,
        "provenance": model.provenance,
        "transform": transform,
        "start": model.start,
        "calendar": model.calendar,
        "space": model.space.to_dict(),
    }
    return arrays, header if fields is None else {**header, "fields": fields}


def _assemble(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> dict[str, Any]:
    names = checks.texts("names", header["names"], len(arrays["units.std"]), ())
    _check_arrays(arrays, len(names))

    def build() -> Score:
        blank = Score.linear(np.eye(len(names)))
        if header["network"] is not None:
            network, zeros = rebuild_network(header["network"], len(names)), np.zeros(len(names))
            blank = Score.learned(network, np.eye(len(names)), zeros, zeros)
        return blank.in_frame(arrays.get("score.frame"))

    leaves, structure = jax.tree_util.tree_flatten_with_path(eqx.filter_eval_shape(build))
    stored = [
        jnp.asarray(arrays[f"score.function{jax.tree_util.keystr(path)}"]).reshape(leaf.shape) for path, leaf in leaves
    ]
    score = ScoreFit(
        jax.tree_util.tree_unflatten(structure, stored),
        stein=arrays["score.stein"],
        covariance=arrays["score.covariance"],
        **{name: arrays.get(f"score.{name}") for name in _OPTIONAL},
        noise_level=checks.non_negative_number("noise_level", header["score"]["noise_level"]),
        stein_standard_error=header["score"]["stein_standard_error"],
        evidence=ScoreEvidence.from_dict(header["score"]["diagnostics"]),
    )
    parts = {name: arrays[f"mobility.{name}"] for name in _OF_MOBILITY}
    evidence = MobilityEvidence.from_dict(header["mobility"]["diagnostics"])
    if "fields" not in header:
        square_root(parts["matrix"] + parts["matrix"].T)  # refuses a diffusion with a negative eigenvalue
    mobility = Mobility(**parts, method=header["mobility"]["method"], evidence=evidence)
    return {
        "standardizer": Standardizer(arrays["units.mean"], arrays["units.std"]),
        "score": score,
        "mobility": mobility,
        "dt": checks.positive_number("dt", header["dt"]),
        "names": names,
        "units": checks.texts("units", header["unit_labels"], len(names), ()),
        "time_unit": checks.instance_of("time_unit", header["time_unit"], (str,)),
        "states": arrays["states"],
        "provenance": checks.instance_of("provenance", header["provenance"], (dict,)),
        "start": checks.number_or_numbers("start", header.get("start", 0.0), 1, "model")[0],
        "calendar": checks.instance_of("calendar", header.get("calendar", ""), (str,)),
        "fields": rebuild_fields(header["fields"], arrays) if "fields" in header else None,
        **_space_and_transform(header, arrays),
    }


def _check_arrays(arrays: dict[str, np.ndarray], size: int) -> None:
    """Refuse arrays that no model of so many variables can have."""
    matrices = ("mobility.matrix", "mobility.standard_error", "score.covariance", "score.stein")
    shapes = {**dict.fromkeys(matrices, (size, size)), **dict.fromkeys(("units.mean", "units.std"), (size,))}
    shapes |= {"states": (None, size), "mobility.replicas": (None, None, None)}
    for name, shape in shapes.items():
        array = checks.shaped_array(name, arrays[name], shape, str(shape))
        if name not in _MAY_BE_UNKNOWN:
            checks.finite(name, array)
    for name, array in arrays.items():
        if np.isnan(array).any() and not name.startswith(_MAY_BE_UNKNOWN):
            raise checks.refused(name, "an array without NaN", "NaN")
    checks.integer_at_least("states (their number)", len(arrays["states"]), 1)
    checks.positive_number("units.std", float(arrays["units.std"].min()))
    checks.positive_number("score.covariance", float(np.linalg.eigvalsh(arrays["score.covariance"])[0]))
    checks.positive_number(
        "mobility.matrix", float(np.abs(arrays["mobility.matrix"] + arrays["mobility.matrix"].T).max())
    )


def _space_and_transform(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return both parts; before the space was stored, a last `Periodic` and the provenance said what it is."""
    stored = header.get("transform")
    transform = None if stored is None else from_dict(unpack(stored, arrays))
    if "space" in header:
        return {"space": StateSpace.from_dict(header["space"]), "transform": transform}
    steps = getattr(transform, "steps", () if transform is None else (transform,))
    size, symmetry = len(header["names"]), header["provenance"].get("symmetry") or {"kind": "NoSymmetry"}
    space = StateSpace.from_dict({"periods": (None,) * size, "symmetry": symmetry})
    last = steps[-1] if steps else None
    if isinstance(last, FittedPeriodic) and list(last.names) == list(header["names"]):
        space = replace(space, periods=last.periods, lowest=last.all_lowest)
        transform = join(steps[:-1]) if steps[:-1] else None
    return {"space": space, "transform": transform}
