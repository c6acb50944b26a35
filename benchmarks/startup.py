"""How long `effective-langevin demo` takes with an empty and with a filled store of compiled programs."""

import os
import subprocess
import sys
import tempfile
import time

from .harness import OURS, Report, Result

COMMAND = "from effective_langevin.cli import main; main()"


def run(quick: bool) -> Report:
    report = Report()
    arguments = ["demo", "--quick"] if quick else ["demo"]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "XDG_CACHE_HOME": folder}
        for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"):
            env.pop(name, None)
        cold, warm = (compiling_seconds([*arguments, "--out", f"{folder}/{i}"], env) for i in ("cold", "warm"))
    for name, (compiling, wall) in (("first run", cold), ("second run", warm)):
        note = f"{compiling:.1f} s of it compiling or loading programs"
        report.results.append(Result("demo", f"{OURS}, {name}", wall, wall, note=note))
        print(f"  demo, {name}: {wall:.1f} s, {note}", flush=True)
    ratio = cold[0] / warm[0]
    report.promise(
        "second `demo` starts faster than the first (time to programs)", ">= 2 x", f"{ratio:.1f} x", ratio >= 2
    )
    return report


def compiling_seconds(arguments: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Seconds spent making programs ready (JAX's own count) and in all."""
    counted = (
        "import jax, sys, atexit\n"
        "spent = {}\n"
        "def note(name, seconds, **_):\n"
        "    spent[name] = spent.get(name, 0.0) + seconds\n"
        "jax.monitoring.register_event_duration_secs_listener(note)\n"
        "names = ('/jax/core/compile/backend_compile_duration',)\n"
        "atexit.register(lambda: print('COMPILING', sum(spent.get(n, 0.0) for n in names)))\n"
        f"sys.argv = ['effective-langevin', *{arguments!r}]\n{COMMAND}\n"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", counted], env=env, capture_output=True, text=True)
    wall = time.perf_counter() - started
    lines = [line for line in done.stdout.splitlines() if line.startswith("COMPILING")]
    if done.returncode or not lines:
        raise RuntimeError(f"the demo failed: {done.stderr[-500:]}")
    return float(lines[-1].split()[1]), wall
