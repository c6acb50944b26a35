"""What every strategy keeps to: a score, mobility, symmetry, network, stepper or transform is a record of settings."""

import dataclasses
import inspect
import json
from importlib import import_module

import pytest
from oracles import registry
from oracles.registry import BY_ROLE, STRATEGIES, TRANSFORMS

import effective_langevin as el
from effective_langevin import cli
from effective_langevin.cli.choices import CHOICES, choose
from effective_langevin.fit import describe
from effective_langevin.memory import as_memory, name_memory

SETTINGS = STRATEGIES | {f"preprocess.{name}": case.transform for name, case in TRANSFORMS.items()}
ROLES = {id(made): role for role, table in BY_ROLE.items() for made in table.values()}
ROLES |= {id(case.transform): "preprocess" for case in TRANSFORMS.values()}
every_strategy = pytest.mark.parametrize("strategy", SETTINGS.values(), ids=SETTINGS.keys())


def test_every_public_class_is_registered():
    """A strategy that is exported but not in `oracles/registry.py` would escape all the checks of this folder."""
    registered = registry.registered_classes()
    missing = {
        name
        for name, thing in registry.public_classes().items()
        if thing not in registered and name not in registry.PRODUCTS
    }
    assert not missing, f"add {missing} to tests/oracles/registry.py"
    assert set(registry.public_classes()) >= registry.PRODUCTS, "a product that is no longer public"


def test_every_choice_of_the_command_line_is_registered():
    kinds = registry.registered_classes()
    offered = {kind for table in CHOICES.values() for kind in table.values()}
    assert {kind.__name__ for kind in offered - kinds} <= {"NoSymmetry"}


@every_strategy
def test_a_strategy_is_a_frozen_record_that_compares_and_hashes_by_its_settings(strategy):
    assert dataclasses.is_dataclass(strategy)
    again = dataclasses.replace(strategy)
    assert again == strategy
    assert hash(again) == hash(strategy)
    with pytest.raises(dataclasses.FrozenInstanceError):
        strategy.anything = 1


@every_strategy
def test_a_strategy_shows_itself_in_one_short_line(strategy):
    shown = repr(strategy)
    assert shown.startswith(f"{type(strategy).__name__}(")
    assert "\n" not in shown
    assert len(shown) <= 400


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_a_strategy_has_defaults(strategy):
    default = type(strategy)()
    assert default == type(strategy)()
    json.dumps(dataclasses.asdict(default))


@every_strategy
def test_the_description_in_a_model_file_leads_back_to_the_strategy(strategy):
    if isinstance(strategy, el.preprocess.Chain):
        stored = json.loads(json.dumps(describe(strategy.steps)))
        assert len(stored) == len(strategy.steps)
        return
    if isinstance(strategy, el.Velocity | el.Delays):  # named by a word, in files as on the command line
        assert as_memory(name_memory(strategy)) == strategy
        return
    stored = json.loads(json.dumps(describe(strategy)))
    assert stored["kind"] == type(strategy).__name__
    role = ROLES.get(id(strategy))
    if role is not None:
        assert choose(role, stored) == strategy


@every_strategy
def test_every_setting_refuses_what_is_no_setting_in_one_clear_sentence(strategy):
    """An object of a foreign kind for each setting in turn: the message names the argument and what it must be."""
    for field in dataclasses.fields(strategy):
        says = rf"Argument `{field.name}` (must be|has no meaning here).*, but got <foreign>"
        with pytest.raises(el.ArgumentError, match=says) as caught:
            dataclasses.replace(strategy, **{field.name: Foreign()})
        assert "\n" not in str(caught.value)


class Foreign:
    """Nothing that a strategy could use."""

    def __repr__(self) -> str:
        return "<foreign>"


@every_strategy
def test_a_setting_that_does_not_exist_is_refused(strategy):
    with pytest.raises(TypeError, match="nonsense"):
        type(strategy)(nonsense=1)


def test_every_command_has_a_name_for_each_strategy():
    """What can be given in Python can be given on the command line."""
    assert cli.app is not None
    for role, table in BY_ROLE.items():
        offered = set(CHOICES[role].values())
        assert {type(made) for made in table.values()} <= offered


def test_strategies_live_below_the_public_package():
    """A strategy pickled or named by its module can be found again."""
    for strategy in SETTINGS.values():
        kind = type(strategy)
        assert getattr(import_module(kind.__module__), kind.__name__) is kind
        assert inspect.getmodule(kind).__name__.startswith("effective_langevin.")
