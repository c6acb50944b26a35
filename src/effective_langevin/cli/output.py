"""What the commands print: words and tables for people, JSON for machines, one line for an error."""

import json
import logging
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .._core.errors import ArgumentError, visible
from .._core.progress import LOGGER

if TYPE_CHECKING:
    from ..validate import Validation

# What messages call an argument of Python, and the flag for it.
_FLAGS = {
    r"`?preprocess=\[el\.preprocess\.Detrend\(\)\]`?": "--detrend",
    r"`?preprocess=\[el\.preprocess\.RemoveSeasonalCycle\(([^)]+)\)\]`?": r"--deseason \1",
    r"`?preprocess=\[el\.preprocess\.PhaseAugmentation\(([^)]+)\)\]`?": r"--phase \1",
    r"`?preprocess=\[el\.preprocess\.Log\(\[\"(.+?)\"\]\)\]`?": r"--log \1",
    r"`?el\.TimeSeries\(\.\.\., periods=\{\"(.+?)\": 2 \* np\.pi\}\)`?": r"--periodic \1",
    r"`?el\.TimeSeries\(\.\.\., periods=\{\"(.+?)\": ([\d.]+)\}\)`?": r"--periodic \1:\2",
    r"`?el\.fit\(\.\.\., symmetry=el\.Translations\(\)\)`?": "--symmetry translations",
    r'`?el\.fit\(\.\.\., memory="auto"\)`?': "--memory auto",
    r"`(?:preprocess=\[)?el\.preprocess\.PCA\((?:variance=)?([\d.]+)\)\]?`": r"--pca \1",
    r"\(`period=360`, or (.+?:360)\)": r"(--periodic \1)",
    r"`period=2 \* np\.pi`": "NAME:6.2832",
    r"\btime=False": "--no-time",
    r"\btime=NAME": "--time NAME",
    r"\btime='([^']*)'": r"--time '\1'",
    r"\bvariables=\[\.\.\.\]": "--variables A,B",
    r"\btime_unit='([^']*)'": r"--time-unit \1",
    r"\bmissing=\[\]": "--missing none",
    r"\bmissing=\[\.\.\.\]": "--missing",
    r"\bmissing=\[([^]]*)\]": r"--missing=\1",
    r'\bcalendar="rows"': "--calendar rows",
    r"\bresample=([\w.+-]*\w)": r"--resample \1",
    r'\bcheck="warn" \(--force on the command line\)': "--force",
}

_MOBILITY = r"`el\.(QuadraticVariation|IntegratedResponse|LogCorrelation|CorrelationFit|FiniteVolume)\(\)`"


def in_flags(text: str) -> str:
    """Return a message with flags of the command line in place of arguments of Python."""
    for argument, flag in _FLAGS.items():
        text = re.sub(argument, flag, text)
    return re.sub(_MOBILITY, lambda match: "--mobility " + re.sub(r"\B(?=[A-Z])", "-", match[1]).lower(), text)


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_WIDEST = 100  # columns that are still easy to read


def is_quiet() -> bool:
    """Whether only results and errors are wanted."""
    return _quiet.get()


@contextmanager
def reporting(quiet: bool, log_file: Path | None) -> Iterator[None]:
    """Leave out progress and notes, or keep messages and the time of every stage in a file, while a command runs."""
    handler = logging.NullHandler() if log_file is None else logging.FileHandler(log_file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    token, before = _quiet.set(quiet), LOGGER.level
    LOGGER.addHandler(handler)
    if log_file is not None:
        LOGGER.setLevel(logging.INFO)
    try:
        LOGGER.info("effective-langevin %s: %s", version("effective-langevin"), shlex.join(sys.argv[1:]))
        yield
    except BaseException as error:
        LOGGER.error("%s", error or type(error).__name__)
        raise
    finally:
        _quiet.reset(token)
        LOGGER.setLevel(before)
        LOGGER.removeHandler(handler)
        handler.close()


def announce(text: str) -> None:
    """Say what begins, to a person who waits at a terminal."""
    LOGGER.info("%s", text)
    if not is_quiet() and sys.stderr.isatty():
        _write(sys.stderr, f"{visible(text)} ...\n")


def say(text: str) -> None:
    """Print a text: as it is into a file or pipe, with lines broken between words on a terminal."""
    text = visible(text)
    _write(sys.stdout, (_wrap(text) if sys.stdout.isatty() else text) + "\n")


def _wrap(text: str) -> str:
    """Break lines that are wider than the terminal between words; a broken line goes on under its first word."""
    width = min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)
    unbroken: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    lines = []
    for line in text.split("\n"):
        margin = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(line, width, subsequent_indent=margin, **unbroken) or [""]
    return "\n".join(lines)


def complain(kind: str, text: str) -> None:
    """Print one line on the error stream; a note only if it is wanted."""
    if kind != "Error":
        LOGGER.log(logging.WARNING if kind == "Warning" else logging.INFO, "%s", text)
    if kind == "Note" and is_quiet():
        return
    head = f"{kind}: "
    with suppress(OSError, ValueError):  # a stream that is full or closed does not stop the work
        stream = Console(stderr=True)
        with stream.capture() as captured:
            stream.print(f"[bold {'red' if kind == 'Error' else 'yellow'}]{kind}:[/] ", end="")
        head = captured.get()
    _write(sys.stderr, head + visible(in_flags(" ".join(str(text).split()))) + "\n")


def _write(stream: IO[str], text: str) -> None:
    """Write a text. A reader that has gone away (`| head -1`) does not matter: the work is done."""
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):  # or Python complains about the same once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise ArgumentError(f"Cannot print the result: {error}.") from error


def show(content: Any, text: str, as_json: bool) -> None:
    """Print the content as JSON, or the text for people."""
    if as_json:
        tell(content)
    else:
        say(text)


def tell(content: Any) -> None:
    """Print JSON; what is not finite becomes null."""
    from ..diagnose.finding import plain

    _write(sys.stdout, json.dumps(plain(content), default=str) + "\n")


def show_validation(validation: "Validation", metrics: dict[str, float], folder: Path | None, as_json: bool) -> None:
    """Print the verdict and the metrics, and where the files are."""
    sentences = validation.verdict.sentences
    LOGGER.info("%s", sentences[0])
    if as_json:
        where = {} if folder is None else {"folder": str(folder), "report": str(folder / "report.html")}
        tell({**where, "level": validation.verdict.level, "verdict": sentences, "metrics": metrics})
        return
    say("\n".join(sentences))
    rows = [
        (name, f"{value:.4g}", *(f"{e:.2g}" if (e := metrics.get(f"{name}{s}")) is not None else "" for s in _EXTRA))
        for name, value in metrics.items()
        if not name.endswith(_EXTRA)
    ]
    show_table(("metric", "value", "± s.e.", "data against data"), rows)
    if folder is not None:
        say(f"Model, metrics, figures: {folder}\nOpen {folder / 'report.html'} in a browser.")


_EXTRA = ("_se", "_floor")


def show_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table for people."""
    table, console = Table(*head), Console()
    for row in rows:
        table.add_row(*(escape(visible(cell)) for cell in row))
    with console.capture() as captured:
        console.print(table)
    _write(sys.stdout, captured.get())
