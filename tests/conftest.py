"""What several test modules share. Everything is seeded; the derivations of the oracles are in README.md."""

import os
from pathlib import Path

import hypothesis
import pytest

import effective_langevin as el

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=40)
hypothesis.settings.load_profile("repeatable")

# Beside the repository, or wherever this variable points to.
SHARED_DATA = Path(os.environ.get("EFFECTIVE_LANGEVIN_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data():
    """A function from the name of a file of real data to its path; skips the test where the file is not there."""

    def find(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.is_file():
            pytest.skip(f"{path} is not on this machine")
        return path

    return find


@pytest.fixture(scope="session")
def wells():
    return el.systems.AsymmetricWells()


@pytest.fixture(scope="session")
def wells_series(wells):
    """2e5 samples of the four wells in 20 records, dt = 0.05."""
    return wells.simulate(duration=500.0, dt=0.05, members=20, seed=1)


@pytest.fixture(scope="session")
def wells_model(wells_series):
    """A quick fit of the four wells: good to about 10 %, which is all its tests ask for."""
    return el.fit(wells_series, score=el.KGMM(noise_level=0.05, steps=600, max_draws=8), seed=0)


@pytest.fixture(scope="session")
def linear_series():
    """A rotating Ornstein-Uhlenbeck process, 2e4 samples in 4 records, with names and units."""
    paths = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(duration=500.0, dt=0.1, members=4, seed=3, step=0.05)
    return el.TimeSeries(
        paths.values * [3.0, 0.2] + [10.0, -1.0], 0.1, names=["T", "h"], units=["K", "m"], time_unit="d"
    )


@pytest.fixture(scope="session")
def linear_model(linear_series):
    """The linear inverse model of `linear_series`: no network, fitted in no time."""
    return el.fit(linear_series, score=el.Gaussian(), mobility=el.LogCorrelation(), seed=0)
