"""What is wrong with a series, a stream or a disk is said in one sentence, with its cause."""

import io
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
import xarray as xr

import effective_langevin as el
from effective_langevin.cli.output import complain
from effective_langevin.data.io.write import write


@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_variables_beyond_the_range_of_squares_are_refused(scale, linear_series):
    series = el.TimeSeries(linear_series.stacked()[:300] * scale, 0.1)
    with pytest.raises(el.DataError, match="leave the range of float64"):
        el.fit(series, score=el.Gaussian())


def _halved(x):
    return np.sign(x - np.median(x))


def _spiked(x):
    x[len(x) // 2] = 1e6
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("change", "cause"), [(_halved, "x1 takes 2 values"), (_spiked, "single samples far from all others, x1 1")]
)
def test_a_refusal_names_what_was_found_before_the_fit(change, cause, monkeypatch, linear_series):
    def singular(*_, **__):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(import_module("effective_langevin.fit"), "estimate_score", singular)
    with pytest.raises(el.DataError, match=rf"does not determine the model \(Singular matrix\)\..*{cause}"):
        el.fit(el.TimeSeries(change(linear_series.stacked()[:2000, :1].copy()), 0.1), score=el.Gaussian())


def test_a_file_that_cannot_be_closed_is_refused_in_one_line(monkeypatch, tmp_path, linear_series):
    def fill_up(*_, **__):
        raise RuntimeError("Set slist enabled failed (file write failed:\nerrno = 28)")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", fill_up)
    with pytest.raises(el.ArgumentError, match=r"Cannot write .*paths.nc: Set slist enabled failed .*errno = 28\)\.$"):
        write(linear_series, tmp_path / "paths.nc")
    assert list(tmp_path.iterdir()) == []


FULL_DISK = """
import resource, sys
import numpy as np
import effective_langevin as el
from pathlib import Path
from effective_langevin.data.io.write import write
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write(el.TimeSeries(np.random.default_rng(0).normal(size=(5000, 2)), 0.1), Path(sys.argv[1]))
except el.ArgumentError as error:
    print(error)
"""


@pytest.mark.integration
@pytest.mark.parametrize("suffix", ["nc", "h5"])
def test_a_process_survives_a_disk_that_fills_up_in_the_middle_of_a_file(suffix, tmp_path):
    """HDF5 keeps open what it cannot flush, and the process then ends with a segmentation fault."""
    target = tmp_path / f"paths.{suffix}"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, target], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Cannot write {target}: File too large.\n"
    assert list(tmp_path.iterdir()) == []


class Full(io.StringIO):
    tried = 0

    def write(self, _):
        self.tried += 1
        raise OSError(28, "No space left on device")


def test_a_warning_on_a_full_stream_does_not_end_the_work(monkeypatch):
    full = Full()
    monkeypatch.setattr(sys, "stderr", full)
    complain("Warning", "nobody reads this")
    assert full.tried
