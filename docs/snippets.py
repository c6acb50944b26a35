"""Run the code of the pages: `python -m docs.snippets` writes what it prints and draws into them.

The ```python and ```console blocks of a page run in order, in one namespace and one empty folder; the ```text block
after a block is what it printed. A block inside a Markdown comment runs too: it prepares what a reader would have.
A comment `<!-- data: FILE -->` puts a series that is not part of this package into the folder (see `DATA`). Pictures
that a page leaves in its folder go to docs/figures. The tests run the same code and compare.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
DATA = Path(os.environ.get("EFFECTIVE_LANGEVIN_SHARED_DATA", ROOT.parent / "shared" / "data"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "gallery").glob("*.md"))]
_NEEDS = re.compile(r"^<!-- data: (\S+) -->$", re.MULTILINE)
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True)
class Snippet:
    """One block: its language, its code, what it is said to print and what it does print."""

    kind: str
    code: str
    shown: str
    printed: str

    @property
    def as_shown(self) -> bool:
        """Whether the page shows what the block prints."""
        return agree(self.shown, self.printed)


def needed(page: Path) -> list[Path]:
    """Return the files of measured series that a page reads."""
    return [DATA / name for name in _NEEDS.findall(page.read_text(encoding="utf-8"))]


def run(page: Path, folder: Path) -> list[Snippet]:
    """Run all snippets of a page in an empty folder."""
    names, done = {"__name__": "__main__"}, []
    for file in needed(page):
        (folder / file.name).symlink_to(file)
    settings = mock.patch.dict(os.environ, {"MPLBACKEND": "agg", "COLUMNS": "110"})
    with contextlib.chdir(folder), settings, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a reader would wonder
        for block in BLOCK.finditer(text := page.read_text(encoding="utf-8")):
            kind, code, shown = block.groups(default="")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                if kind == "console":
                    _in_shell(code)
                else:  # with the lines of the page, so that an error names the right one
                    exec(compile("\n" * text.count("\n", 0, block.start(2)) + code, str(page), "exec"), names)
            done.append(Snippet(kind, code, shown, _tidy(output.getvalue())))
    return done


def _in_shell(code: str) -> None:
    """Each line is a call of the package's command, perhaps with its output sent to a file."""
    from effective_langevin.cli import main

    for line in code.splitlines():
        words, _, file = line.removeprefix("$ ").partition(" > ")
        if not line.startswith("$ effective-langevin "):
            raise ValueError(f"Only calls of effective-langevin can be run, but got {line!r}.")
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(sys, "argv", shlex.split(words, comments=True)))
            if file:
                stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(file, "w"))))
            try:
                main()
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(f"{line!r} ended with exit code {end.code}.") from end


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def agree(shown: str, printed: str, relative: float = 0.1) -> bool:
    """Whether two texts are the same up to spaces, with numbers equal to `relative` and a unit of the last digit."""
    words = [" ".join(_NUMBER.sub("#", text).split()) for text in (shown, printed)]
    numbers = zip(_NUMBER.findall(shown), _NUMBER.findall(printed))
    return words[0] == words[1] and all(_close(a, b, relative) for a, b in numbers)


def _close(a: str, b: str, relative: float) -> bool:
    return abs(float(a) - float(b)) <= relative * abs(float(b)) + max(_last_digit(a), _last_digit(b))


def _last_digit(number: str) -> float:
    """The value of a one in the last place: 0.01 for 3.14, but nothing for whole numbers, which are counts."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else 0.0


def rewritten(page: str, snippets: list[Snippet]) -> str:
    """The page with the text after each block replaced by what the block printed."""
    printed = iter(snippets)

    def block(match: re.Match) -> str:
        output = next(printed).printed
        return f"```{match[1]}\n{match[2]}```\n" + (f"\n```text\n{output}```\n" if output else "")

    return BLOCK.sub(block, page)


def main(names: list[str]) -> None:
    """Run the pages of those names (default: all) and write outputs and pictures."""
    for page in (p for p in PAGES if not names or p.stem in names):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            snippets = run(page, Path(folder))
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, FIGURES)
        if page.parent != ROOT:  # the README shows no output
            page.write_text(rewritten(page.read_text(encoding="utf-8"), snippets), encoding="utf-8")
        print(f"{page.name}: {len(snippets)} blocks, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
