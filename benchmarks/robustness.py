"""`python -m benchmarks robustness [FAMILY ...] [--quick] [--logs FOLDER]`: hostile inputs, and what became of them.

Every case ends in one of five ways: a right answer, a refusal in one sentence, a wrong answer, a crash, a hang. A
family is a function `(folder, count) -> iterator of Case`: it may write into `folder`, and `count` says how many seeded
cases to make where the family can make any number. Register one in `FAMILIES`, as "module:function". The cases run in
processes of their own, with a limit on time and memory, so that a crash ends only that case. Time is that of the
processor, which the case has for itself on an idle machine; the clock is a second, wider limit. With `--logs` a run
that was stopped continues where it was.
"""

import argparse
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "robustness.json"
TIMES = ("processor_seconds", "seconds")
OUTCOMES = ("right", "refused", "wrong", "crash", "hang")
LIMIT_SECONDS, LIMIT_BYTES = 60, 4 << 30  # of processor time, of memory
LIMIT_CLOCK = 5 * LIMIT_SECONDS  # for a case that waits for others, or for ever
MANY, FEW = 1000, 40  # seeded cases of a family: in full, and with --quick

_NAMED = 400  # cases of a family that the results name one by one; damaged copies are only counted

FAMILIES = {
    **{
        f"corrupted {kind}": f"benchmarks.hostile.corruption:{kind}"
        for kind in ("npy", "npz", "csv", "h5", "nc", "nc3", "zarr", "parquet")
    },
    "corrupted models": "benchmarks.hostile.models:models",
    "simulations": "benchmarks.hostile.simulations:simulations",
    "run folders": "benchmarks.hostile.commands:run_folders",
    "surroundings": "benchmarks.hostile.surroundings:surroundings",
    "hostile series": "benchmarks.hostile.series:series",
    "hostile files": "benchmarks.hostile.files:cases",
    "hostile tables": "benchmarks.hostile.tables:cases",
}


class Late(BaseException):
    """The time of a case is over; no reader may catch this."""


class Case(NamedTuple):
    """One hostile input: `call` reads or runs it and raises AssertionError where the answer is wrong.

    `expected` is "right", "refused" or "either". A refusal where a right answer is expected counts as wrong, and so
    does an answer where a refusal is expected.
    """

    name: str
    call: Callable[[], Any]
    expected: str = "either"


def find_cases(family: str, folder: Path, count: int) -> Iterator[Case]:
    """Return the cases of one family, given by its name or as "module:function"."""
    module, function = FAMILIES.get(family, family).split(":")
    return getattr(importlib.import_module(module), function)(folder, count)


def try_case(case: Case) -> tuple[str, str]:
    """Run one case; return its outcome and, unless it is right, what was said."""
    from effective_langevin import EffectiveLangevinError

    try:
        case.call()
    except EffectiveLangevinError as error:
        said = str(error)
        clear = said.strip() and "Traceback" not in said
        return ("refused" if case.expected != "right" and clear else "wrong"), f"refused: {said}"
    except AssertionError as error:
        return "wrong", str(error) or "the answer is wrong"
    except (Late, TimeoutError) as error:
        return "hang", str(error)
    except Exception as error:
        own = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)][-3:]
        return "crash", f"{type(error).__name__}: {error} [{' < '.join(reversed(own))}]"
    return ("wrong", "not refused") if case.expected == "refused" else ("right", "")


def run_alone(family: str, count: int, start: int, log: Path, only: frozenset[int] = frozenset()) -> None:
    """Run the cases of a family from number `start` on, or `only` some, in this process; write a line around each."""
    warnings.simplefilter("ignore")
    import effective_langevin  # noqa: F401  (its memory does not count)

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES,) * 2)
    code = describe_code()
    with tempfile.TemporaryDirectory() as folder, log.open("a", buffering=1) as out:
        for number, case in enumerate(find_cases(family, Path(folder), count)):
            if number < start or (only and number not in only):
                continue
            found: dict[str, Any] = {"number": number, "case": case.name, "code": code}
            out.write(json.dumps(found) + "\n")
            watch = Watch()
            outcome, said = try_case(case._replace(call=partial(watch.over, case.call)))
            spent = {"seconds": round(watch.clock(), 2), "processor_seconds": round(watch.processor(), 2)}
            found |= {"outcome": outcome, "said": said[:300], **spent}
            out.write(json.dumps(found) + "\n")


def describe_code() -> str:
    """Return the commit that runs and its tree `src`, which a rebase does not rename; "changed" where files differ."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    names = [git("rev-parse", "--short", "HEAD"), "src", git("rev-parse", "--short", "HEAD:src")]
    return " ".join(names + ["changed"] * bool(changed))


class Watch:
    """Raises `Late` in a call that has taken more processor time than it may, or far too long by the clock."""

    def __init__(self) -> None:
        self.began, self.used = time.monotonic(), processor_seconds()

    def clock(self) -> float:
        """Return the seconds since this began, by the clock."""
        return time.monotonic() - self.began

    def processor(self) -> float:
        """Return the processor time since this began."""
        return processor_seconds() - self.used

    def over(self, call: Callable[[], Any]) -> None:
        """Make a call, and look at the time once a second."""
        signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
        try:
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _look(self, *_: Any) -> None:
        if self.processor() > LIMIT_SECONDS or self.clock() > LIMIT_CLOCK:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            raise Late(f"no answer within {LIMIT_SECONDS} s of processor time, or {LIMIT_CLOCK} s")


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has started, ended or not."""
    ended = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    children = " ".join(task.read_text() for task in Path("/proc/self/task").glob("*/children")).split()
    return ended + sum(map(_processor_seconds_of, children))


