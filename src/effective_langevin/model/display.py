"""How a model is shown on a prompt and in a notebook."""

from typing import TYPE_CHECKING

from .._core import html
from .._core.format import listed, plus_minus, typeset

if TYPE_CHECKING:
    from .langevin import LangevinModel

_READABLE = 6


def text(model: "LangevinModel") -> str:
    """What the model is, and Phi with its errors where it can be read."""
    rows = ["  " + "   ".join(cells) for cells in _phi(model)]
    return (
        f"LangevinModel({listed(model.names)}; {model.mobility.method} mobility, noise level "
        f"{model.score.noise_level:g}, stein_error {model.score.stein_error:.3f})"
    ) + "".join(f"\n{line}" for line in (["  Phi =", *rows] if rows else []))


def page(model: "LangevinModel") -> str:
    """The same as HTML, with the slowest relaxation time."""
    unit, times = f" {model.time_unit}" if model.time_unit else "", model.timescales()
    facts = [
        ("equation", "dx = Φ s(x) dt + √2 Σ dW,  Σ Σᵀ = sym Φ"),
        ("score", f"noise level {model.score.noise_level:g}, Stein error {model.score.stein_error:.3f}"),
        ("mobility", f"{model.mobility.method}, from data every {model.dt:g}{unit}"),
        ("slowest relaxation", f"{plus_minus(float(times.value[0]), float(times.standard_error[0]))}{unit}"),
    ]
    rows = [[name, *map(typeset, cells)] for name, cells in zip(model.names, _phi(model))]
    phi = [html.table(["Φ", *model.names], rows)] if rows else []
    return html.card(f"LangevinModel of {listed(model.names)}", facts, *phi)


def _phi(model: "LangevinModel") -> list[list[str]]:
    """Phi with its errors as texts, if it is small enough to be read."""
    if model.dimension > _READABLE:
        return []
    pairs = zip(model.mobility.matrix, model.mobility.standard_error)
    return [[plus_minus(float(v), float(e)) for v, e in zip(values, errors)] for values, errors in pairs]
