"""Text that comes from result files: docs/benchmarks.md, the table of the README, and tables inside the pages.

    python -m docs.generated

writes docs/benchmarks.md from docs/benchmarks.md.jinja and the table of README.md, both from the files in
benchmarks/results and examples/paper. Tests fail when either is out of date.

In the other pages a line `<!-- table: PATH -->`, `<!-- metrics: PATH -->` (JSON, {row: {metric: value}}) or
`<!-- figure: PATH | CAPTION -->` is replaced when Sphinx builds them. PATH may be a pattern; its first match is taken.
"""

import json
import re
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

ROOT = Path(__file__).parent.parent
BENCHMARKS, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
_README_ROWS = {
    "four wells": "examples/paper/wells/metrics.json",
    "noise that depends on the state": "examples/paper/affine_noise/metrics.json",
    "scalar climate model": "examples/paper/scalar/metrics.json",
    "Lorenz-63 with noise": "examples/paper/lorenz63/metrics.json",
    "Kuramoto-Sivashinsky, 32 variables": "examples/paper/kuramoto_sivashinsky/paper/metrics.json",
}
_CLOSURES = "published", "constant", "state-dependent"
_WANTED = re.compile(r"^<!-- (table|metrics|figure): (\S+)(?: \| (.+))? -->$", re.MULTILINE)
_MEASURED = re.compile(r"(<!-- measured.*? -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with its tables and figures in place of the comments that ask for them."""
    return _WANTED.sub(lambda wanted: _content(*wanted.groups()), page)


def benchmarks() -> str:
    """Return the text of docs/benchmarks.md."""
    return _environment().from_string((ROOT / "docs" / "benchmarks.md.jinja").read_text(encoding="utf-8")).render()


def readme() -> str:
    """Return the README with its table read from the results again."""
    rows = [f"| {label} | {' | '.join(_autocorrelations(path))} |" for label, path in _README_ROWS.items()]
    known = with_error(load(_README_ROWS["four wells"])["constant"], "mobility_error")
    coarse = load("benchmarks/results/sampling_interval.json")
    worst = max(row["IntegratedResponse (default)"] for seeds in coarse.values() for row in seeds.values())
    runs = load("benchmarks/results/paper_seeds.json")
    ranged = sorted(f"{run['mean_acf_rmse']:.3f}" for name, run in runs.items() if "fourth order" not in name)
    lines = [
        "| autocorrelations, rms difference | recipe of the paper | constant | state-dependent | halves of the data |",
        "|---|---|---|---|---|",
        *rows,
        "",
        f"The mobility of the four wells is known: its relative error is {known} in the table. With default settings",
        f"and 1e6 samples at dt = {', '.join(coarse)} it is at most {worst:.3f} over three seeds",
        f"(`python -m benchmarks.sampling_interval`). Kuramoto-Sivashinsky in {len(ranged)} runs: "
        f"{ranged[0]} to {ranged[-1]}.",
    ]
    text = "\n".join(lines)
    return _MEASURED.sub(lambda found: f"{found[1]}{text}\n{found[2]}", README.read_text(encoding="utf-8"))


def _autocorrelations(path: str) -> list[str]:
    """Return how far the autocorrelations of each model are from those of the data, and the halves of the data."""
    rows = load(path)
    name = "acf_rmse" if "acf_rmse" in rows["constant"] else "mean_acf_rmse"
    half = rows["data against data"][name] if "data against data" in rows else rows["constant"][f"{name}_floor"]
    return [f"{value:.3f}" for value in (*(rows[row][name] for row in _CLOSURES), half)]


def load(path: str) -> Any:
    """Read a JSON file of the repository."""
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def table(text: str) -> str:
    """Return the first Markdown table of a text."""
    rows = re.search(r"(^\|.*\n)+", text, flags=re.MULTILINE)
    if rows is None:
        raise ValueError("A page asks for a table of a file that holds none.")
    return rows[0]


def metrics(text: str) -> str:
    """Return a table with one column per entry of a JSON object whose values are objects of numbers."""
    rows = {name: row for name, row in json.loads(text).items() if isinstance(row, dict) and name != "extra"}
    names = list(dict.fromkeys(metric for row in rows.values() for metric in row))
    lines = ["| | " + " | ".join(rows) + " |", "|---|" + "---|" * len(rows)]
    for name in names:
        cells = (f"{row[name]:.4f}" if name in row else "" for row in rows.values())
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(path: Path, caption: str) -> str:
    """Return a figure of the repository with its caption."""
    place = path.relative_to(ROOT)
    return f":::{{figure}} ../{place}\n:alt: {re.sub('[$`]', '', caption)}\n\n{caption}\n:::"


def _content(kind: str, pattern: str, caption: str | None) -> str:
    found = sorted(ROOT.glob(pattern))
    if not found:
        return f"*(Not made yet: `{pattern.rpartition('/')[2]}`.)*"
    if kind == "figure":
        return figure(found[0], caption or "")
    return (table if kind == "table" else metrics)(found[0].read_text(encoding="utf-8"))


def _environment() -> jinja2.Environment:
    """Return the functions that the template of docs/benchmarks.md calls."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.globals |= {
        "load": load,
        "table": lambda path: table(_text(path)).rstrip("\n"),
        "metrics": lambda path: metrics(_text(path)),
        "sections": _sections,
        "with_error": with_error,
        "closures": _closures,
        "closures_against_data": _closures_against_data,
        "closures_against_exact": _closures_against_exact,
        "percent_of_log": lambda ratio: 100 * float(np.expm1(ratio)),
        "worst": lambda rows, name: max(abs(row[name] - 1) for row in rows),
        "measured_series": _measured_series,
        "slope": _slope,
        "step_for": _step_for,
        "ratio": _gpu_ratio,
    }
    return environment


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _sections(path: str) -> str:
    """Return the sections of a file of results, one heading level lower."""
    text = _text(path)
    return re.sub(r"^## ", "### ", text[text.index("\n## ") + 1 :], flags=re.MULTILINE).rstrip("\n")


def _closures_against_data() -> str:
    """Return how far simulations of both closures are from the data, for every case measured."""
    names = "acf_rmse", "increment_error"
    heads = [head for name in names for head in (f"`{name}`", "two halves of the data")]
    lines = [f"| | closure | {' | '.join(heads)} | fit, s |", "|---|---|" + "---|" * (len(heads) + 1)]
    for case, closure, row in _rows_of_closures():
        cells = [text for name in names for text in (with_error(row, name), short(row[f"{name}_floor"]))]
        lines.append(f"| {case} | {closure} | {' | '.join(cells)} | {row['fit_seconds']:.0f} |")
    return "\n".join(lines)


def _closures_against_exact() -> str:
    """Return the errors of the fields of both closures, for every case whose fields are known."""
    names = {"diffusion": "$D$", "diffusion_less_mean": r"$D-\langle D\rangle$", "current": r"$\nu$", "drift": "drift"}
    lines = [
        f"| | closure | {' | '.join(names.values())} | entropy production |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for case, closure, row in _rows_of_closures():
        if "drift" in row:
            cells = [f"{row[name]:.2g}" if name in row else "" for name in names]
            lines.append(f"| {case} | {closure} | {' | '.join(cells)} | {_entropy_production(row)} |")
    return "\n".join(lines)


def _measured_series() -> str:
    """Return what the closures of each measured series reach, beside the energy scores of held-out forecasts."""
    heads = "series", "closure", "`acf_rmse`", "two halves of the data", "`increment_error`", "`pdf_kl_mean`"
    lines = [f"| {' | '.join(heads)} | held-out energy score |", "|---|---|---|---|---|---|---|"]
    for series, rows in load("benchmarks/results/real_series.json").items():
        tried = [row["choice"]["candidates"] for row in (rows["state-dependent"], rows["chosen"]) if "choice" in row]
        scores, first = {score["kind"]: score for part in tried for score in part}, series
        for closure in ("constant", "chosen", "state-dependent"):
            row, kinds = rows[closure], {k: _kind_of(rows[k]) for k in ("constant", closure, "chosen")}
            if "refused" in row or (closure == "constant" and kinds["chosen"] == "constant"):
                continue
            asked = {"chosen": " (chosen)", "state-dependent": " (asked for)"}.get(closure, "")
            numbers = with_error(row, "acf_rmse"), short(row["acf_rmse_floor"]), with_error(row, "increment_error")
            cells = first, _KINDS[kinds[closure]] + asked, *numbers, with_error(row, "pdf_kl_mean")
            lines.append(f"| {' | '.join(cells)} | {_score_cell(scores.get(kinds[closure]))} |")
            first = ""
    return "\n".join(lines)


_KINDS = {"constant": "constant", "current": r"$\nu(x)$", "diffusion": "$D(x)$", "both": r"$\nu(x)$ and $D(x)$"}


def _kind_of(row: dict[str, Any]) -> str:
    return row.get("closure", {}).get("kind", "constant")


def _score_cell(score: dict[str, Any] | None) -> str:
    """Return the score of held-out forecasts, and how far it is from the best."""
    if score is None:
        return ""
    if score["loss"] is None:
        return "members diverged"
    above = f"{score['excess']:.3f} ± {score['standard_error']:.3f}"
    return f"{score['loss']:.3f}, {above} above the best" if score["excess"] else f"{score['loss']:.3f}, the best"


def _closures() -> dict[str, dict[str, Any]]:
    """Return what was measured of each case."""
    return load("benchmarks/results/closures.json")


def _rows_of_closures() -> list[tuple[str, str, dict[str, Any]]]:
    """Return case, closure and measurements, the case named once."""
    found = _closures()
    labels = {case: re.sub(r" (?=[\d.]+$)", ", dt = ", case) for case in found}
    labels |= {"lorenz63": "Lorenz-63", "lorenz63 without noise": "Lorenz-63 without noise"}
    labels |= {"ks-small": "Kuramoto-Sivashinsky, demo"}
    return [
        (labels[case] if first else "", closure, row)
        for case, rows in found.items()
        for first, (closure, row) in zip((True, False), rows.items())
    ]


def _entropy_production(row: dict[str, Any]) -> str:
    exact = row.get("entropy_production_exact")
    if exact is None:
        return ""
    if row["entropy_production"] is None:
        return f"undefined ({exact:.4g})"
    stated = with_error(row, "entropy_production") if row["entropy_production"] else "0"
    return f"{stated} ({exact:.4g})"


def with_error(row: dict[str, float], name: str) -> str:
    """Return a metric ± its standard error, if there is one, with two digits of the error."""
    error = row.get(f"{name}_se")
    return short(row[name]) if error is None else f"{short(row[name], error)} ± {short(error, error)}"


def short(value: float, error: float | None = None) -> str:
    """Return a number with as many decimals as two digits of its error need (10 % of itself by default)."""
    decimals = 1 - int(np.floor(np.log10(error or abs(value) / 10)))
    return f"{value:.{max(decimals, 0)}f}"


def _gpu_ratio(accuracy: str, stepper: str) -> float:
    """Return the time of a stepper over that of Euler-Maruyama for one wanted accuracy."""
    rows = load("benchmarks/results/gpu.json")["accuracy"]["results"]
    wanted = f"Kuramoto-Sivashinsky, U-Net, {accuracy}", stepper
    return next(row["ratio"] for row in rows if (row["case"], row["contender"]) == wanted)


def _slope(found: dict[str, list[float]], kind: str) -> float:
    """Return the order of an error in the step, from its three smallest steps."""
    return float(np.polyfit(np.log(found["step"][-3:]), np.log(np.abs(found[kind][-3:])), 1)[0])


def _step_for(found: dict[str, list[float]], kind: str, error: float) -> float:
    """Return the step at which an error is reached, interpolated in logarithms."""
    steps, errors = np.log(found["step"])[::-1], np.log(np.abs(found[kind]))[::-1]
    return float(np.exp(np.interp(np.log(error), errors, steps)))


if __name__ == "__main__":
    BENCHMARKS.write_text(benchmarks(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")
