"""The report: what it says, and how it stands in a real browser on a desk and on a telephone."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.browser import CHROMIUM, inspect_page

import effective_langevin as el
from effective_langevin.estimate.mobility.evidence import Agreement, Estimate
from effective_langevin.validate import plots
from effective_langevin.validate.findings.describe_model import Portrait
from effective_langevin.validate.report import figures, render
from effective_langevin.validate.report_tables import agreement, matrices, rare_rows

LONG = "sea_surface_temperature_anomaly_of_the_central_equatorial_pacific"
EVIL = "<i>&T"


@pytest.fixture(scope="module")
def validation():
    """A linear process of four variables, one with a long name and one that is not harmless in HTML."""
    process = el.systems.OrnsteinUhlenbeck.rotating(4)
    values = process.simulate(duration=150.0, dt=0.1, members=4, seed=3, step=0.05).values
    series = el.TimeSeries(values, 0.1, names=[LONG, EVIL, "h", "w"], units=["K", "m/s", "m", ""], time_unit="days")
    model = el.fit(series, score=el.Gaussian(), mobility=el.IntegratedResponse(), seed=0)
    return el.validate(model, series, seed=1, members=16, duration=60.0)


@pytest.fixture(scope="module")
def page(validation):
    return render(validation, figures(validation))


@pytest.mark.integration
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_in_a_browser_nothing_fails_to_load_and_nothing_overflows(page, tmp_path, width, dark):
    found = inspect_page(page, tmp_path, width, dark)
    assert found["width"] == width
    assert found["faults"] == []
    assert found["overflow"] <= 0
    assert found["wide"] == []
    assert len(found["images"]) >= 8
    assert all(image["loaded"] and len(image["alt"]) > 15 for image in found["images"])
    assert found["out_of_reach"] == []
    assert found["broken_links"] == found["repeated_ids"] == []
    assert found["scripts"] == 0
    assert EVIL in found["texts"]
    assert "Irreversibility:" in found["texts"]


@pytest.mark.integration
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_the_browser_would_notice(page, tmp_path):
    """A broken image, a fault in a script, a table outside its box and a link to nowhere."""
    spoiled = page.replace("data:image/png;base64,", "data:image/png;base64,AAAA", 1)
    spoiled = spoiled.replace(
        "</footer>", "</footer><a href='#none'>x</a><p style='width:2000px'>wide</p><script>f()</script>"
    )
    found = inspect_page(spoiled, tmp_path, 390)
    assert any("not defined" in fault for fault in found["faults"])
    assert found["overflow"] > 0
    assert [image["loaded"] for image in found["images"]].count(False) == 1
    assert found["broken_links"] == ["#none"]


def test_the_page_has_every_section_and_figure(page):
    for words in (
        "In words",
        "Timescales and rotations",
        "Spectra",
        "Extremes",
        "Sample paths",
        "The data",
        "Evidence",
    ):
        assert f">{words}</h" in page
    assert page.count("<figure>") == page.count("data:image/png")
    assert EVIL not in page


def test_matrices_have_errors_and_phi_has_intervals(validation):
    phi, *rest = matrices(validation)
    assert [t["title"] for t in rest] == ["Diffusion Φ<sub>S</sub>", "Circulation Φ<sub>A</sub>", "Noise factor Σ"]
    value, interval = phi["rows"][0][1][0]
    low, high = (float(end.replace("−", "-")) for end in interval.split(" … "))
    assert low < float(value.split(" ± ")[0]) < high
    assert all("±" in cell for table in rest for cell, _ in [table["rows"][1][1][0]])
    assert rest[1]["rows"][0][1][0] == ("0", "")


def test_return_times_of_rare_events_are_those_of_data_and_model(validation):
    rows = rare_rows(validation)
    assert [row["level"].split()[0] for row in rows] == ["above", "below"] * 4
    assert all("±" in row["data"] and "±" in row["model"] for row in rows)


def test_the_words_follow_the_model(validation):
    words = Portrait(validation.model).sentences()
    assert words[0].startswith("Relaxation: its correlations begin to decay over")
    assert "the state turns from" in words[2]
    assert "can be told from one run forwards" in words[3]
    mobility = validation.model.mobility
    symmetric = 0.5 * (mobility.replicas + mobility.replicas.transpose(0, 2, 1))
    still = replace(validation.model, mobility=replace(mobility, matrix=mobility.symmetric, replicas=symmetric))
    assert len(Portrait(still).sentences()) == 2
    assert Portrait(still).rotation_rows() == []


def test_a_rotation_within_its_error_is_not_called_one(validation):
    mobility = validation.model.mobility
    weak = mobility.symmetric + 1e-3 * mobility.antisymmetric
    words = Portrait(replace(validation.model, mobility=replace(mobility, matrix=weak))).sentences()
    assert "none beyond sampling errors" in words[2]


def test_the_agreement_of_estimators_is_shown_with_distances_from_the_one_used(validation):
    model = validation.model
    phi, none = model.mobility.matrix, 0 * model.mobility.matrix
    used = Estimate("IntegratedResponse", 0.1, phi, none, none)
    other = Estimate("LogCorrelation", 0.2, 1.1 * phi, none, none)
    words = "LogCorrelation is off by 10 % at 0.2 days."

    def with_rows(*rows):
        evidence = replace(model.mobility.evidence, agreement=Agreement(rows, words))
        return replace(validation, model=replace(model, mobility=replace(model.mobility, evidence=evidence)))

    assert agreement(with_rows(used))["rows"] == []
    first, second = agreement(with_rows(used, other))["rows"]
    assert (first["distance"], second["distance"], second["dt"]) == ("used", "10.0 %", "0.2 days")
    page = render(with_rows(used, other), {})
    assert "Agreement of estimators" in page
    assert words in page


def test_findings_of_the_diagnosis_are_on_the_page(validation, page):
    for finding in validation.diagnosis.findings:
        assert f"<strong>{finding.name[0].upper()}{finding.name[1:]}:</strong>" in page


def test_a_series_too_short_for_a_diagnosis_is_still_reported(validation):
    short = replace(validation, data=validation.data.with_segments([s[:10] for s in validation.data.segments]))
    assert short.diagnosis is None
    assert np.isfinite(validation.metrics["acf_rmse"])


def test_the_figure_marks_the_noise_level_that_was_chosen_not_the_least_loss():
    choice = {"noise_level": [0.4, 0.2, 0.1], "held_out_loss": [3.0, 0.1, 0.0], "standard_error": [1.0, 0.2, 0.0]}
    ax = plots.plot_noise_level_choice(choice, 0.2)
    marked = next(line for line in ax.lines if str(line.get_label()).startswith("chosen"))
    assert marked.get_label() == "chosen: 0.2"
    assert (float(marked.get_xdata()[0]), float(marked.get_ydata()[0])) == (0.2, 0.1)


def test_the_report_says_where_the_gaussian_score_was_as_good(linear_series, tmp_path):
    """A linear process, with the noise level left to the data."""
    model = el.fit(linear_series, score=el.KGMM(hidden=(8,), steps=50, max_draws=4))
    assert model.score.noise_level == 0.0
    el.validate(model, linear_series, members=8).report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "the Gaussian score is used" in page
    assert "Gaussian, as good as the learned one" in page
