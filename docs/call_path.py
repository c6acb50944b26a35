"""Draw the way of one series through the package, from a trace of a real run.

    python -m docs.call_path

runs `el.read -> el.fit -> el.validate -> report` on a small file under `sys.setprofile`, notes every call that passes
from one folder of the package to another, and writes the drawing into CONTRIBUTING.md. Calls into `_core`, `execution`,
`systems`, `data/lazy.py` (rows of segments) and `__init__` files count as part of their caller; `fit` stands for all
modules beside it. A stage is entered where `DRIVERS` call a function, a class method or one of `WORKING_METHODS` of
it; other methods and properties only ask a finished product. These, and what a stage itself calls in lower layers, are
counted apart.
"""

import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import effective_langevin as el

PACKAGE = Path(el.__file__).parent
PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
LOWER = ("statistics",)
WORKING_METHODS = ("LangevinModel.__init__", "LangevinModel.simulate", "Validation.report")
IGNORED = ("_core", "execution", "systems", "cli")
USER = "user"
DRIVERS = (USER, "fit", "validate")
WRITTEN_BY_DATACLASS = "<string>"
MARKS = "<!-- python -m docs.call_path -->\n```text\n", "\n```\n<!-- end -->"


@dataclass(frozen=True)
class Call:
    """A call from one folder to another; `enters` if it starts work there, instead of asking a product."""

    caller: str
    folder: str
    name: str
    enters: bool

    @property
    def starts_stage(self) -> bool:
        """Whether a driver starts work in a folder that is not below all stages."""
        return self.enters and self.caller in DRIVERS and self.folder not in LOWER

    @classmethod
    def of(cls, caller: str, folder: str, frame: FrameType) -> "Call":
        """Read name and kind of the function from its frame."""
        code, name = frame.f_code, frame.f_code.co_qualname
        if code.co_varnames[:1] == ("self",):  # by the class of the object: methods may be inherited
            name = f"{type(frame.f_locals['self']).__name__}.{code.co_name}"
        is_method = "." in name and code.co_varnames[:1] != ("cls",)
        enters = name in WORKING_METHODS or not (is_method or name == "<module>")
        return cls(caller, folder, name, enters)


@dataclass
class Trace:
    """Calls between folders, while the context `recording` is open."""

    step: str = ""
    calls: dict[str, list["Call"]] = field(default_factory=dict)
    stack: list[str] = field(default_factory=lambda: [USER])
    places: dict[str, str | None] = field(default_factory=dict)

    @contextlib.contextmanager
    def recording(self, step: str) -> Iterator[None]:
        """Record what is called under the name of this step."""
        self.step = step
        self.calls[step] = []
        self.stack = [USER]
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        file = frame.f_code.co_filename
        if file == WRITTEN_BY_DATACLASS:
            file = frame.f_globals.get("__file__", "")
        if file not in self.places:
            self.places[file] = folder_of(file)
        folder = self.places[file]
        if folder is None:
            return
        if event == "return":
            if len(self.stack) > 1:
                self.stack.pop()
            return
        caller, folder = self.stack[-1], folder or self.stack[-1]
        if folder not in self.stack:  # a folder that is still at work is called back, not entered
            self.calls[self.step].append(Call.of(caller, folder, frame))
        self.stack.append(folder)


def folder_of(file: str) -> str | None:
    """Return the folder of the package that a file belongs to, "" if its calls are the caller's, None if outside."""
    with contextlib.suppress(ValueError):
        first, *rest = Path(file).relative_to(PACKAGE).parts
        ignored = first in IGNORED or (rest or [first])[-1] == "__init__.py" or (first, *rest) == ("data", "lazy.py")
        return "" if ignored else first if rest else "fit"
    return None


def small_run(folder: Path, trace: Trace) -> None:
    """Read, fit, validate, report: the path of a user, on 4000 samples."""
    wells, score = el.systems.AsymmetricWells(), el.KGMM(noise_level=0.2, cells=50, hidden=(16,))
    wells.simulate(duration=50.0, dt=0.05, members=4, seed=0).to_xarray(dataset=True).to_netcdf(
        folder / "wells.nc", engine="h5netcdf"
    )
    with trace.recording("el.read"):
        series = el.read(folder / "wells.nc")
    with trace.recording("el.fit"):
        model = el.fit(series, score=score, seed=0)
    with trace.recording("el.validate"):
        result = el.validate(model, series, seed=1)
    with trace.recording("report"):
        result.report(folder / "report.html")


def entries(calls: list[Call]) -> list[tuple[str, list[str]]]:
    """Return the folders in the order in which they are entered, with the functions called there, each once."""
    found: list[tuple[str, list[str]]] = []
    for call in calls:
        if not call.starts_stage:
            continue
        if not found or found[-1][0] != call.folder:
            found.append((call.folder, []))
        if call.name not in found[-1][1]:
            found[-1][1].append(call.name)
    return found


def drawing(trace: Trace) -> str:
    """Return what each step enters, in order, and how often folders ask products and call lower layers."""
    lines, asked = [], Counter()
    for step, calls in trace.calls.items():
        for i, (folder, functions) in enumerate(entries(calls)):
            lines.append(f"{step if i == 0 else '':12s} {folder:9s} {', '.join(functions)}")
        asked.update((call.caller, call.folder) for call in calls if not call.starts_stage)
    lines += ["", "Products asked and lower layers called, by number of calls:"]
    for caller in dict.fromkeys(caller for caller, _ in asked):
        row = sorted(((n, folder) for (source, folder), n in asked.items() if source == caller), reverse=True)
        lines.append(f"{caller:12s} {', '.join(f'{folder} {n}' for n, folder in row)}")
    return "\n".join(lines)


def main() -> None:
    """Run, print the drawing and write it into CONTRIBUTING.md."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        small_run(Path(folder), trace)
    text = drawing(trace)
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    start = page.index(MARKS[0]) + len(MARKS[0])
    PAGE.write_text(page[:start] + text + page[page.index(MARKS[1], start) :], encoding="utf-8")


if __name__ == "__main__":
    main()
