"""The command line: `effective-langevin COMMAND`.

commands.py   what each command does        options.py   its flags        settings.py   flags and TOML to one run
choices.py    names to objects              output.py    what is printed
demo.py       demonstrations                run_folder.py   the folder of a run
"""

import io
import os
import signal
import sys
import warnings
from typing import Any

import typer

from .._core.errors import EffectiveLangevinError, EstimateWarning
from .commands import app
from .output import complain

__all__ = ["app", "main"]

# The errors of the parser: newer versions of typer include it, older ones use that of click.
_ParserError: Any = typer.BadParameter.__mro__[2]


def main() -> None:
    """Entry point: exit code 0, 130 when interrupted, or 2 with one line of error that the user can act on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale without ± is no reason to fail
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = _run(sys.argv[1:])
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", EstimateWarning)
            warnings.showwarning = lambda message, *_, **__: complain("Warning", str(message))
            code = app(arguments, prog_name="effective-langevin", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except EffectiveLangevinError as error:
        complain("Error", str(error))
    except _ParserError as error:
        if not arguments:
            error.show()  # the help
        else:
            complain("Error", error.format_message())
    except OSError as error:
        complain("Error", f"{error.filename or 'a file'}: {error.strerror or error}.")
    except MemoryError as error:
        complain("Error", f"There is not enough memory: {error or 'ask for less'}.")
    except KeyboardInterrupt:
        complain("Error", "Interrupted.")
        return 130
    return 2
