"""Names to objects, flags over files, and settings that survive being written down."""

import tomllib

import numpy as np
import pytest
from oracles.command_line import ou_table

import effective_langevin as el
from effective_langevin import preprocess as pp
from effective_langevin.cli.choices import CHOICES, choose
from effective_langevin.cli.demo import QUICK as QUICK_DEMOS
from effective_langevin.cli.run_folder import record_model, to_toml
from effective_langevin.cli.settings import TRANSFORMS, Settings, resolve
from effective_langevin.fit import describe

FLAGS = {
    "log": ("a, b", pp.Log(["a", "b"])),
    "box_cox": ("all", pp.BoxCox()),
    "detrend": (True, pp.Detrend()),
    "deseason": ("365.25:3", pp.RemoveSeasonalCycle(365.25, 3)),
    "periodic": ("phi,psi:360", pp.Periodic(["phi", "psi"], 360.0)),
    "pca": ("0.9", pp.PCA(variance=0.9)),
    "delay": ("3:2", pp.DelayEmbedding([2, 4, 6])),
    "phase": ("12", pp.PhaseAugmentation(12.0)),
}


def test_every_flag_stands_for_its_transform_and_the_order_is_fixed():
    flags = {name: text for name, (text, _) in reversed(FLAGS.items())}
    assert resolve(flags, None).preprocess == [expected for _, expected in FLAGS.values()]
    assert FLAGS.keys() == TRANSFORMS.keys()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", pp.PCA(components=3)), ("0.5", pp.PCA(variance=0.5))],
)
def test_whole_numbers_count_components_and_fractions_are_shares(text, expected):
    assert resolve({"pca": text}, None).preprocess == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("velocity", el.Velocity()), ("delays:4", el.Delays(4)), ("delays:4:3", el.Delays(4, 3)), ("auto", "auto")],
)
def test_memory_is_named_by_flag_and_file(text, expected, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(f'memory = "{text}"\n', encoding="utf-8")
    assert resolve({"memory": text}, None).strategies == {"memory": expected}
    assert resolve({}, file).strategies == {"memory": expected}
    assert resolve({"memory": "none"}, file).strategies == {"memory": None}


STRATEGIES = [
    el.Gaussian(),
    el.KGMM(noise_level=0.05, cells=500, hidden=(64, 32)),
    el.DenoisingScore(el.UNet1D(base=8, normalization="batch"), noise_level=0.1, patience=3),
    el.DenoisingScore(el.MLP((8,))),
    el.IntegratedResponse(),
    el.FiniteVolume(min_mass=1e-5, correction="per-state"),
    el.QuadraticVariation(lag=2),
    el.CorrelationFit(degree=2, lags=4),
    el.LogCorrelation(),
    el.Translations(channels=2),
    el.TranslationsAndReflections(parity=-1),
    pp.Detrend(3, extrapolate=True),
    pp.RemoveSeasonalCycle(12),
    pp.PCA(variance=0.9, standardize=True),
    pp.Periodic(["phi"]),
    pp.Log(),
    pp.BoxCox(["a"], exponent=0.5),
    pp.DelayEmbedding([1, 5]),
    pp.PhaseAugmentation(3.0),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: repr(s)[:60])
def test_a_strategy_survives_being_written_down(strategy):
    """Object to provenance to TOML and back."""
    role = next(r for r, kinds in CHOICES.items() if type(strategy) in kinds.values())
    text = to_toml({"it": describe(strategy)})
    assert choose(role, tomllib.loads(text)["it"]) == strategy


def test_every_kind_has_a_short_name_and_the_name_of_its_class():
    for role, kinds in CHOICES.items():
        for short, kind in kinds.items():
            needed = {"period": 12.0} if kind in (pp.RemoveSeasonalCycle, pp.PhaseAugmentation) else {}
            assert type(choose(role, {"kind": short, **needed})) is kind
            assert type(choose(role, {"kind": kind.__name__, **needed})) is kind


def test_a_name_may_bring_settings():
    assert choose("score", "kgmm:cells=500,hidden=[64, 32]") == el.KGMM(cells=500, hidden=(64, 32))
    assert choose("score", 'denoising:network="unet",batch=8') == el.DenoisingScore(el.UNet1D(), batch=8)


def test_flags_override_the_file_and_files_lie_beside_it(tmp_path):
    text = (
        'data = "ou.csv"\nseed = 4\ndetrend = true\nscore = "gaussian"\ntime-unit = "min"\n[validation]\nmembers = 7\n'
    )
    (tmp_path / "run.toml").write_text(text)
    plain = resolve({}, tmp_path / "run.toml")
    assert (plain.data, plain.seed, plain.preprocess) == ([str(tmp_path / "ou.csv")], 4, [pp.Detrend()])
    assert (plain.reading, plain.validation) == ({"time_unit": "min"}, {"members": 7})
    over = resolve({"seed": 0, "pca": "2", "data": ["other.csv"], "score": None}, tmp_path / "run.toml")
    assert (over.data, over.seed, over.preprocess) == (["other.csv"], 0, [pp.PCA(2)])
    assert over.strategies == {"score": el.Gaussian()}


def test_an_order_of_transforms_is_given_in_a_file(tmp_path):
    text = '[[preprocess]]\nkind = "pca"\ncomponents = 2\n[[preprocess]]\nkind = "detrend"\n'
    (tmp_path / "run.toml").write_text(text)
    assert resolve({}, tmp_path / "run.toml").preprocess == [pp.PCA(2), pp.Detrend()]


def test_the_record_of_a_run_resolves_to_the_same_run(tmp_path):
    series = el.read(ou_table(tmp_path / "ou.csv", 300))
    flags = {"data": [str(tmp_path / "ou.csv")], "variables": "b,a", "deseason": "5", "delay": "1", "seed": 3}
    first = resolve(flags, None)
    quick = {"score": el.Gaussian(), "mobility": el.QuadraticVariation(), "check": "off"}
    model = el.fit(series, preprocess=first.preprocess, **quick, seed=3)
    (tmp_path / "config.toml").write_text(to_toml({**first.record(tmp_path), **record_model(model)}))
    assert 'data = [\n    "ou.csv",\n]' in (tmp_path / "config.toml").read_text()
    again = resolve({}, tmp_path / "config.toml")
    assert (again.data, again.reading, again.preprocess) == (first.data, first.reading, first.preprocess)
    assert (again.seed, again.validating()) == (3, first.validating())
    assert again.series().names == ("b", "a")


def test_the_record_of_a_demonstration_resolves_to_its_series(tmp_path):
    demo = {"system": "scalar", "quick": True, "paper_scale": False, "seed": 3}
    (tmp_path / "config.toml").write_text(to_toml(Settings([], demo=demo, seed=4).record()))
    again = resolve({}, tmp_path / "config.toml")
    np.testing.assert_array_equal(again.series().stacked(), QUICK_DEMOS["scalar"].series(3).stacked())
    np.testing.assert_allclose(again.validating()["exact_mobility"], QUICK_DEMOS["scalar"].system.mobility)


def test_toml_survives_a_round_trip():
    settings = {
        "a": 1, "text": '" and \\ and é', "none": None, "list": (1, 2), "empty": [], "deep": {"only": {"y": True}},
        "t": {"x": 0.5, "deep": {"y": True}}, "odd key": 1e-9, "many": [{"x": 1}, {"y": {"z": [1.5]}}, {}], "no": {},
    }  # fmt: skip
    assert tomllib.loads(to_toml(settings)) == {
        **{k: v for k, v in settings.items() if k != "none"}, "list": [1, 2]
    }  # fmt: skip
