"""Run `fit --out` once for every write that it makes, and fail or die there; then run it again. Started by a test.

python faulty_writes.py FOLDER FIRST STEP     prints one line of JSON for every fault

Every run is a fork of this process, which itself never uses JAX, so that each fork may.
"""

import errno
import json
import os
import shutil
import sys
from pathlib import Path

from effective_langevin import cli
from effective_langevin.validate import report

WRITES = ("fsync", "replace", "rename", "mkdir", "unlink")
FAILING = WRITES[:-1]  # on a full disk files can still be removed
KEPT = 2  # figures, which are all written alike


def run(folder: Path, number: int = -1, dies: bool = False) -> tuple[int, int]:
    """Run the command in a fork, with a fault at the write of that number; return its exit code and its writes."""
    counted = folder / "count"
    counted.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _inject(folder, number, dies, counted)
        sys.stdout = sys.stderr = open(folder / "said", "w", buffering=1)  # noqa: SIM115
        sys.argv = ["effective-langevin", "fit", "--config", "settings.toml", "--out", "run"]
        try:
            cli.main()
        except SystemExit as stop:
            os._exit(int(stop.code or 0))
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, len(counted.read_text()) if counted.exists() else 0


def _inject(folder: Path, number: int, dies: bool, counted: Path) -> None:
    """Count every write to the run, and let one of them fail or end the process."""
    report.FIGURES = dict(list(report.FIGURES.items())[:KEPT])
    calls = iter(range(10**6))

    def wrapped(name):
        original = getattr(os, name)

        def call(target, *more, **options):
            ours = isinstance(target, int) or str(Path(target).absolute()).startswith(str(folder / "run"))
            if ours and (name in FAILING or dies):
                this = next(calls)
                with counted.open("a") as file:
                    file.write("x")
                if this == number and dies:
                    os._exit(9)
                if this == number:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
            return original(target, *more, **options)

        return call

    for name in WRITES:
        setattr(os, name, wrapped(name))


def look(folder: Path) -> dict[str, int]:
    """Sizes of the files under their final names."""
    return {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


def main(folder: Path, first: int, step: int) -> None:
    os.chdir(folder)
    code, _ = run(folder)
    assert code == 0, (folder / "said").read_text()
    good, model = look(folder / "run"), (folder / "run" / "model.safetensors").read_bytes()
    for dies in (False, True):
        shutil.rmtree(folder / "run")
        writes = run(folder, -1, dies)[1]
        for number in range(first, writes, step):
            shutil.rmtree(folder / "run")
            code, _ = run(folder, number, dies)
            said = (folder / "said").read_text()
            there = sorted(p.name for p in folder.iterdir() if p.name.startswith("run"))
            half = [
                name
                for place in ("run", "run.partial")
                for name, size in look(folder / place).items()
                if not Path(name).name.startswith(".") and Path(name).suffix in (".safetensors", ".toml") and size < 100
            ]
            again = 0 if (folder / "run").exists() else run(folder)[0]
            same = (folder / "run" / "model.safetensors").read_bytes() == model
            files = sorted(set(look(folder / "run")) ^ set(good))
            left = sorted(p.name for p in folder.iterdir() if p.name not in ("run", "settings.toml", "ok.npz", "said"))
            answer = {"dies": dies, "number": number, "code": code, "there": there, "half": half, "again": again}
            answer |= {"same": same, "files": files, "left": [n for n in left if n not in ("count", "compiled")]}
            print(json.dumps({**answer, "traceback": "Traceback" in said, "said": said[-300:]}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
