"""The two figures of the README.

    python -m benchmarks.readme_figures

runs the wells demonstration (the same seeds as `effective-langevin demo`) and writes docs/figures/wells.png and
docs/figures/how_it_works.png.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from effective_langevin.cli.demo import run_demo
from effective_langevin.statistics.resampling import GROUPS
from effective_langevin.validate import Validation, plots

BOXES = (
    ("time series", "x(t), gaps, members", "TimeSeries"),
    ("standardise", "mean, std", "Standardizer"),
    ("score", "s = grad ln p\nfrom noised samples", "KGMM, DenoisingScore"),
    ("mobility", "(∫G) Φ = C(T) − C(0)\nfrom correlations", "IntegratedResponse"),
    ("Langevin model", "dx = Φ s dt + √2 Σ dW\nΣΣᵀ = sym Φ", "LangevinModel"),
    ("validation", "density, clock, errors,\ndata-against-data floor", "report.html"),
)


def wells(validation: Validation) -> Figure:
    """Joint density, autocorrelations and mobility of data and model."""
    figure = Figure(figsize=(11, 3.3), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.15, 1))
    data, model, everything = validation.data_statistics, validation.model_statistics, np.ones(GROUPS)
    names = validation.data.names
    plots.plot_pair_density(validation, left)
    left.get_legend().remove()
    for i, style in enumerate(("-", ":")):
        middle.plot(
            data.tau, data.acf(everything)[:, i], style, color=plots.DATA, lw=4, alpha=0.5, label=f"data, {names[i]}"
        )
        middle.plot(data.tau, model.acf(everything)[:, i], style, color=plots.MODEL, lw=1.5, label=f"model, {names[i]}")
    middle.set(xlabel="lag (time)", ylabel="autocorrelation", xlim=(0, None))
    middle.legend(frameon=False, fontsize=8)
    phi, exact, error = validation.model.mobility, validation.exact_mobility, validation.model.mobility.standard_error
    where = np.arange(4)
    right.errorbar(
        where, phi.matrix.ravel(), 2 * error.ravel(), fmt="o", color=plots.MODEL, capsize=4, label="learned ± 2 s.e."
    )
    right.plot(where, exact.ravel(), "_", color="black", ms=26, mew=1.5, label="exact")
    right.set(xticks=where, xticklabels=["Φ₁₁", "Φ₁₂", "Φ₂₁", "Φ₂₂"], ylabel="mobility", xlim=(-0.5, 3.5))
    right.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.55))
    for ax, title in zip((left, middle, right), ("steady state", "clock", "diffusion and circulation")):
        ax.set_title(title, fontsize=10)
    return figure


def how_it_works() -> Figure:
    """The pipeline in boxes."""
    figure = Figure(figsize=(11, 2.1))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, len(BOXES)), ylim=(0, 1))
    ax.axis("off")
    for i, (title, what, name) in enumerate(BOXES):
        ax.add_patch(
            FancyBboxPatch(
                (i + 0.08, 0.22), 0.84, 0.6, boxstyle="round,pad=0,rounding_size=0.06", fc="#eef4fa", ec=plots.DATA
            )
        )
        ax.text(i + 0.5, 0.72, title, ha="center", va="center", weight="bold", fontsize=10)
        ax.text(i + 0.5, 0.46, what, ha="center", va="center", fontsize=8.5)
        ax.text(i + 0.5, 0.11, name, ha="center", va="center", fontsize=8, family="monospace", color="0.35")
        if i:
            ax.annotate("", (i + 0.08, 0.52), (i - 0.08, 0.52), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
    return figure


if __name__ == "__main__":
    folder = Path("docs/figures")
    folder.mkdir(parents=True, exist_ok=True)
    how_it_works().savefig(folder / "how_it_works.png", dpi=150)
    run = run_demo("wells", seed=0)
    wells(run.validation).savefig(folder / "wells.png", dpi=150)
