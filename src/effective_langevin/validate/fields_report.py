"""What the report shows of fields on a ring in place of figures and tables variable by variable."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from .._core.format import digits, short, typeset
from ..data import TimeSeries
from ..statistics.densities import BINS
from . import fields, fields_plots, plots
from .extremes import LEVELS, compare_return_times
from .fields_comparison import SIDES, FieldsComparison
from .spectra import compare_spectra
from .style import panels, styled

WINDOW = 15.0
MOST_FRAMES = 600
MOST_FIELDS = 3
_JOINED_BINS = 4
_PAIR_BINS, _FEW_PAIR_BINS, _PAIR_SAMPLES = 50, 25, 500_000


def ring_figures(comparison: FieldsComparison) -> dict[str, Any]:
    """Axes of every figure, by name; they replace those variable by variable."""
    makers: dict[str, Callable[[FieldsComparison], Any]] = {
        "hovmoeller": _hovmoeller,
        "pdfs": _densities,
        "pairs": _pairs,
        "acfs": _point_acfs,
        "spectra": _spectra,
        "return_times": _return_times,
        "mode_variances": _mode_variances,
        "mode_acfs": _mode_acfs,
        "phi_by_horizon": _phi_by_mode,
    }
    return {name: make(comparison) for name, make in makers.items()}


def field_rows(comparison: FieldsComparison) -> list[dict[str, Any]]:
    """One row per field, pooled over its points: mean, standard deviation, integral time, KL and ACF difference."""
    kl, acfs = comparison.kl(), comparison.point_acfs
    rows = []
    for c, (name, unit) in enumerate(zip(comparison.fields, comparison.units)):
        samples = [comparison.samples[side][:, c] for side in SIDES]
        std = [float(s.std()) for s in samples]
        times = [comparison.integral_times(acfs[side][:, c]) for side in SIDES]
        gap = np.sqrt(np.mean((acfs["data"][:, c] - acfs["model"][:, c]) ** 2))
        rows.append(
            {
                "name": f"{name} (all points)",
                "unit": unit,
                "mean": [typeset(digits(float(s.mean()), 0.1 * std[0])[0]) for s in samples],
                "std": [digits(value, 0.1 * std[0])[0] for value in std],
                "time": [digits(value, 0.1 * times[0])[0] for value in times],
                "kl": typeset(short(float(kl[c]))),
                "acf": short(float(gap)),
            }
        )
    return rows


def mode_rows(comparison: FieldsComparison) -> list[dict[str, Any]]:
    """One row per leading mode: share of variance, variances, integral times, ACF difference, Phi and its horizon."""
    found = comparison.validation.model.mobility.diagnostics
    rows = []
    for c in range(min(comparison.channels, MOST_FIELDS)):
        for k in comparison.leading(c):
            acfs = [comparison.mode_acfs[side][:, c, k] for side in SIDES]
            times = [comparison.integral_times(acf) for acf in acfs]
            chosen = found.get("chosen_horizon") if "phi_by_mode" in found else None
            rows.append(
                {
                    "name": f"{comparison.fields[c]}, {k}" if comparison.channels > 1 else str(k),
                    "share": f"{100 * comparison.shares(c)[k]:.0f} %",
                    "variance": [typeset(digits(float(comparison.variances[side][c, k]))[0]) for side in SIDES],
                    "time": [digits(value, 0.1 * times[0])[0] for value in times],
                    "acf": short(float(np.sqrt(np.mean((acfs[0] - acfs[1]) ** 2)))),
                    "phi": typeset(digits(float(_phi_of_modes(comparison)[c, k]))[0]),
                    "horizon": "" if chosen is None else short(float(chosen[k])),
                }
            )
    return rows


def _hovmoeller(comparison: FieldsComparison):
    """The same stretch of time of model and data, of the first fields."""
    v = comparison.validation
    longest = min(max(len(s) for s in series.segments) for series in (v.data, v.paths))
    frames = min(longest, MOST_FRAMES, round(WINDOW * float(v.integral_times.max()) / v.data.dt) + 1)
    pieces = {name: max(s.segments, key=len)[:frames] for name, s in (("model", v.paths), ("data", v.data))}
    if comparison.channels == 1:
        return fields_plots.plot_hovmoeller(
            v.data.dt * np.arange(frames),
            pieces,
            title=comparison.fields[0],
            unit=comparison.units[0],
            time_unit=v.data.time_unit,
        )
    shown = range(min(comparison.channels, MOST_FIELDS))
    fields = {
        f"{name}, {comparison.fields[c]} (standardised)": v.model.standardizer.to_standard(piece)[
            :, _field(comparison, c)
        ]
        for c in shown
        for name, piece in pieces.items()
    }
    return fields_plots.plot_hovmoeller(v.data.dt * np.arange(frames), fields, time_unit=v.data.time_unit)


@styled
def _densities(comparison: FieldsComparison):
    edges = comparison.edges[:MOST_FIELDS, ::_JOINED_BINS]
    densities = []
    for side in SIDES:
        counts = comparison.counts[side][:MOST_FIELDS]
        joined = counts.reshape(len(counts), -1, _JOINED_BINS).sum(axis=2)
        densities.append(joined / joined.sum(axis=1, keepdims=True) / np.diff(edges, axis=1))
    beside = panels(2, 2, 2.5, None) if len(edges) == 1 else None
    names, units = comparison.fields[:MOST_FIELDS], comparison.units[:MOST_FIELDS]
    axes = plots.plot_pdfs(edges, *densities, names=names, units=units, axes=beside)
    if beside is not None:
        beside[0].set_xlabel(beside[1].get_xlabel())
    return axes


def _pairs(comparison: FieldsComparison):
    """Joint densities of each field at two points, 1, 2 and 3 apart."""
    bins = _PAIR_BINS if comparison.validation.data.n_samples * comparison.points > _PAIR_SAMPLES else _FEW_PAIR_BINS
    width = 1 + len(fields.OFFSETS)
    edges, names, units, densities = [], [], [], {side: {} for side in SIDES}
    for c in range(min(comparison.channels, MOST_FIELDS)):
        stem = "u" if comparison.channels == 1 else comparison.fields[c].split(" … ")[0]
        edges += [np.linspace(comparison.edges[c, 0], comparison.edges[c, -1], bins + 1)] * width
        names += [f"{stem}(j)", *(f"{stem}(j + {offset})" for offset in fields.OFFSETS)]
        units += [comparison.units[c]] * width
        for side, counts in comparison.pair_counts(c, bins).items():
            for place, joint in enumerate(counts, 1):
                cell = np.outer(np.diff(edges[-1]), np.diff(edges[-1]))
                densities[side][c * width, c * width + place] = gaussian_filter(joint, 0.8) / joint.sum() / cell
    return plots.plot_pair_densities(np.array(edges), densities["data"], densities["model"], names=names, units=units)


def _point_acfs(comparison: FieldsComparison):
    shown = slice(None, MOST_FIELDS)
    errors = comparison.errors(lambda covariances: fields.point_acf(covariances, comparison.points)[:, shown])
    return fields_plots.plot_correlations(
        comparison.tau,
        {side: acf[:, shown] for side, acf in comparison.point_acfs.items()},
        errors=errors,
        titles=[f"{name}, mean over points" for name in comparison.fields[shown]],
        time_unit=comparison.validation.data.time_unit,
    )


def _spectra(comparison: FieldsComparison):
    """Spectra at a point, mean over the points of each field."""
    data, paths = _first_fields(comparison)
    found = compare_spectra(data, paths, float(comparison.validation.integral_times.max()), comparison.points)
    if found is None:
        return None
    errors = {"data_error": found.data_error, "model_error": found.model_error}
    return plots.plot_spectra(found.x, found.data, found.model, **errors, **_labels(comparison))


def _return_times(comparison: FieldsComparison):
    """Time between crossings at a point, pooled over the points of each field."""
    levels = comparison.edges[:MOST_FIELDS, :: BINS // (LEVELS - 1)]
    data, paths = _first_fields(comparison)
    found = compare_return_times(data, paths, levels, comparison.points)
    return plots.plot_return_times(**vars(found), **_labels(comparison))


def _first_fields(comparison: FieldsComparison) -> list[TimeSeries]:
    width, v = MOST_FIELDS * comparison.points, comparison.validation
    return [series.map(lambda s: s[:, :width]) for series in (v.data, v.paths)]


def _labels(comparison: FieldsComparison) -> dict[str, Any]:
    names, units = comparison.fields[:MOST_FIELDS], comparison.units[:MOST_FIELDS]
    return {"names": names, "units": units, "time_unit": comparison.validation.data.time_unit}


@styled
def _mode_variances(comparison: FieldsComparison):
    shown = range(min(comparison.channels, MOST_FIELDS))
    axes = panels(len(shown), len(shown), 2.7, None)
    errors = comparison.errors(lambda covariances: covariances[0])
    blur = fields.modes_of(comparison.validation.model.score.blur, comparison.channels)
    for c, ax in zip(shown, axes):
        fields_plots.plot_mode_variances(
            {side: variance[c] for side, variance in comparison.variances.items()},
            noise=blur[c],
            errors={side: error[c] for side, error in errors.items()},
            ax=ax,
        )
        ax.set_title(comparison.fields[c])
    return axes


def _mode_acfs(comparison: FieldsComparison):
    """Autocorrelations of the leading modes of the first fields."""
    shown = [(c, k) for c in range(min(comparison.channels, MOST_FIELDS)) for k in comparison.leading(c)]
    chosen, modes = (list(index) for index in zip(*shown))
    errors = comparison.errors(lambda covariances: fields.mode_acf(covariances)[:, chosen, modes])
    return fields_plots.plot_correlations(
        comparison.tau,
        {side: acf[:, chosen, modes] for side, acf in comparison.mode_acfs.items()},
        errors=errors,
        titles=[_mode_title(comparison, c, k) for c, k in shown],
        time_unit=comparison.validation.data.time_unit,
    )


def _phi_by_mode(comparison: FieldsComparison):
    """Phi_k(T) of the leading modes, from the diagnostics of the mobility; of several fields, the mean over them."""
    model, found = comparison.validation.model, comparison.validation.model.mobility.diagnostics
    if "phi_by_mode" in found:
        curves, used = np.asarray(found["phi_by_mode"], float), np.asarray(found["phi_of_mode"]) / comparison.channels
        chosen = np.asarray(found["chosen_horizon"], float)
    elif "phi_by_horizon" in found:
        standard = model.standardizer.mobility_to_standard(np.asarray(found["phi_by_horizon"], float))
        curves = fields.modes_of(standard, comparison.channels).mean(axis=1).T
        used, chosen = _phi_of_modes(comparison).mean(axis=0), None
    else:
        return None
    modes = [k for k in comparison.leading(0) if np.isfinite(curves[k]).all()]
    return fields_plots.plot_phi_by_mode(
        np.asarray(found["horizon"]),
        curves,
        used,
        chosen=chosen,
        modes=modes,
        titles=[f"k = {k}" for k in modes],
        time_unit=model.time_unit,
    )


def _phi_of_modes(comparison: FieldsComparison) -> np.ndarray:
    model = comparison.validation.model
    return fields.modes_of(model.standardizer.mobility_to_standard(model.mobility.matrix), comparison.channels)


def _mode_title(comparison: FieldsComparison, channel: int, mode: int) -> str:
    share = f"{100 * comparison.shares(channel)[mode]:.0f} %"
    if comparison.channels > 1:
        return f"{comparison.fields[channel]}, mode {mode} ({share})"
    return f"mode {mode} ({share} of the variance)"


def _field(comparison: FieldsComparison, channel: int) -> slice:
    return slice(channel * comparison.points, (channel + 1) * comparison.points)
