"""Model files cut short, with flipped bits and edited on purpose: the same model, or one sentence."""

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import effective_langevin as el

from ..robustness import Case

CUTS = 30


class Parts:
    """A model file taken apart: its header, what the header says of the model, and the bytes of its arrays."""

    def __init__(self, content: bytes):
        size = 8 + int.from_bytes(content[:8], "little")
        self.header, self.data = json.loads(content[8:size]), content[size:]
        self.metadata = self.header.pop("__metadata__")
        self.metadata.pop("sha256", None)  # as in a file from before there was a checksum, or one made by an attacker

    def joined(self) -> bytes:
        text = json.dumps({"__metadata__": self.metadata, **self.header}).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + self.data

    def array(self, name: str) -> np.ndarray:
        first, last = self.header[name]["data_offsets"]
        kind = {"F64": "<f8", "F32": "<f4"}[self.header[name]["dtype"]]
        return np.frombuffer(self.data[first:last], kind).reshape(self.header[name]["shape"])


def _said(*path: str, value: Any) -> Callable[[Parts], None]:
    """Return an edit of what the header says of the model."""

    def edit(parts: Parts) -> None:
        told = json.loads(parts.metadata["model"])
        inner = told
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        parts.metadata["model"] = json.dumps(told)

    return edit


def _noted(**metadata: str | None) -> Callable[[Parts], None]:
    """Return an edit of the metadata; None removes an entry."""
    return lambda parts: setattr(
        parts, "metadata", {k: v for k, v in {**parts.metadata, **metadata}.items() if v is not None}
    )


def _valued(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Parts], None]:
    """Return an edit of the numbers of an array."""

    def edit(parts: Parts) -> None:
        old = parts.array(name)
        first, last = parts.header[name]["data_offsets"]
        parts.data = parts.data[:first] + change(old.copy()).astype(old.dtype).tobytes() + parts.data[last:]

    return edit


def _laid(name: str, change: Callable[[dict, str], None]) -> Callable[[Parts], None]:
    """Return an edit of where and in which shape arrays are."""
    return lambda parts: change(parts.header, name)


