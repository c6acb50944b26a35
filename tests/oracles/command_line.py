"""The command line inside this process, and a small series for it."""

import numpy as np

import effective_langevin as el
from effective_langevin import cli

QUICK = ["--score", "gaussian", "--mobility", "quadratic-variation"]


def run_main(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, output and errors of `effective-langevin ARGUMENTS`."""
    monkeypatch.setattr("sys.argv", ["effective-langevin", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return int(code or 0), captured.out, captured.err


def ou_table(path, length=2000, names=("a", "b")):
    """A rotating Ornstein-Uhlenbeck process with a season of 5 in its first variable, as a CSV file with times."""
    series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(0.1 * length, dt=0.1, members=1, seed=0)
    time = 3 + 0.1 * np.arange(len(series.values))
    values = series.values + np.column_stack([3 * np.cos(2 * np.pi * time / 5), 0 * time]) + [10.0, -2.0]
    header = ",".join(["time [s]", f"{names[0]} [K]", f"{names[1]} [m]"])
    np.savetxt(path, np.column_stack([time, values]), delimiter=",", header=header, comments="")
    return path
