"""Notebooks from pages of the gallery: `python -m docs.notebooks` writes examples/notebooks/NAME.ipynb.

A page is the one source: its text becomes cells of Markdown, its code cells of Python with what they printed. Tests
compare the files with the pages, whose code they run.
"""

import json
import re
from pathlib import Path
from typing import Any

from .snippets import BLOCK, ROOT

FOLDER = ROOT / "examples" / "notebooks"
NAMES = ("wells", "lorenz63")
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(page: Path) -> str:
    """Return a page as a notebook of format 4."""
    cells, text, last = [], page.read_text(encoding="utf-8"), 0
    for block in BLOCK.finditer(text):
        cells.append(_words(text[last : block.start()]))
        cells.append(_code(block[2], block[3] or ""))
        last = block.end()
    cells.append(_words(text[last:]))
    kept = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells) if cell["source"]]
    content = {"cells": kept, "metadata": {"kernelspec": _KERNEL}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _words(text: str) -> dict[str, Any]:
    """Return text without what a notebook cannot show: comments, and pictures that its code draws itself."""
    plain = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.DOTALL)
    plain = re.sub(r"\]\((\w+)\.md\)", r"](../../docs/gallery/\1.md)", re.sub(r"\n{3,}", "\n\n", plain)).strip()
    return {"cell_type": "markdown", "metadata": {}, "source": plain.splitlines(keepends=True)}


def _code(code: str, printed: str) -> dict[str, Any]:
    outputs = (
        [{"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}] if printed else []
    )
    source = code.strip().splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs, "source": source}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        (FOLDER / f"{name}.ipynb").write_text(notebook(ROOT / "docs" / "gallery" / f"{name}.md"), encoding="utf-8")