def _first(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


def _swap(header: dict, names: str) -> None:
    one, other = names.split()
    header[one], header[other] = header[other], header[one]


def _rename(header: dict, name: str) -> None:
    header[f"{name}_"] = header.pop(name)


def _flatten(header: dict, name: str) -> None:
    header[name]["shape"] = [int(np.prod(header[name]["shape"]))]


def _one_column(header: dict, name: str) -> None:
    header[name]["shape"] = [int(np.prod(header[name]["shape"])), 1]


_DEEP = (
    '{"kind":"Chain","names":["T","h"],"units":["",""],"time_unit":"","steps":[' * 300 + '{"kind":"Log"}' + "]}" * 300
)
_KEY_ARRAYS = ("mobility.matrix", "score.covariance", "units.std", "units.mean", "states")

REFUSED: dict[str, Callable[[Parts], None]] = {
    **{f"names {n}": _said("names", value=v) for n, v in {
        "a million": ["a"] * 10**6, "none": [], "a text": "ab", "null": None, "too many": ["a", "b", "c"], "one": ["a"],
    }.items()},
    "units too few": _said("unit_labels", value=[]),
    "time unit a number": _said("time_unit", value=3),
    **{f"dt {v}": _said("dt", value=v) for v in (0, -1, float("nan"), "0.1", None, True)},
    **{f"start {v}": _said("start", value=v) for v in ("x", float("nan"), None)},
    **{f"noise level {v}": _said("score", "noise_level", value=v) for v in (float("nan"), -1.0, "x", None)},
    **{f"network {n}": _said("network", value=v) for n, v in {
        "of 1e9 neurons": {"kind": "MLP", "hidden": [10**9]}, "40000 x 40000": {"kind": "MLP", "hidden": [40000] * 2},
        "os.system": {"kind": "os.system", "cmd": "touch EXECUTED"}, "of another kind": {"kind": "UNet1D"}, "list": [],
        "huge grid": {"kind": "OnGrid", "shape": [10**6, 10**6], "periods": [1.0, 1.0]},
        "negative grid": {"kind": "OnGrid", "shape": [-5], "periods": [1.0]}, "texts": {"kind": "MLP", "hidden": ["a"]},
        "sum of many": {"kind": "Sum", "networks": [{"kind": "MLP", "hidden": [2]}] * 300},
    }.items()},
    **{f"header {n}": _noted(model=v) for n, v in {
        "cut": "{", "list": "[]", "deep": "[" * 10**5, "number": "7", "null": "null", "gone": None,
    }.items()},
    **{f"version {n}": _noted(format_version=v) for n, v in {
        "0": "0", "-1": "-1", "text": "newest", "long": "9" * 10**5, "superscript": "\u00b2", "gone": None,
    }.items()},
    "format of another": _noted(format="pt"),
    "score a list": _said("score", value=[]),
    "evidence a list": _said("mobility", "diagnostics", value=[]),
    "provenance null": _said("provenance", value=None),
    "provenance list": _said("provenance", value=[1]),
    **{f"transform {n}": _said("transform", value=v) for n, v in {
        "unknown": {"kind": "Pickle"}, "text": "x", "deep": json.loads(_DEEP), "without array": {"kind": "Log", "names":
        {"array": "none"}}, "empty chain": {"kind": "Chain", "names": ["T", "h"], "units": ["", ""], "time_unit": "",
        "steps": []},
    }.items()},
    **{f"{name} NaN": _valued(name, _first(np.nan)) for name in (*_KEY_ARRAYS, "mobility.replicas")},
    **{f"{name} infinite": _valued(name, _first(np.inf)) for name in _KEY_ARRAYS},
    **{f"{name} zero": _valued(name, np.zeros_like) for name in _KEY_ARRAYS[:3]},
    **{f"{name} negative": _valued(name, np.negative) for name in _KEY_ARRAYS[:3]},
    **{f"{name} gone": _laid(name, _rename) for name in (*_KEY_ARRAYS, "mobility.replicas")},
    **{f"{name} flat": _laid(name, _flatten) for name in ("mobility.matrix", "score.covariance", "states")},
    "states in one column": _laid("states", _one_column),
    "matrix and error swapped": _laid("mobility.matrix mobility.standard_error", _swap),
    "mean and std swapped": _laid("units.mean units.std", _swap),
    "mobility too large": _valued("mobility.matrix", lambda a: 1e30 * a),
}  # fmt: skip
HARMLESS: dict[str, Callable[[Parts], None]] = {
    "more about the score": _said("score", "colour", value=1),
    "more about the mobility": _said("mobility", "x", value=1),
    "no evidence": _said("mobility", "diagnostics", value={}),
    "no checksum": lambda parts: None,
}


def models(folder: Path, count: int) -> Iterator[Case]:
    """Yield damaged copies of two model files, one of them with a network, and edited ones without their checksum."""
    rng = np.random.default_rng(0)
    for name, good in _write_good(folder).items():
        content, answer = (folder / f"{name}.safetensors").read_bytes(), _answer(good)
        path = folder / "damaged.safetensors"

        def case(what: str, content: bytes, expected: str = "either", answer=answer, path=path, name=name) -> Case:
            return Case(f"{name}: {what}", partial(_try, path, content, answer), expected)

        for cut in range(CUTS):
            yield case(f"cut {cut}", content[: len(content) * cut // CUTS], "refused")
        header = 8 + int.from_bytes(content[:8], "little")
        for flip in range(count // 2):
            bits = bytearray(content)
            for place in rng.integers(header if flip % 3 else len(bits), size=1 + 3 * (flip % 2)):
                bits[place] ^= 1 << int(rng.integers(8))
            yield case(f"flip {flip}", bytes(bits))
        for edits, expected in ((REFUSED, "refused"), (HARMLESS, "right")):
            for what, edit in edits.items():
                parts = copy.deepcopy(Parts(content))
                edit(parts)
                yield case(what, parts.joined(), expected)


def _write_good(folder: Path) -> dict[str, el.LangevinModel]:
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(60.0, dt=0.1, seed=1)
    series = el.TimeSeries(series.values * [2.0, 0.5] + [-3.0, 1.0], 0.1, names=["T", "h"])
    scores = {"gaussian": el.Gaussian(), "network": el.KGMM(noise_level=0.3, cells=20, hidden=(8,), steps=50)}
    good = {name: el.fit(series, score=s, mobility=el.QuadraticVariation()) for name, s in scores.items()}
    for name, model in good.items():
        model.save(folder / f"{name}.safetensors")
    return good


def _answer(model: el.LangevinModel) -> tuple[Any, ...]:
    """Return what a model says: it must not change without a word."""
    paths = model.simulate(0.5, members=2, seed=1)
    return paths.names, paths.dt, repr(model), paths.values.tobytes(), model.timescales().value.tobytes()


def _try(path: Path, content: bytes, expected: tuple[Any, ...]) -> None:
    path.write_bytes(content)
    assert _answer(el.load(path)) == expected, "loads as another model"
