"""Sphinx settings: `sphinx-build -W docs docs/_build` needs no network and runs no snippet (`docs.snippets` does).

With the network, names of other packages are links to their pages.
"""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

LOG = getLogger(__name__)
sys.path.insert(0, str(Path(__file__).parent))
import generated  # noqa: E402
import reference_links  # noqa: E402

project = "effective-langevin"
author = "The effective-langevin developers"
copyright = author
version = release = installed("effective-langevin")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx", "sphinx.ext.viewcode", "numpydoc"]
intersphinx_mapping, intersphinx_timeout = reference_links.INVENTORIES, 5
suppress_warnings = ["myst.iref_missing"]  # names of other packages, where their inventories cannot be reached
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
default_role = "code"
add_module_names = smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the pages say which members are shown
nitpicky = True

html_theme = "furo"
html_title = "effective-langevin"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_math_renderer = "mathml"
html_copy_source = html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "monokai"


def setup(app: Sphinx) -> None:
    """Formulas as MathML, docstrings from Markdown, links to the reference, and what is read from results."""
    reference_links.setup(app)
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))
    app.connect("autodoc-process-docstring", lambda app, what, name, obj, options, lines: _to_rst(lines), 400)
    app.connect("source-read", lambda app, page, source: source.__setitem__(0, generated.filled(source[0])))


def _inline_formula(translator, node) -> None:
    """A formula that the browser draws: no script, no fonts from elsewhere."""
    translator.body.append(_mathml(node))
    raise SkipNode


def _formula(translator, node) -> None:
    translator.body.append(f'<div class="formula">{_mathml(node, as_block=True)}</div>')
    raise SkipNode


def _mathml(node, **options) -> str:
    latex = re.sub(r"frac(\d)(\d)", r"frac{\1}{\2}", node.astext())
    try:
        return latex2mathml.tex2mathml(latex, **options)
    except MathError as error:
        LOG.warning("%s: %s", error, latex, location=node)
        return ""


def _to_rst(lines: list[str]) -> None:
    """Turn the text before the first numpydoc section into RST: `code`, indented equations, lists of arguments."""
    titles = (i for i, line in enumerate(lines[1:]) if line and set(line) == {"-"})
    first = next(titles, len(lines))
    text, sections = lines[:first], lines[first:]
    paragraphs = [p.split("\n") for p in re.split(r"\n\s*\n", "\n".join(text).rstrip())]
    lines[:] = [line for p in paragraphs for line in (*_paragraph(p), "")] + sections


def _paragraph(paragraph: list[str]) -> list[str]:
    if all(line.startswith("    ") for line in paragraph):
        return ["::", "", *paragraph]
    if any(line.startswith("    ") for line in paragraph):
        return [f"  {_escaped(line.strip())}" if line[0] == " " else f"* {_argument(line)}" for line in paragraph]
    return [_escaped(line) for line in paragraph]


def _argument(line: str) -> str:
    name, colon, text = line.partition(": ")
    return f"**{name}**: {_escaped(text)}" if colon else _escaped(line)


def _escaped(line: str) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(f"`{p}`" if p.startswith("`") else re.sub(r"([*|_\\])", r"\\\1", p) for p in parts)
