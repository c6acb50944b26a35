"""Everything public is documented in numpydoc style, and the examples in the docstrings run.

Functions, classes and methods describe every parameter with its type, and what they return (methods without parameters
may say it in their first line). Functions and classes show an example. A method that overrides a documented one needs
no docstring. The methods of a strategy (`learn`, `infer`, `build` ...) are called by the package, not by its users;
docs/extending.md describes them. Examples find `el` and `np` imported.

`undocumented.txt` lists what is not written yet. It may only shrink:

    PYTHONPATH=tests python -m contracts.test_docstrings

prints what each docstring lacks and writes the list again.
"""

import doctest
import functools
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpydoc.docscrape import NumpyDocString
from oracles.registry import SYSTEMS, registered_classes

import effective_langevin as el

LISTED = Path(__file__).with_name("undocumented.txt")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public_things():
    """Return every public function, class, method and property by its name."""
    things = {}
    for name in el.__all__:
        thing = getattr(el, name)
        if inspect.ismodule(thing):
            things |= {f"{name}.{inner}": getattr(thing, inner) for inner in thing.__all__}
        else:
            things[name] = thing
    for name, thing in list(things.items()):
        if inspect.isclass(thing) and thing not in registered_classes() - {type(system) for system in SYSTEMS.values()}:
            members = (member for member, value in vars(thing).items() if is_documented(member, value))
            things |= {f"{name}.{member}": inspect.getattr_static(thing, member) for member in members}
    return things


def is_documented(member, value):
    kinds = property | classmethod | staticmethod | functools.cached_property
    return not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, kinds))


def problems(name, thing):
    """Return what the docstring of a public thing lacks."""
    if isinstance(thing, property | functools.cached_property):
        return [] if inspect.getdoc(thing) else ["no docstring"]
    thing = getattr(thing, "__func__", thing)
    is_error = inspect.isclass(thing) and issubclass(thing, Exception | Warning)
    text = inspect.getdoc(thing) or ""
    if not text or is_error:
        return [] if text else ["no docstring"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsed = NumpyDocString(text)
    described = {
        word.strip(" *"): entry
        for section in ("Parameters", "Attributes", "Other Parameters")
        for entry in parsed[section]
        for word in entry.name.split(",")
    }
    wanted = parameters(thing)
    found = [f"parameter {word} is not described" for word in wanted if word not in described]
    found += [f"parameter {word} has no type" for word in wanted if word in described and not described[word].type]
    found += [f"{word} is no parameter" for word in (e.name for e in parsed["Parameters"]) if unknown(word, wanted)]
    if not inspect.isclass(thing):
        hint = inspect.signature(thing).return_annotation
        returns = hint not in (None, "None", inspect.Signature.empty)
        if wanted and returns and not (parsed["Returns"] or parsed["Yields"]):
            found.append("no Returns section")
    if "." not in name.removeprefix("preprocess.").removeprefix("systems.") and ">>> " not in text:
        found.append("no example")
    return found


def unknown(names, wanted):
    return any(name.strip(" *") not in wanted for name in names.split(","))


def parameters(thing):
    """Return the names of the arguments of a function, or of those with which an object of a class is made."""
    if inspect.isclass(thing) and inspect.isabstract(thing):
        return []
    signature = inspect.signature(thing).parameters
    return [name for name in signature if name not in ("self", "cls")]


THINGS = public_things()
UNDOCUMENTED = set(LISTED.read_text(encoding="utf-8").split("\n")) - {""} if LISTED.exists() else set()


@pytest.mark.parametrize("name", THINGS)
def test_a_public_name_is_documented(name, request):
    if name in UNDOCUMENTED:
        request.applymarker(pytest.mark.xfail(reason="not written yet", strict=False))
    assert problems(name, THINGS[name]) == []


def test_the_list_of_what_is_not_documented_holds_public_names_only():
    assert set(THINGS) >= UNDOCUMENTED


def examples():
    """Return the doctests of all public things, each once, without those inherited from other packages."""
    finder, found = doctest.DocTestFinder(recurse=False), {}
    for name, thing in THINGS.items():
        thing = getattr(thing, "__func__", thing)
        for test in finder.find(thing, name, module=False, globs={"el": el, "np": np}):
            if test.examples:
                found[name] = test
    return found


EXAMPLES = examples()


@pytest.mark.integration
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_public_name_prints_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    result = runner.run(EXAMPLES[name], out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)


if __name__ == "__main__":
    lacking = {name: lacks for name, thing in THINGS.items() if (lacks := problems(name, thing))}
    LISTED.write_text("".join(f"{name}\n" for name in sorted(lacking)), encoding="utf-8")
    for name, lacks in lacking.items():
        print(f"{name}: {'; '.join(lacks)}")
    print(f"{len(THINGS) - len(lacking)} of {len(THINGS)} public names are documented")
