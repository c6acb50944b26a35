"""How a model is shown on a prompt and in a notebook."""

from typing import TYPE_CHECKING

from .._core import html
from .._core.format import after_number, listed, plus_minus, typeset

if TYPE_CHECKING:
    from .langevin import LangevinModel

_READABLE = 6


def one_line(model: "LangevinModel") -> str:
    """Return what the model is."""
    return (
        f"LangevinModel({listed(model.names)}; {model.mobility.method} mobility, smoothing width "
        f"{model.score.noise_level:g}, stein_error {model.score.stein_error:.3f})"
    )


def summary(model: "LangevinModel") -> str:
    """Return what the model is, Phi with its errors where it can be read, and its analysis."""
    rows = ["  " + "   ".join(cells) for cells in _phi(model)]
    phi = ["  Phi =", *rows] if rows else []
    found = (model.timescales(), model.circulation(), model.entropy_production())
    return "\n".join([one_line(model), *phi, *(f"  {part.summary(model.time_unit)}" for part in found)])


def page(model: "LangevinModel") -> str:
    """Return the same as HTML, with the slowest relaxation time."""
    unit, times = after_number(model.time_unit), model.timescales()
    facts = [
        ("equation", "dx = Φ s(x) dt + √2 Σ dW,  Σ Σᵀ = sym Φ"),
        ("score", f"smoothing width {model.score.noise_level:g}, Stein error {model.score.stein_error:.3f}"),
        ("mobility", f"{model.mobility.method}, from data every {model.dt:g}{unit}"),
        ("slowest relaxation", f"{plus_minus(float(times.value[0]), float(times.standard_error[0]))}{unit}"),
    ]
    rows = [[name, *map(typeset, cells)] for name, cells in zip(model.names, _phi(model))]
    phi = [html.table(["Φ", *model.names], rows)] if rows else []
    return html.card(f"LangevinModel of {listed(model.names)}", facts, *phi)


def _phi(model: "LangevinModel") -> list[list[str]]:
    """Return Phi with its errors as texts, if it is small enough to be read."""
    if model.dimension > _READABLE:
        return []
    pairs = zip(model.mobility.matrix, model.mobility.standard_error)
    return [[plus_minus(float(v), float(e)) for v, e in zip(values, errors)] for values, errors in pairs]
