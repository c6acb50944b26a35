"""Model files of earlier versions: `files/write.py` made them and wrote down what they answered."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import effective_langevin as el

FILES = Path(__file__).parent / "files"
ANSWERS = json.loads((FILES / "answers.json").read_text())


def script():
    """The module that wrote the files."""
    spec = importlib.util.spec_from_file_location("write_reference_files", FILES / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_answers():
    assert {path.stem for path in FILES.glob("*.safetensors")} == set(ANSWERS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:LeimkuhlerMatthews is right in the steady state only")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_model_file_of_an_earlier_version_answers_as_it_did(name):
    """To the digits that single precision leaves on another processor: on the same one, to the last bit."""
    answers = script().answers(el.load(FILES / f"{name}.safetensors"))
    for quantity, expected in ANSWERS[name].items():
        if quantity == "names":
            assert answers[quantity] == expected
        else:
            scale = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=0)
            np.testing.assert_allclose(answers[quantity], expected, rtol=2e-4, atol=2e-4 * scale, err_msg=quantity)
