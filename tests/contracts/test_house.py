"""Rules of the house that no linter knows, read from the source text.

A rule with a number is one that the code does not keep yet: the number may shrink, never grow. Lower it when you have
removed an occurrence, and delete it at zero.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "effective_langevin"
FILES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
TEXT = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
TREES = {name: ast.parse(text) for name, text in TEXT.items()}
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 80
MOST_LINES = None  # 12_500 once every owner has landed

# What must not be written, where it may be all the same, and how often it still is.
FORBIDDEN = {
    "what a stage found is a typed record, not a string to look up": (
        r"diagnostics(\.get\(|\[[\"'])",
        ("estimate/mobility/evidence.py", "estimate/score/evidence.py", "model/storage.py"),
        0,
    ),
    "a state space answers for its geometry; nobody asks for its class": (r"isinstance\((self\.)?symmetry,", (), 0),
    "a contract is a base class or a protocol, not an attribute that may be there": (
        r"\bhasattr\(|\bgetattr\([^()]+, \"\w+\", [^()]+\)",
        ("data/io/", "estimator.py", "execution/compilation.py"),
        3,
    ),
    "behaviour does not depend on the names of classes": (r"\.__name__ (==|in|!=) |\[\"kind\"\] (==|in|!=) ", (), 1),
    "sentences are plain": (
        r"(?i)\bof its own\b|\bof their own\b|\bwill do\b|\bput right\b|\bis no angle\b|, else nothing|\bas it were\b",
        (),
        0,
    ),
    "say time scales": (r"(?i)\bclocks?\b", ("data/io/",), 0),
    "code is not commented out": (r"(?m)^\s*# *(def |return |import |from \w+ import |\w+ = \w+\()", (), 0),
    "output goes through the command line": (r"(?m)^\s*print\(", ("cli/", "_core/progress.py"), 0),
}
DRAWING = ("matplotlib",)
LABELLED = ("xarray", "pandas", "dask", "polars")
EDGE = {"drawing": ("validate/", "cli/"), "labelled": ("data/io/", "validate/", "cli/", "execution/dask")}

# One home for each of these: a function of such a name is defined in statistics/ and nowhere else.
STATISTICS = r"integral_times?|spectrum|periodogram|jackknife\w*|bootstrap\w*|critical\w*|nugget\w*|student_limit"
SECOND_HOMES = 5  # wrappers that call statistics/


def files_outside(places):
    return {name: text for name, text in TEXT.items() if not name.startswith(tuple(places))}


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_the_source_keeps_to(rule):
    pattern, places, allowed = FORBIDDEN[rule]
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}"
        for name, text in files_outside(places).items()
        for match in re.finditer(pattern, text)
    ]
    assert len(found) <= allowed, f"{rule}: {len(found)} against {allowed}\n" + "\n".join(found)


def test_files_and_functions_are_short(capsys):
    lines = {name: text.count("\n") for name, text in TEXT.items()}
    with capsys.disabled():
        print(f"\nsrc: {sum(lines.values())} lines in {len(lines)} files")
    functions = {
        f"{name}:{node.name}": node.end_lineno - node.lineno + 1 - (ast.get_docstring(node) or "").count("\n")
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, DEFINITIONS)
    }
    assert {name: n for name, n in lines.items() if n > MOST_LINES_OF_A_FILE} == {}
    assert {name: n for name, n in functions.items() if n > MOST_LINES_OF_A_FUNCTION} == {}
    assert MOST_LINES is None or sum(lines.values()) <= MOST_LINES


def imported(tree):
    """Return the packages imported anywhere in a file, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize(("packages", "edge"), [(DRAWING, "drawing"), (LABELLED, "labelled")])
def test_drawing_and_labelled_data_stay_at_the_edge(packages, edge):
    found = {name: set(imported(tree)) & set(packages) for name, tree in TREES.items()}
    assert not {name: used for name, used in found.items() if used and not name.startswith(EDGE[edge])}


def test_a_statistic_has_one_home():
    found = [
        f"{name}:{node.name}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, DEFINITIONS) and re.fullmatch(STATISTICS, node.name.strip("_"))
    ]
    outside = [place for place in found if not place.startswith("statistics/")]
    assert len(outside) <= SECOND_HOMES, outside


SAME_NAME = 11


def test_a_name_means_one_thing():
    """Functions and classes at the top of a module, without a leading underscore, are defined once."""
    homes = defaultdict(list)
    for name, tree in TREES.items():
        for node in tree.body if name != "cli/commands.py" else ():  # commands have the names of what they call
            if isinstance(node, DEFINITIONS | ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert len(twice) <= SAME_NAME, twice


def test_no_file_names_the_machine_it_was_written_on():
    kinds = (".py", ".md", ".toml", ".jinja", ".json", ".css", ".cff", ".ipynb")
    places = ["src", "tests", "docs", "benchmarks", "examples", ".ci"]
    paths = [p for place in places for p in (ROOT / place).rglob("*") if p.suffix in kinds and "_build" not in p.parts]
    paths += [p for p in ROOT.iterdir() if p.suffix in kinds]
    private = re.compile("/" + r"work/|/" + r"root/|/" + r"home/\w+/|/" + r"Users/\w+/")
    assert not [str(p) for p in paths if private.search(p.read_text(encoding="utf-8"))]


def test_every_obstacle_that_users_met_has_its_test():
    table = (ROOT / "tests" / "README.md").read_text(encoding="utf-8").partition("## What users met")[2]
    rows = [line for line in table.partition("\n\nConventions")[0].splitlines() if line.startswith("| ")][2:]
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"^def (test_\w+)", written, re.MULTILINE))
    assert len(rows) >= 30
    for row in rows:
        named = set(re.findall(r"`(test_\w+)`", row))
        assert named
        assert named <= defined, named - defined
