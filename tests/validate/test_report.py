"""The report: what it says, and how it stands in a real browser on a desk and on a telephone."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from oracles.browser import CHROMIUM, inspect_page
from scipy.signal import lfilter

import effective_langevin as el
from effective_langevin.estimate.mobility.evidence import Agreement, Estimate
from effective_langevin.estimate.score.evidence import NoiseLevelChoice, ScoreEvidence
from effective_langevin.validate import report
from effective_langevin.validate.curves import Curve
from effective_langevin.validate.findings.describe_model import ModelDescription
from effective_langevin.validate.report import SECTIONS, figures, render, save_figures
from effective_langevin.validate.tables import agreement, matrices, metrics, outcomes, rare, variables

pytestmark = pytest.mark.integration

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


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_in_a_browser_nothing_fails_to_load_and_nothing_overflows(page, tmp_path, width, dark):
    found = inspect_page(page, tmp_path, width, dark)
    assert found["width"] == width
    assert found["faults"] == []
    assert found["overflow"] <= 0
    assert found["wide"] == []
    assert found["first_figure"] < 900
    assert len(found["images"]) >= 8
    assert all(image["loaded"] and len(image["alt"]) > 15 for image in found["images"])
    assert found["out_of_reach"] == []
    assert "Table: Metrics" not in found["scrolled"]
    assert "Table: Tests" not in found["scrolled"]
    assert found["broken_links"] == found["repeated_ids"] == []
    assert found["scripts"] == 0
    assert EVIL in found["texts"]
    assert "Irreversibility:" in found["texts"]


def test_the_report_says_what_the_mobility_makes_of_the_part_held_out(page):
    assert "Cross-validation: four fifths and the fifth held out differ by" in page


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
    for words in ("Time scales and rotations", "Spectra", "Extremes", "Sample paths", "Evidence"):
        assert f">{words}</h" in page
    places = [page.index(f'<h2 id="{section.name}">{section.title}</h2>') for section in SECTIONS]
    assert places == sorted(places)
    assert page.index('class="verdict') < page.index("data:image/png") < places[0]
    assert page.count("<figure") == page.count("data:image/png")
    assert EVIL not in page


def test_the_text_is_short(page):
    """Words that are seen beside tables and formulas, with everything folded; they were 695."""
    for folded in ("style", "details", "table", "head"):
        page = re.sub(rf"<{folded}.*?</{folded}>", " ", page, flags=re.DOTALL)
    words = re.sub(r"<[^>]+>", " ", re.sub(r'<p class="equation">.*?</p>', " ", page)).split()
    assert len([word for word in words if re.search("[^\\W\\d]", word)]) < 400


def test_every_test_is_a_row_with_its_reading(validation):
    found = {row[0]: row for row in outcomes(validation).rows}
    assert list(found) == ["Steady state", "Time scales", "Increments", "Return times", "Score"]
    told = {f.name: f.level for f in validation.verdict.findings}
    assert all("good" in row[5] for name, row in found.items() if told[name.lower()] == "ok")
    assert "±" in found["Score"][2]


def test_matrices_have_errors_and_phi_has_intervals(validation):
    phi, *rest = matrices(validation)
    assert [t.title for t in rest] == ["Diffusion Φ<sub>S</sub>", "Circulation Φ<sub>A</sub>", "Noise factor Σ"]
    value, interval = phi.rows[0][1].removesuffix("</small>").split("<br><small>")
    low, high = (float(end.replace("−", "-")) for end in interval.split(" … "))
    assert low < float(value.split(" ± ")[0]) < high
    assert all("±" in table.rows[1][1] for table in rest)
    assert rest[1].rows[0][1] == "0"


def test_return_times_of_rare_events_are_those_of_data_and_model(validation):
    rows = rare(validation).rows
    assert [row[1].split()[0] for row in rows] == ["above", "below"] * 4
    assert all("±" in row[2] and "±" in row[3] for row in rows)


def test_differences_are_given_in_standard_errors(validation):
    """Of the mean of the third variable: model minus data over the error of the difference, from groups of each."""
    places, mean = [row[0] for row in variables(validation).rows], validation.curves["mean"]
    row = variables(validation).rows[places.index("h [m]")]
    error = np.hypot(mean.data_error[2], mean.model_error[2])
    assert float(row[3].replace("−", "-")) == pytest.approx((mean.model[2] - mean.data[2]) / error, abs=0.051)
    means = np.array([part.mean(axis=0) for part in np.array_split(validation.data.stacked(), 20)])
    np.testing.assert_allclose(mean.data_error, means.std(axis=0) / np.sqrt(19), rtol=5e-3)  # groups differ by a sample
    found, row = validation.metrics, next(row for row in metrics(validation).rows if ">acf_rmse<" in row[0])
    beyond = (found["acf_rmse"] - found["acf_rmse_floor"]) / found["acf_rmse_se"]
    assert row[3] == (f"{beyond:.1f}" if beyond > 0 else "no")


def test_tails_reach_to_the_last_sample(validation):
    tails, data = validation.curves["tails"], validation.data.stacked()
    assert (tails["edges"][:, 0] <= data.min(axis=0)).all()
    assert (tails["edges"][:, -1] >= data.max(axis=0)).all()
    width = np.diff(tails["edges"], axis=1)
    np.testing.assert_allclose((tails.data * width).sum(axis=1), 1)


def test_the_words_follow_the_model(validation):
    words = [f.meaning for f in ModelDescription(validation.model).findings()]
    assert words[0].startswith("correlations begin to decay over")
    assert "the state turns from" in words[2]
    assert "distinguishable from their time reversal" in words[3]
    mobility = validation.model.mobility
    symmetric = 0.5 * (mobility.replicas + mobility.replicas.transpose(0, 2, 1))
    still = replace(validation.model, mobility=replace(mobility, matrix=mobility.symmetric, replicas=symmetric))
    assert len(ModelDescription(still).findings()) == 2
    assert ModelDescription(still).rotation_rows() == []


def test_a_model_of_two_variables_with_delays_is_described():
    first, second = lfilter([1.0], [1.0, -1.6, 0.8], np.random.default_rng(0).normal(size=(2, 3000)), axis=1)
    series = el.TimeSeries(np.stack([first, second + np.roll(first, 1)], axis=1), 1.0)
    model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation(), memory="delays:1", check="off")
    described = ModelDescription(model)
    assert described.rotation_rows() == []  # withheld beside delays, whose noise cannot be told apart
    relaxation, noise, *_ = (finding.meaning for finding in described.findings())
    assert relaxation.startswith("correlations begin to decay over")
    assert all(f"{name} by" in noise for name in ("x1", "x2"))
    assert "past" not in noise


def test_a_period_that_is_hardly_known_is_not_written(validation):
    description = ModelDescription(validation.model)
    assert description.timescale_rows()[0][2] != "–"
    vague = replace(description.timescales, period_error=description.timescales.period)
    description.timescales = vague
    assert {row[2] for row in description.timescale_rows()} == {"–"}
    assert "oscillate" not in description.findings()[0].meaning


def test_a_rotation_within_its_error_is_not_called_one(validation):
    mobility = validation.model.mobility
    weak = mobility.symmetric + 1e-3 * mobility.antisymmetric
    found = ModelDescription(replace(validation.model, mobility=replace(mobility, matrix=weak))).findings()
    assert "none beyond sampling errors" in found[2].meaning
    assert "reversible within sampling errors" in found[3].meaning


def test_verdict_and_description_agree_on_circulation(validation):
    """One test decides both sentences, whatever the size of the circulation."""
    mobility = validation.model.mobility
    for factor in (0.0, 0.01, 0.05, 0.1, 0.2, 1.0):
        matrix = mobility.symmetric + factor * mobility.antisymmetric
        model = replace(validation.model, mobility=replace(mobility, matrix=matrix))
        told = [f.meaning for f in replace(validation, model=model).verdict.findings if f.name == "circulation"]
        described = [f.meaning for f in ModelDescription(model).findings() if f.name == "circulation"]
        assert told[0].startswith(("significant", "not established")) == any("turns" in d for d in described)


def test_the_agreement_of_estimators_is_shown_with_distances_from_the_one_used(validation):
    model = validation.model
    phi, none = model.mobility.matrix, 0 * model.mobility.matrix
    used = Estimate("IntegratedResponse", 0.1, phi, none, none)
    other = Estimate("LogCorrelation", 0.2, 1.1 * phi, none, none)
    words = "LogCorrelation is off by 10 % at 0.2 days."

    def with_rows(*rows):
        evidence = replace(model.mobility.evidence, agreement=Agreement(rows, words))
        return replace(validation, model=replace(model, mobility=replace(model.mobility, evidence=evidence)))

    assert agreement(with_rows(used)).rows == []
    first, second = agreement(with_rows(used, other)).rows
    assert (first[2], second[2], second[1]) == ("used", "10.0 %", "0.2 days")
    page = render(with_rows(used, other), {})
    assert "Agreement of estimators" in page
    assert words in page


def test_findings_of_the_diagnosis_are_on_the_page(validation, page):
    for finding in validation.diagnosis.findings:
        assert f"<strong>{finding.name[0].upper()}{finding.name[1:]}:</strong>" in page


def test_a_series_too_short_for_a_diagnosis_is_still_reported(validation):
    cut = validation.data.with_segments([s[:10] for s in validation.data.segments])
    short = replace(validation, sides=replace(validation.sides, data=cut), stated_diagnosis=None)
    assert short.diagnosis is None
    assert np.isfinite(validation.metrics["acf_rmse"])


def test_the_figure_marks_the_noise_level_that_was_chosen_not_the_least_loss():
    choice = NoiseLevelChoice((0.4, 0.2, 0.1), (3.0, 0.1, 0.0), (1.0, 0.2, 0.0))
    score = SimpleNamespace(evidence=ScoreEvidence(noise_level_choice=choice), learned_level=0.2)
    ax = el.plots.plot_noise_level(SimpleNamespace(model=SimpleNamespace(score=score)))[0]
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


def test_what_was_saved_draws_the_same_report_without_series(validation, page, tmp_path):
    validation.save(tmp_path / "curves.nc")
    loaded = el.Validation.load(tmp_path / "curves.nc", validation.model)
    assert loaded.metrics == validation.metrics
    assert loaded.verdict.sentences == validation.verdict.sentences
    assert list(loaded.curves) == list(validation.curves)
    for name, curve in validation.curves.items():
        np.testing.assert_array_equal(loaded.curves[name].data, curve.data)
        for key in curve.coords:
            np.testing.assert_array_equal(loaded.curves[name][key], curve[key])
    assert render(loaded, figures(loaded)) == page
    with pytest.raises(el.DataError, match="read from a file"):
        _ = loaded.data


def test_all_curves_are_one_dataset_with_names_and_units(validation):
    dataset = validation.to_xarray()
    assert dataset["acf"].dims == ("source", "lag", "variable")
    assert dataset["lag"].attrs["units"] == "days"
    assert dataset["acf"].sel(source="data", variable="h", lag=0) == pytest.approx(1)
    assert list(dataset["unit" if "unit" in dataset else "pdf_unit"].values) == ["K", "m/s", "m", ""]
    np.testing.assert_array_equal(dataset["pdf_se"].sel(source="model"), validation.curves["pdf"].model_error)


def test_densities_integrate_to_one_and_have_errors(validation):
    pdf = validation.curves["pdf"]
    width = np.diff(pdf["edges"], axis=1)
    np.testing.assert_allclose((pdf.data * width).sum(axis=1), 1)
    assert (pdf.data_error >= 0).all()
    assert pdf.data_error.max() > 0


def test_every_figure_takes_axes_and_gives_them_back(validation):
    given = Figure().subplots(1, 4)
    assert list(el.plots.plot_acf(validation, given)) == list(given)
    assert list(el.plots.plot_acf(validation.curves["acf"], given)) == list(given)
    with pytest.raises(el.ArgumentError, match="must hold 4 axes, but got 1"):
        el.plots.plot_spectrum(validation, given[0])


def test_axes_are_placed_once_however_many_files_are_written(monkeypatch, tmp_path):
    """Ten figures as picture, as vectors and in the report: to place their axes took a fifth of a short fit."""
    placed, execute = [], ConstrainedLayoutEngine.execute
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *given: placed.append(1) or execute(*given))
    monkeypatch.setattr(report, "FIGURES", {"one": (lambda _: Figure(layout="constrained").subplots(), lambda _: True)})
    drawn = figures(SimpleNamespace(curves={}))
    save_figures(drawn, tmp_path)
    report._embedded(drawn["one"])
    assert len(placed) == 1


def test_figures_are_kept_as_pictures_and_as_vectors(validation, tmp_path):
    save_figures({"acfs": el.plots.plot_acf(validation)[0].figure}, tmp_path / "figures")
    assert (tmp_path / "figures" / "acfs.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "acfs.pdf").read_bytes().startswith(b"%PDF")


def test_five_months_of_days_have_a_tick_a_month():
    days, path = np.datetime64("1952-03-01", "ns") + np.arange(146) * np.timedelta64(1, "D"), np.arange(146.0)[:, None]
    coords = {"time": (("time",), np.arange(146.0)), "date": (("time",), days), "variable": (("variable",), ["x"])}
    curve = Curve(("time", "variable"), path, path, coords=coords | {"unit": (("variable",), [""])})
    assert len(el.plots.plot_sample_path(curve)[0][0].get_xticks()) <= 6


def test_data_with_dates_are_drawn_with_dates(tmp_path):
    values = el.systems.OrnsteinUhlenbeck([[0.2]]).simulate(duration=1500.0, dt=1.0, members=1, seed=3).values
    first = (np.datetime64("2001-03-01") - np.datetime64("1970-01-01")).astype(float)
    series = el.TimeSeries(values, 1.0, time_unit="days", start=first, calendar="standard")
    model = el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation(), seed=0)
    validation = el.validate(model, series, seed=1, members=8, duration=200.0)
    curve = validation.curves["sample_path"]
    assert curve["date"][0] == np.datetime64("2001-03-01")
    validation.save(tmp_path / "curves.nc")
    loaded = el.Validation.load(tmp_path / "curves.nc", model)
    np.testing.assert_array_equal(loaded.curves["sample_path"]["date"], curve["date"])
    data, simulated = el.plots.plot_sample_path(loaded)[0]
    assert data.get_xlim()[0] == pytest.approx(first)  # matplotlib counts days from 1970
    assert simulated.get_xlim()[0] == 0
