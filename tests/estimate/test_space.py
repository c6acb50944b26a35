import json

import pytest

import effective_langevin as el
from effective_langevin.estimate.space import StateSpace


@pytest.mark.parametrize(
    "space",
    [
        StateSpace((None, None)),
        StateSpace((None, 360.0, None), hidden=1),
        StateSpace((None,) * 8, el.Translations(2, continuous=True)),
        StateSpace((None,) * 8, el.TranslationsAndReflections(2, parity=(1, -1))),
    ],
)
def test_a_state_space_comes_back_from_json(space):
    assert StateSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space


def test_angles_fields_and_hidden_variables_are_counted():
    assert StateSpace((None, 360.0, 1.0)).angles == (1, 2)
    assert StateSpace((None,) * 8, el.Translations(2)).channels == 2
    assert StateSpace((None, None)).channels is None
    assert StateSpace((None,) * 3, hidden=1).observed == 2


def test_a_group_of_fields_does_not_act_on_angles():
    with pytest.raises(el.ArgumentError, match=r"variables \(1,\) are angles"):
        StateSpace((None, 360.0, None), el.Translations()).check()