def _processor_seconds_of(process: str) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:  # it has ended just now
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measure(family: str, count: int, logs: Path | None = None, again: bool = False) -> list[dict[str, Any]]:
    """Run a family in child processes; a child that dies or does not answer costs the case in which it was.

    What a log in the folder `logs` holds already is not run again, but for the faults in it with `again`.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = (logs or Path(folder)) / f"{family.replace(' ', '_')}.jsonl"
        log.parent.mkdir(exist_ok=True)
        log.touch()
        found = read_log(log)
        if again:
            only = ",".join(str(line["number"]) for line in found if line["outcome"] not in ("right", "refused"))
            if only:
                _run_child([FAMILIES[family], str(count), "0", str(log), only], log)
            return read_log(log)
        while True:
            start = found[-1]["number"] + 1 if found else 0
            code = _run_child([FAMILIES[family], str(count), str(start), str(log)], log)
            lines, found = [json.loads(line) for line in log.read_text().splitlines()], read_log(log)
            if code == 0:
                return found
            if not lines or "outcome" in lines[-1]:
                raise RuntimeError(f"The cases of {family} ended with exit code {code} between two cases.")
            outcome = "hang" if code is None else "crash"
            said = f"no answer within {2 * LIMIT_CLOCK} s" if code is None else f"the process ended with code {code}"
            found.append({**lines[-1], "outcome": outcome, "said": said, **dict.fromkeys(TIMES, 0.0)})
            with log.open("a") as out:
                out.write(json.dumps(found[-1]) + "\n")


def read_log(log: Path) -> list[dict[str, Any]]:
    """Return the last answer of each case that has one, by number."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    last = {line["number"]: line for line in lines if "outcome" in line}
    return [last[number] for number in sorted(last)]


def _run_child(arguments: list[str], log: Path) -> int | None:
    """Run cases until the end; return the exit code, or None for a child that wrote nothing for too long."""
    child = subprocess.Popen([sys.executable, "-m", "benchmarks.robustness", "--alone", *arguments])
    while True:
        try:
            return child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            if time.time() - log.stat().st_mtime > 2 * LIMIT_CLOCK:
                child.kill()
                child.wait()
                return None


def count_outcomes(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many cases ended in each way, the slowest, what was not as it should be, and answers by name."""
    counts = Counter(line["outcome"] for line in found)
    faults = [line for line in found if line["outcome"] not in ("right", "refused")]
    slowest = {f"most_{time}": max((line[time] for line in found), default=0.0) for time in TIMES}
    answers = {line["case"]: line["outcome"] for line in found} if len(found) <= _NAMED else {}
    ended = {o: counts[o] for o in OUTCOMES}
    code = sorted({line["code"] for line in found})
    counted = {"cases": len(found), **ended, **slowest, "code": code}
    return {**counted, "faults": faults, "answers": answers}


def table(results: dict[str, Any]) -> str:
    """Return the counts, with the most processor time of a case and the longest by the clock, as Markdown."""
    head = ["family", "cases", *OUTCOMES, "most processor time, s", "longest, s"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for family, r in results.items():
        cells = [family, r["cases"], *(r[o] for o in OUTCOMES), *(f"{r[f'most_{time}']:.1f}" for time in TIMES)]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    total = ["all", *(sum(r[k] for r in results.values()) for k in ("cases", *OUTCOMES))]
    total += [f"{max((r[f'most_{time}'] for r in results.values()), default=0.0):.1f}" for time in TIMES]
    lines.append(f"| {' | '.join(str(cell) for cell in total)} |")
    code = sorted({code for r in results.values() for code in r["code"]})
    return "\n".join([*lines, "", f"Code: commit {'; '.join(code)}."]) + "\n"


def main(arguments: list[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--alone"]:
        family, count, start, log, *only = arguments[1:]
        run_alone(
            family, int(count), int(start), Path(log), frozenset(map(int, ",".join(only).split(",") if only else ()))
        )
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks robustness", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"which ones: {', '.join(FAMILIES)}")
    parser.add_argument("--quick", action="store_true", help=f"{FEW} seeded cases a family, not {MANY}; not kept")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep the answers there, and continue from them")
    parser.add_argument("--again", action="store_true", help="with --logs: only the cases that failed, once more")
    given = parser.parse_args(arguments)
    if unknown := set(given.families) - set(FAMILIES):
        parser.error(f"no family called {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and not given.quick else {}
    results = {family: kept[family] for family in FAMILIES if "code" in kept.get(family, {})}
    for family in given.families or FAMILIES:
        results[family] = count_outcomes(measure(family, FEW if given.quick else MANY, given.logs, given.again))
        for fault in results[family]["faults"]:
            print(f"{family}, {fault['case']}: {fault['outcome']}: {fault['said']}", flush=True)
        if not given.quick:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            RESULTS.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
