"""Every public object is documented in full, and its example runs."""

import doctest
from importlib import import_module

import pytest

import coterie as ct
from docstrings import Documented, methods

ROOMS = ("", ".datasets", ".estimators", ".graphs", ".plot")

OF_THE_SOLVER = ("LocalDatasets.joined_with", "LocalDatasets.moved_to", "Problem.with_losses")


def public():
    """Public objects by the `__all__` of their rooms, each once."""
    found = {}
    for room in ROOMS:
        module = import_module(f"coterie{room}")
        for name in module.__all__:
            if callable(thing := getattr(module, name)):  # a constant has no docstring of its own
                found.setdefault(id(thing), Documented(name, thing))
    return sorted(found.values(), key=repr)


def called():
    """Methods that users call. Those of losses and penalties are called by solvers: base.py says what they owe."""
    kinds = [
        one for one in OBJECTS if not (isinstance(one.thing, type) and issubclass(one.thing, ct.Loss | ct.Penalty))
    ]
    found = {id(one.thing): one for each in kinds for one in methods(each.name, each.thing)}
    return [one for one in found.values() if one.name not in OF_THE_SOLVER]


OBJECTS = public()


@pytest.mark.parametrize("one", [*OBJECTS, *called()], ids=repr)
def test_the_docstring_is_complete(one):
    assert list(one.wrong()) == []


@pytest.mark.parametrize("one", OBJECTS, ids=repr)
def test_the_example_runs(one):
    tests = [test for test in doctest.DocTestFinder(recurse=False).find(one.thing, one.name, globs={}) if test.examples]
    assert tests, "there is no example"
    for test in tests:
        results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
        assert results.failed == 0
