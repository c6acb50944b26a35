import inspect
import json
import subprocess
import sys
import tomllib

import pytest

import effective_langevin as el
from docs import generated, notebooks, snippets

ROOT = snippets.ROOT
WITH_CODE = [page for page in snippets.PAGES if snippets.BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.integration
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path):
    """`python -m docs.snippets PAGE` writes what it prints now, after a change on purpose. The README shows nothing."""
    if absent := [file for file in snippets.needed(page) if not file.is_file()]:
        pytest.skip(f"{absent[0]} is not on this machine")
    done = [s for s in snippets.run(page, tmp_path) if s.shown or page.parent != ROOT]
    wrong = [f"{s.code}\nshown:\n{s.shown}\nprinted:\n{s.printed}" for s in done if not s.as_shown]
    assert not wrong, "\n".join(wrong)
    assert {p.name for p in tmp_path.glob("*.png")} <= {p.name for p in snippets.FIGURES.iterdir()}


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_notebook_is_its_page_and_holds_the_code_that_the_page_runs(name):
    """`python -m docs.notebooks` writes it; its cells are the blocks that the test of the page runs."""
    page, file = ROOT / "docs" / "gallery" / f"{name}.md", notebooks.FOLDER / f"{name}.ipynb"
    assert file.read_text(encoding="utf-8") == notebooks.notebook(page)
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == [block[2].strip() for block in snippets.BLOCK.finditer(page.read_text(encoding="utf-8"))]
    assert all(cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    for cell in code:
        compile(cell, name, "exec")


def test_the_gallery_has_eight_pages_each_with_a_figure_and_an_answer():
    pages = [page for page in snippets.PAGES if page.parent.name == "gallery" and page.stem != "index"]
    assert len(pages) >= 8
    assert sum(bool(snippets.needed(page)) for page in pages) >= 6
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "**Answer.**" in text
        assert f"figures/gallery-{page.stem}.png" in text
        assert f"gallery-{page.stem}.png" in index
        assert (snippets.FIGURES / f"gallery-{page.stem}.png").is_file()


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    lines = recipe.partition("  run:\n")[2].partition("\ntest:")[0].splitlines()
    asked = {line.strip("- ").replace(" ", "") for line in lines}
    assert {need.replace("matplotlib>", "matplotlib-base>") for need in project["dependencies"]} < asked
    assert f"python{project['requires-python']}" in asked
    assert f'version = "{project["version"]}"' in recipe


def test_every_page_of_instructions_has_code():
    expected = {"README", "start", "data", "choosing", "trust", "extending", "conventions"}
    assert expected <= {page.stem for page in WITH_CODE}


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("error 0.0120 ± 0.003\n", "error  0.0125 ± 0.004\n", True),
        ("594 samples", "601 samples", True),
        ("error 0.012", "error 0.020", False),
        ("594 samples", "901 samples", False),
        ("level ok", "level note", False),
        ("1 2 3", "1 2", False),
        ("True", "", False),
    ],
)
def test_outputs_agree_up_to_rounding_and_spaces(shown, printed, same):
    assert snippets.agree(shown, printed) is same


def test_what_a_block_prints_is_written_after_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n7\n```\n\n```python\ny = x\n```\n\nEnd.\n")
    done = snippets.run(page, tmp_path)
    assert [s.as_shown for s in done] == [False, True]
    text = snippets.rewritten(page.read_text(), done)
    assert text == "Text.\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\n```python\ny = x\n```\n\nEnd.\n"


def test_tables_come_from_the_files_they_are_said_to_come_from():
    page = generated.filled("<!-- table: benchmarks/results/sampling_interval.md -->")
    assert page == (ROOT / "benchmarks/results/sampling_interval.md").read_text()
    assert "Not made yet" in generated.filled("<!-- figure: no/such/figure.png | A caption. -->")
    assert "| `a` | 1.0000 |  |" in generated.metrics('{"ours": {"a": 1}, "LIM": {"b": 2}, "extra": {"c": 3}}')


def test_the_benchmarks_and_the_table_of_the_readme_are_those_of_the_result_files():
    """`python -m docs.generated` writes both again."""
    assert generated.BENCHMARKS.read_text(encoding="utf-8") == generated.benchmarks()
    assert generated.README.read_text(encoding="utf-8") == generated.readme()


def test_the_readme_is_short_and_has_its_two_commands():
    text = generated.README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert "\n    pip install . && effective-langevin demo\n" in text
    assert "\n    pip install '.[test]' && pytest\n" in text


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages, built with warnings as errors."""
    pytest.importorskip("sphinx")
    out = tmp_path_factory.mktemp("pages")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.integration
def test_the_pages_build_without_a_warning_and_load_nothing_from_elsewhere(built):
    pages = list(built.glob("*.html"))
    assert len(pages) >= 10
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text
        assert 'rel="stylesheet" type="text/css" href="http' not in text


@pytest.mark.integration
def test_every_public_name_is_in_the_reference(built):
    reference = (built / "api.html").read_text(encoding="utf-8")
    modules = {name: getattr(el, name) for name in el.__all__ if inspect.ismodule(getattr(el, name))}
    public = [f"effective_langevin.{name}" for name in el.__all__ if name not in modules]
    public += [f"effective_langevin.{name}.{inner}" for name, module in modules.items() for inner in module.__all__]
    assert not [name for name in public if f'id="{name}"' not in reference]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("el.fit(series, seed=0)", "effective_langevin.fit"),
        ("KGMM", "effective_langevin.KGMM"),
        ("el.preprocess.Detrend()", "effective_langevin.preprocess.Detrend"),
        ("model.forecast", "effective_langevin.LangevinModel.forecast"),
        ("fit", None),
        ("result.verdict.level", None),
        ("x + y", None),
    ],
)
def test_a_name_in_the_text_is_linked_where_it_can_be_told(text, name):
    pytest.importorskip("sphinx")
    from docs.reference_links import candidates

    found = candidates(text)
    assert name in found if name else not found


@pytest.mark.integration
def test_names_in_the_text_are_links_to_the_reference(built):
    page = (built / "choosing.html").read_text(encoding="utf-8")
    for name in ("KGMM", "StateDependent", "LangevinEstimator"):
        assert f'href="api.html#effective_langevin.{name}"' in page
    titles = [line for line in page.splitlines() if line.startswith(("<h1", "<h2", "<h3"))]
    assert not [line for line in titles if "api.html" in line]
