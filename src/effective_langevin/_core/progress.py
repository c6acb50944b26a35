"""Progress of long work, without printing inside the stages.

A stage says `with progress.task("Training", total=100) as advance: advance(1)`. Nothing happens unless a front end
(the command line, or `el.fit(..., show_progress=True)`) has opened a display with `progress.shown()`. The logger
"effective_langevin" is told when a stage ends and how long it took, at level INFO; parts of a stage at level DEBUG.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol

Advance = Callable[..., None]

LOGGER = logging.getLogger("effective_langevin")
LOGGER.addHandler(logging.NullHandler())


class Display(Protocol):
    """What a display must offer to the stages."""

    def task(self, name: str, total: float) -> Advance:
        """Open a line of progress; the returned function advances it and may set a note."""
        ...


_display: ContextVar[Display | None] = ContextVar("progress_display", default=None)
_inside: ContextVar[bool] = ContextVar("progress_inside", default=False)


@contextmanager
def task(name: str, total: float) -> Iterator[Advance]:
    """Report long work of `total` units; yield `advance(units, note="")`. Tasks inside a task are not shown."""
    display, level, started = _display.get(), logging.DEBUG if _inside.get() else logging.INFO, time.monotonic()
    tokens = _display.set(None), _inside.set(True)
    try:
        yield display.task(name, total) if display else (lambda units=1, note="": None)
        LOGGER.log(level, "%s: %.1f s", name, time.monotonic() - started)
    finally:
        _display.reset(tokens[0])
        _inside.reset(tokens[1])


class _Lines:
    """Progress on something that is not a terminal: a plain line every few seconds."""

    every = 5.0

    def task(self, name: str, total: float) -> Advance:
        done, started, last = 0.0, time.monotonic(), time.monotonic()

        def advance(units: float = 1, note: str = "") -> None:
            nonlocal done, last
            done += units
            now = time.monotonic()
            if now - last >= self.every or done >= total:
                last = now
                line = f"{name}: {100 * done / total:3.0f} % after {now - started:.0f} s {note}"
                with suppress(OSError, ValueError):  # a stream that is full or closed does not stop the work
                    print(line.rstrip(), file=sys.stderr)

        return advance


class _Bars:
    """Progress on a terminal: one rich bar per stage, with the time left."""

    def __init__(self, bars):
        self.bars = bars

    def task(self, name: str, total: float) -> Advance:
        identity = self.bars.add_task(name, total=total, note="")
        return lambda units=1, note="": self.bars.update(identity, advance=units, note=note)


@contextmanager
def shown() -> Iterator[None]:
    """Show the progress of everything that runs inside this block."""
    with ExitStack() as stack:
        display: Display = _Lines()
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            percent = TextColumn("{task.percentage:>3.0f} %")
            columns = (TextColumn("{task.description:<28}"), BarColumn(), percent, TimeElapsedColumn())
            more = (TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
            display = _Bars(stack.enter_context(Progress(*columns, *more, console=Console(stderr=True))))
        token = _display.set(display)
        try:
            yield
        finally:
            _display.reset(token)
