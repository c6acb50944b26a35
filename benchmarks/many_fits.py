"""Does a process that fits many series grow? `python -m benchmarks.many_fits`.

Fits 100 series of different lengths, of one to three variables, one after the other in one process, with a learned
score. Writes the resident memory after each to benchmarks/results/many_fits.json. Compiled programs are dropped after
many sizes, so that memory rises and falls: the largest value of the last 10 fits is compared with that of the first 10,
beside the value after 100 fits with that after 10, which must be within 20 %.
"""

import json
import resource
import time
import warnings
from pathlib import Path

import effective_langevin as el

from .robustness import describe_code

RESULTS = Path(__file__).parent / "results" / "many_fits.json"
FITS, FIRST, MOST = 100, 10, 1.2
SCORE = el.KGMM(noise_level=0.2, steps=200)


def resident_mb() -> float:
    """Return the memory that this process holds now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def measure(fits: int = FITS) -> list[float]:
    """Fit so many series, none of the shape of another; return the memory after each fit."""
    held = []
    for number in range(fits):
        system = el.systems.OrnsteinUhlenbeck.rotating(1 + number % 3)
        series = system.simulate(40.0 + number, dt=0.1, seed=number)
        model = el.fit(series, score=SCORE, seed=number)
        model.simulate(10.0 + number, members=4, seed=number)
        held.append(round(resident_mb(), 1))
        print(f"{number + 1} fits: {held[-1]:.0f} MB", flush=True)
    return held


def main() -> None:
    warnings.simplefilter("ignore")
    began, held = time.monotonic(), measure()
    ratio, largest = held[-1] / held[FIRST - 1], max(held[-FIRST:]) / max(held[:FIRST])
    found = {
        "code": describe_code(),
        "fits": FITS,
        "seconds": round(time.monotonic() - began),
        "ratio": round(ratio, 3),
    }
    found |= {"ratio_of_largest": round(largest, 3), "within": ratio <= MOST}
    RESULTS.write_text(json.dumps({**found, "most_mb": max(held), "resident_mb": held}, indent=1) + "\n")
    print(f"After {FITS} fits {ratio:.2f} times the memory after {FIRST}; largest of {FIRST} fits {largest:.2f} times")


if __name__ == "__main__":
    main()
