"""Compiling takes seconds: one line says so, wherever standard error goes."""

from types import SimpleNamespace

import pytest

from coterie.kernels import compilation
from coterie.kernels.compiling import _Announcer

LINE = "coterie: compiling kernels on first use; later processes find them ready\n"


def compile_something(announcer, module):
    function = SimpleNamespace(__module__=module)
    announcer.on_start(SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)}))
    announcer.on_end(None)


def test_compiling_is_announced_once_and_only_ours(capsys):
    announcer = _Announcer()
    compile_something(announcer, "elsewhere")
    assert capsys.readouterr().err == ""
    compile_something(announcer, "coterie.kernels.edges")
    compile_something(announcer, "coterie.kernels.nodes")
    assert capsys.readouterr().err == LINE


def test_nobody_is_told_who_does_not_want_to(capsys, monkeypatch):
    monkeypatch.setattr(compilation, "silent", True)
    announcer = _Announcer()
    compile_something(announcer, "coterie.kernels.edges")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("parent", [None, object()])
def test_the_first_process_says_it_for_all(capsys, monkeypatch, parent):
    monkeypatch.setattr("coterie.kernels.compiling.parent_process", lambda: parent)
    announcer = _Announcer()
    compile_something(announcer, "coterie.kernels.edges")
    assert capsys.readouterr().err == (LINE if parent is None else "")
