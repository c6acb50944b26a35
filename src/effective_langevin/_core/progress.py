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

Advance = Callable[..., None]

LOGGER = logging.getLogger("effective_langevin")
LOGGER.addHandler(logging.NullHandler())


# Opens a line of progress, of a name and a total; the function it returns advances it and may set a note.
Display = Callable[[str, float], Advance]

_EVERY = 5.0  # seconds between two lines where there is no terminal
_display: ContextVar[Display | None] = ContextVar("progress_display", default=None)
_inside: ContextVar[bool] = ContextVar("progress_inside", default=False)


@contextmanager
def task(name: str, total: float) -> Iterator[Advance]:
    """Report long work of `total` units; yield `advance(units, note="")`. Tasks inside a task are not shown."""
    display, level, started = _display.get(), logging.DEBUG if _inside.get() else logging.INFO, time.monotonic()
    tokens = _display.set(None), _inside.set(True)
    try:
        yield display(name, total) if display else (lambda units=1, note="": None)
        LOGGER.log(level, "%s: %.1f s", name, time.monotonic() - started)
    finally:
        _display.reset(tokens[0])
        _inside.reset(tokens[1])


def _in_lines(name: str, total: float) -> Advance:
    """Show progress on something that is not a terminal: a plain line every few seconds."""
    done, started, last = 0.0, time.monotonic(), time.monotonic()

    def advance(units: float = 1, note: str = "") -> None:
        nonlocal done, last
        done += units
        now = time.monotonic()
        if now - last >= _EVERY or done >= total:
            last = now
            line = f"{name}: {100 * done / total:3.0f} % after {now - started:.0f} s {note}"
            with suppress(OSError, ValueError):  # a stream that is full or closed does not stop the work
                print(line.rstrip(), file=sys.stderr)

    return advance


@contextmanager
def shown() -> Iterator[None]:
    """Show the progress of everything that runs inside this block."""
    with ExitStack() as stack:
        display: Display = _in_lines
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            percent = TextColumn("{task.percentage:>3.0f} %")
            columns = (TextColumn("{task.description:<28}"), BarColumn(), percent, TimeElapsedColumn())
            more = (TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
            bars = stack.enter_context(Progress(*columns, *more, console=Console(stderr=True)))

            def in_bars(name: str, total: float) -> Advance:
                bar = bars.add_task(name, total=total, note="")
                return lambda units=1, note="": bars.update(bar, advance=units, note=note)

            display = in_bars

        token = _display.set(display)
        try:
            yield
        finally:
            _display.reset(token)
