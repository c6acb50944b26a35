"""What the package says about series that were not made for it; quick strategies, since the words are what counts."""

import json

import numpy as np
import pytest
from oracles.command_line import run_main

import effective_langevin as el
from effective_langevin import preprocess as pp

pytestmark = pytest.mark.integration


def judged(path, preprocess=None, mobility=None):
    series = el.read(path)
    model = el.fit(series, preprocess=preprocess, score=el.Gaussian(), mobility=mobility or el.QuadraticVariation())
    return model, el.validate(model, series, seed=1, members=128)


def test_eeg_is_refused_as_not_stationary(shared_data, tmp_path, monkeypatch, capsys):
    arguments = ["fit", shared_data("eeg_eye_state.npz"), "--out", tmp_path / "run"]
    code, out, err = run_main(monkeypatch, capsys, *arguments)
    errors = [line for line in err.strip().splitlines() if " % after " not in line]  # without the progress
    assert (code, out, len(errors)) == (2, "", 1)
    assert errors[0].startswith("Error: ")
    assert "not stationary" in errors[0].lower()
    assert list(tmp_path.iterdir()) == []


def test_the_noise_of_a_fish_school_is_said_to_depend_on_the_state(shared_data):
    """Its diffusion falls about fivefold from the centre to the edge of the unit disc."""
    _, result = judged(shared_data("fish_schooling.npz"))
    assert "State-dependent steps" in result.summary()
    profile = result.curves["step_size"].data[1]
    assert (profile[:, 0] / profile[:, -1] > 2.5).all()
    assert (result.curves["step_size"].model[1] < 1.3).all()


def test_the_noise_of_a_fish_school_is_largest_at_its_centre(shared_data):
    """Beneath the jitter of single samples; along the radius D falls to less than half, across it hardly changes."""
    series = el.read(shared_data("fish_schooling.npz"))
    model = el.fit(series, mobility=el.StateDependent(), check="off")
    assert model.mobility.evidence.noisy
    assert model.mobility.evidence.closure.kind in ("diffusion", "both")
    angles = np.arange(16) * np.pi / 8
    outward = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centre, edge = (np.asarray(model.diffusion(radius * outward)) for radius in (0.0, 0.95))
    along = np.einsum("ai,aij,aj->a", outward, edge, outward).mean() / (0.5 * np.trace(centre[0]))
    assert along < 0.6
    assert np.trace(edge, axis1=1, axis2=2).max() < 1.1 * np.trace(centre[0])


def test_ten_climate_indices_of_552_months_are_called_too_few(shared_data):
    _, result = judged(shared_data("enso_xro.npz"))
    assert not result.summary().startswith("Good")
    assert "Circulation: not significant" in result.summary() or "not established" in result.summary()
    assert result.metrics["covariance_error_floor"] > 0.2


def test_the_gaps_of_the_daily_nao_are_counted(shared_data):
    _, result = judged(shared_data("nao_daily.npz"), mobility=el.IntegratedResponse())
    assert "20 rows with missing values dropped" in result.summary()
    assert "Regime: the series is smooth (ballistic)" in result.summary()


def test_dihedral_angles_are_simulated_as_angles(shared_data):
    model, result = judged(shared_data("alanine_dipeptide.npz"), preprocess=pp.Periodic(["phi", "psi"]))
    paths = model.simulate(500.0, members=4, seed=0)
    assert (paths.names, paths.units) == (("phi", "psi"), ("rad", "rad"))
    assert np.abs(paths.values).max() <= np.pi
    assert result.original.data.names == ("phi", "psi")
    assert "Angles: cos and sin of an angle lie on a circle" in result.summary()


def test_the_basins_of_alanine_dipeptide_are_found_with_their_weights(shared_data):
    """100 ns of MD in 10000 samples: phi is positive for 2.4 % of the time, in two visits; errors are large."""
    series = el.read(shared_data("alanine_dipeptide.npz"))
    model = el.fit(series, preprocess=pp.Periodic(["phi", "psi"]))
    result = el.validate(model, series, seed=1, members=128)
    metrics = result.metrics
    assert metrics["pdf_kl_original"] < metrics["pdf_kl_original_floor"]
    assert metrics["pdf_kl_max"] < metrics["pdf_kl_max_floor"]
    assert "Angles: phi has 2 basins: around -1.4 rad with 97.6 ± 1.4 % of the data" in result.summary()
    assert (result.original.paths.stacked()[:, 0] > 0).mean() == pytest.approx(0.024, abs=0.03)
    levels = {f.name: f.level for f in result.verdict.findings}
    assert levels["steady state"] in ("ok", "note")


def test_one_command_leads_from_the_climate_indices_to_a_report(shared_data, tmp_path, monkeypatch, capsys):
    flags = ["--detrend", "--deseason", "12:2", "--pca", "3", "--seed", "1", "--out", tmp_path / "run", "--json"]
    code, out, _ = run_main(monkeypatch, capsys, "fit", shared_data("XRO_indices_oras5.nc"), *flags)
    assert code == 0
    assert json.loads(out)["metrics"]["pdf_kl_original"] > 0
    assert (tmp_path / "run" / "report.html").stat().st_size > 1e5
    months = el.load(tmp_path / "run" / "model.safetensors").simulate(24.0, members=2)
    assert months.names[0] == "Nino34"
    assert months.starts == (108.0, 108.0)
