"""The figure of a diagnosis: draws only, everything was computed by `diagnose`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from ..diagnose import Diagnosis
from .style import DATA, band, label, panels, short, styled

# Okabe and Ito: told apart by all kinds of colour vision.
COLOURS = (DATA, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
LEVEL_COLOURS = {"ok": "#009E73", "note": "#56B4E9", "warning": "#E69F00", "stop": "#D55E00"}
_GUIDE = "#888888"
_MOST_BANDS, _MOST_SPECTRA, _MOST_LINES = 3, 3, 3


@styled
def plot_diagnosis(diagnosis: Diagnosis, *, axes=None) -> np.ndarray:
    """Six panels: quadratic variation, autocorrelations, spectra, means and spreads along the record, findings."""
    axes = panels(6, 3, 2.7, axes)
    curves, series = diagnosis.curves, diagnosis.series
    names, unit = [short(series["names"][v]) for v in curves["variables"]], series["time_unit"]
    colours = {int(v): (name, colour) for v, name, colour in zip(curves["variables"], names, COLOURS)}
    _draw_variation(axes[0], curves["variation"], unit)
    _draw_acfs(axes[1], curves["acf"], names, unit)
    _draw_spectra(axes[2], curves["spectra"], curves["lines"], colours, unit)
    _draw_blocks(axes[3], curves["blocks"], "mean", names, unit)
    _draw_blocks(axes[4], curves["blocks"], "spread", names, unit)
    _draw_findings(axes[5], diagnosis)
    return axes


def _draw_variation(ax: Axes, curve: Mapping[str, np.ndarray], unit: str) -> None:
    """tr QV(h)/h, and what a diffusion, smooth motion and noise would do from the first lag on."""
    tau, ratio = curve["tau"], curve["ratio"]
    ax.errorbar(tau, ratio, 2 * curve["error"], color=DATA, marker="o", markersize=3.5, capsize=2, zorder=3)
    ax.set(xscale="log", yscale="log", xlabel=label("lag h", unit), title="Quadratic variation / h")
    low, high = 0.5 * min(ratio.min(), 0.15), 2 * max(ratio.max(), 2.5)
    ax.set(ylim=(low, high), ylabel="relative to the first lag")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ends = {1: high, 0: np.inf, -1: 1 / low}
    places = {1: ((5, -10), "left"), 0: ((0, 4), "right"), -1: ((-9, 8), "right")}
    for slope, word in ((1, "smooth"), (0, "diffusion"), (-1, "noise")):
        end = min(tau[-1] / tau[0], ends[slope])
        ax.plot([tau[0], tau[0] * end], [1, end**slope], color=_GUIDE, linestyle="--", linewidth=0.9, zorder=1)
        offset, side = places[slope]
        ax.annotate(
            word,
            (tau[0] * end, end ** float(slope)),
            xytext=offset,
            textcoords="offset points",
            ha=side,
            fontsize=8,
            color="#555555",
        )


def _draw_acfs(ax: Axes, curve: Mapping[str, Any], names: Sequence[str], unit: str) -> None:
    """Autocorrelations of the variables shown, with bands of two standard errors where there are few."""
    tau, reach = curve["tau"], min(curve["tau"][-1], 6 * curve["times"].max())
    ax.axhline(0, color=_GUIDE, linewidth=0.8)
    for k, name in enumerate(names):
        error = curve["error"][:, k] if len(names) <= _MOST_BANDS else None
        band(ax, tau, curve["value"][:, k], error, COLOURS[k], "-")
        ax.plot([], [], color=COLOURS[k], label=name)
    ax.set(xlim=(0, reach), xlabel=label("lag τ", unit), title="Autocorrelation")
    ax.set_ylim(max(ax.get_ylim()[0], -0.6), 1.03)
    ax.legend(fontsize=8, loc="upper right", ncols=1 + (len(names) > _MOST_BANDS))


def _draw_spectra(ax: Axes, spectra: Sequence[Mapping[str, Any]], lines, colours: Mapping[int, Any], unit: str) -> None:
    """Periodograms with their neighbourhood, and marks at the lines that stand out."""
    ax.set(title="Spectrum", xlabel=label("frequency", f"1/{unit}" if unit else ""))
    if not spectra:
        _say(ax, "The records are too short\nto look for cycles.")
        return
    first = [line["variable"] for line in lines]
    shown = sorted(spectra, key=lambda s: s["variable"] not in first)[:_MOST_SPECTRA]
    for spectrum in shown:
        name, colour = colours[int(spectrum["variable"])]
        ax.plot(spectrum["frequency"], spectrum["power"], color=colour, linewidth=0.8, alpha=0.8)
        ax.plot(spectrum["frequency"], spectrum["neighbourhood"], color=colour, linestyle="--", linewidth=1.0)
        ax.plot([], [], color=colour, label=name)
    top, floor = (f(s["neighbourhood"]) for f, s in ((np.max, shown[0]), (np.min, shown[0])))
    top = max(top, *(float(s["power"].max()) for s in shown))
    ax.set(xscale="log", yscale="log", ylabel="power", ylim=(max(1e-3 * floor, 1e-11 * top), 30 * top))
    _mark_lines(ax, lines[:_MOST_LINES], 3 * top, unit)
    handles = ax.get_legend_handles_labels()[0]
    handles.append(Line2D([], [], color=_GUIDE, linestyle="--", label="around it"))
    ax.legend(handles=handles, fontsize=8, loc="lower left", ncols=2)


def _mark_lines(ax: Axes, lines: Sequence[Mapping[str, Any]], height: float, unit: str) -> None:
    """A dotted line at each frequency; the period beside it, once for periods that are nearly the same."""
    low, high = ax.get_xlim()
    for k, line in enumerate(lines):
        frequency = 1 / line["period"]
        ax.axvline(frequency, color=LEVEL_COLOURS["stop"], linestyle=":", linewidth=1.2, zorder=1)
        if any(abs(np.log(line["period"] / other["period"])) < 0.1 for other in lines[:k]):
            continue
        right = frequency > np.sqrt(low * high)
        ax.annotate(
            f"{line['period']:.3g} {unit}".strip() + (" (variance)" if line["of_square"] else ""),
            (frequency, height),
            xytext=(-4 if right else 4, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=8,
            color=LEVEL_COLOURS["stop"],
        )


def _draw_blocks(ax: Axes, blocks: Mapping[str, Any] | None, what: str, names: Sequence[str], unit: str) -> None:
    """Mean or spread of blocks along the record, as dots, and of runs of blocks, as steps."""
    title = {"mean": "Mean along the record", "spread": "Standard deviation along the record"}[what]
    ax.set(title=title, xlabel=label("time", unit))
    if blocks is None:
        _say(ax, "The record is too short beside\nits integral times for this.")
        return
    values, run = blocks[what], blocks["run"]
    edges = np.linspace(0, blocks["duration"], len(values) + 1)
    borders = edges[np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1, [len(values)]])]
    ax.axhline({"mean": 0.0, "spread": 1.0}[what], color=_GUIDE, linewidth=0.8)
    for k in _widest(values, run):
        ax.plot(0.5 * (edges[1:] + edges[:-1]), values[:, k], ".", color=COLOURS[k], markersize=4, alpha=0.5)
        means = [values[run == r, k].mean() for r in range(run.max() + 1)]
        ax.stairs(means, borders, color=COLOURS[k], linewidth=1.8, baseline=None, label=names[k])
    ax.set(xlim=(0, edges[-1]), ylabel="in standard deviations")
    ax.margins(y=0.15)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.legend(fontsize=8, loc="upper left", ncols=3)


def _widest(values: np.ndarray, run: np.ndarray, most: int = 3) -> list[int]:
    """The variables whose runs differ most."""
    means = np.array([values[run == r].mean(axis=0) for r in range(run.max() + 1)])
    return sorted(np.argsort(-means.std(axis=0))[:most].tolist())


def _draw_findings(ax: Axes, diagnosis: Diagnosis) -> None:
    """The regime and the findings by name, each with its level."""
    ax.set_axis_off()
    ax.set_title(f"Regime: {diagnosis.regime}", loc="left")
    step = 1 / max(len(diagnosis.findings), 1)
    for k, finding in enumerate(diagnosis.findings):
        y = 1 - (k + 0.5) * step
        ax.plot(0.03, y, "o", color=LEVEL_COLOURS[finding.level], markersize=6, transform=ax.transAxes, clip_on=False)
        ax.text(0.09, y, finding.name, transform=ax.transAxes, va="center", fontsize=8.5)
        ax.text(0.98, y, finding.level, transform=ax.transAxes, va="center", ha="right", fontsize=8.5, color="#555555")


def _say(ax: Axes, words: str) -> None:
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", fontsize=8.5, color="#555555")
    ax.set_axis_off()
