"""`python -m benchmarks robustness [FAMILY ...] [--quick] [--logs FOLDER]`: hostile inputs, and what became of them.

Every case ends in one of five ways: a right answer, a refusal in one sentence, a wrong answer, a crash, a hang. A
family is a function `(folder, count) -> iterator of Case`: it may write into `folder`, and `count` says how many seeded
cases to make where the family can make any number. Register one in `FAMILIES`, as "module:function". The cases run in
processes of their own, with a limit on time and memory, so that a crash ends only that case. With `--logs` a run that
was stopped continues where it was.
"""

import argparse
import importlib
import json
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
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "robustness.json"
OUTCOMES = ("right", "refused", "wrong", "crash", "hang")
LIMIT_SECONDS, LIMIT_BYTES = 60, 4 << 30
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

    signal.signal(signal.SIGALRM, _be_late)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES,) * 2)
    code = describe_code()
    with tempfile.TemporaryDirectory() as folder, log.open("a", buffering=1) as out:
        for number, case in enumerate(find_cases(family, Path(folder), count)):
            if number < start or (only and number not in only):
                continue
            found: dict[str, Any] = {"number": number, "case": case.name, "code": code}
            out.write(json.dumps(found) + "\n")
            began = time.monotonic()
            signal.alarm(LIMIT_SECONDS)
            outcome, said = try_case(case)
            signal.alarm(0)
            found |= {"outcome": outcome, "said": said[:300], "seconds": round(time.monotonic() - began, 2)}
            out.write(json.dumps(found) + "\n")


def describe_code() -> str:
    """Return the commit that runs and its tree `src`, which a rebase does not rename; "changed" where files differ."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    names = [git("rev-parse", "--short", "HEAD"), "src", git("rev-parse", "--short", "HEAD:src")]
    return " ".join(names + ["changed"] * bool(changed))


def _be_late(*_: Any) -> None:
    raise Late(f"no answer within {LIMIT_SECONDS} s")


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
            said = f"no answer within {2 * LIMIT_SECONDS} s" if code is None else f"the process ended with code {code}"
            found.append({**lines[-1], "outcome": outcome, "said": said, "seconds": 0.0})
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
            if time.time() - log.stat().st_mtime > 2 * LIMIT_SECONDS:
                child.kill()
                child.wait()
                return None


def count_outcomes(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many cases ended in each way, the slowest, what was not as it should be, and answers by name."""
    counts = Counter(line["outcome"] for line in found)
    faults = [line for line in found if line["outcome"] not in ("right", "refused")]
    slowest = max((line["seconds"] for line in found), default=0.0)
    answers = {line["case"]: line["outcome"] for line in found} if len(found) <= _NAMED else {}
    ended = {o: counts[o] for o in OUTCOMES}
    code = sorted({line["code"] for line in found})
    counted = {"cases": len(found), **ended, "slowest_seconds": slowest, "code": code}
    return {**counted, "faults": faults, "answers": answers}


def table(results: dict[str, Any]) -> str:
    head = ["family", "cases", *OUTCOMES, "slowest, s"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for family, r in results.items():
        cells = [family, r["cases"], *(r[o] for o in OUTCOMES), f"{r['slowest_seconds']:.1f}"]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    total = ["all", *(sum(r[k] for r in results.values()) for k in ("cases", *OUTCOMES))]
    slowest = max((r["slowest_seconds"] for r in results.values()), default=0.0)
    lines.append(f"| {' | '.join(str(cell) for cell in total)} | {slowest:.1f} |")
    code = sorted({code for r in results.values() for code in r.get("code", ["not noted"])})
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
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() and not given.quick else {}
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
