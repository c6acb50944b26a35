"""Links from names in the text to the reference: `el.fit(series)`, `KGMM`, `model.forecast` become links.

A name is linked where a page says it in code, outside of headings and of links. Names of other packages go through
intersphinx, whose inventories need the network: without it, the pages build all the same, and these names are no links.
"""

import logging
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

PACKAGE = "effective_langevin"
# What stands before the dot in the text, and where such names are in the reference.
OWNERS = {
    "el": PACKAGE,
    "el.preprocess": f"{PACKAGE}.preprocess",
    "el.systems": f"{PACKAGE}.systems",
    "el.plots": f"{PACKAGE}.plots",
    "model": f"{PACKAGE}.LangevinModel",
    "series": f"{PACKAGE}.TimeSeries",
}
PLACES = (PACKAGE, f"{PACKAGE}.preprocess", f"{PACKAGE}.systems")
NAME = re.compile(r"(?:(?P<owner>[a-z.]+)\.)?(?P<name>\w+)(?:\(.*\))?", re.DOTALL)
INVENTORIES = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "xarray": ("https://docs.xarray.dev/en/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "jax": ("https://docs.jax.dev/en/latest", None),
}


def setup(app: Sphinx) -> None:
    """Link names once all pages are read; an inventory that cannot be reached is no reason to fail."""
    app.connect("doctree-resolved", _link_names)
    logging.getLogger("sphinx.sphinx.ext.intersphinx").addFilter(_is_no_absence)


def _is_no_absence(record: logging.LogRecord) -> bool:
    return "failed to reach any of the inventories" not in str(record.msg) + str(record.args)


def _link_names(app: Sphinx, tree: nodes.document, page: str) -> None:
    known = app.env.domains.python_domain.objects
    for literal in list(tree.findall(nodes.literal)):
        if isinstance(literal.parent, nodes.reference | nodes.title) or page == "api":
            continue
        target = next((name for name in candidates(literal.astext()) if name in known), None)
        if target is not None:
            entry, link = known[target], literal.deepcopy()
            literal.replace_self(make_refnode(app.builder, page, entry.docname, entry.node_id, link, target))


def candidates(text: str) -> list[str]:
    """Return the full names that a piece of code may stand for: words of small letters need their owner."""
    found = NAME.fullmatch(text)
    if found is None:
        return []
    owner, name = found["owner"], found["name"]
    if owner is None:
        return [f"{place}.{name}" for place in PLACES] if name[:1].isupper() else []
    return [f"{OWNERS[owner]}.{name}"] if owner in OWNERS else []
