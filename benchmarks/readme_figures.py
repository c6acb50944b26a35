"""The two figures of the README.

    python -m benchmarks.readme_figures

draws docs/figures/turbulence.png from the saved results of `python -m examples.paper.kuramoto_sivashinsky paper`, and
docs/figures/how_it_works.png.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from effective_langevin.validate import plots
from effective_langevin.validate.style import styled
from examples.paper.kuramoto_sivashinsky import curves, results
from examples.paper.kuramoto_sivashinsky.figures import OURS

BOXES = (
    ("time series", "x(t), gaps, members", "TimeSeries"),
    ("standardise", "mean, std", "Standardizer"),
    ("score", "s = grad ln p\nfrom noised samples", "KGMM, DenoisingScore"),
    ("closure", "ν(x) and D(x), or Φ,\nfrom lagged correlations", "StateDependent,\nIntegratedResponse"),
    ("Langevin model", "dx = (ν + D s + ∇·D) dt\n+ √(2D) dW", "LangevinModel"),
    ("validation", "density, time scales,\nforecasts, with errors", "report.html"),
)


@styled
def turbulence() -> Figure:
    """The Kuramoto-Sivashinsky field, the model that was learned from it, and the autocorrelations of all models."""
    arrays, _ = results.read(results.FOLDER / "paper")
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = np.ravel(np.asarray(figure.subfigures(1, 2, width_ratios=(1.6, 1))))
    fields = {"Data": arrays["data.field"], "Learned model": arrays[f"{OURS}.field"]}
    time = arrays["dt"] * np.arange(len(fields["Data"]))
    curves.plot_hovmoeller(time, fields, title="u / std", axes=left.subplots(2, 1))
    shown = {name: arrays[f"{name}.acf"][:, None] for name in ("data", OURS, "constant", "published")}
    ax = right.subplots()
    curves.plot_correlations(arrays["lag"], shown, titles=["Autocorrelation at a point"], axes=[ax])
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
        ax.text(i + 0.5, 0.1, name, ha="center", va="center", fontsize=8, family="monospace", color="0.35")
        if i:
            ax.annotate("", (i + 0.08, 0.52), (i - 0.08, 0.52), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
    return figure


if __name__ == "__main__":
    folder = Path("docs/figures")
    folder.mkdir(parents=True, exist_ok=True)
    how_it_works().savefig(folder / "how_it_works.png", dpi=150)
    turbulence().savefig(folder / "turbulence.png", dpi=150)
