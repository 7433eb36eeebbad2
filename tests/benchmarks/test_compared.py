"""What other tools are asked, and how their answers are judged, on little."""

import numpy as np
import pytest

from benchmarks import beside_flower, beside_strat
from benchmarks.beside_mgwr import field
from benchmarks.beside_mixed import mixed, scattered
from benchmarks.held_out import ask, compare, measure


@pytest.mark.parametrize("over", ["rows", "nodes"])
def test_a_quarter_is_held_out(over):
    table, places = field(40, True, seed=0)
    question = ask(table, over, seed=0, places=places)
    assert question.held.mean() == 0.25
    assert len(question.train.y) + len(question.test.y) == len(table.y)
    if over == "nodes":
        assert not set(question.train.nodes) & set(question.test.nodes)


def test_errors_are_those_of_what_was_held_out(capsys):
    table, _ = field(40, False, seed=0)
    assert measure(ask(table, "rows", 0), lambda q: q.test.y + 2)[0] == 2
    compare(
        "a field", lambda over, seed: ask(table, over, seed), {"none": lambda q: None, "off": lambda q: q.test.y + 2}, 2
    )
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("| a field | none | – | – |")
    assert said[1].startswith("| a field | off | 2 ± 0, 2 | 2 ± 0, 2 |")


def test_a_mixed_model_predicts_known_and_unknown_groups():
    pytest.importorskip("statsmodels")
    table = scattered(20, seed=0)
    for over in ("rows", "nodes"):
        question = ask(table, over, seed=0)
        assert measure(question, mixed(slopes=False))[0] < np.std(question.test.y)


def test_federated_averaging_comes_to_the_pooled_model(monkeypatch):
    pytest.importorskip("flwr")
    monkeypatch.setattr(beside_flower, "EPOCHS", 1)  # with one local step it is gradient descent on all rows
    question = beside_flower.asked("rows", 0)
    found, rounds, sent = beside_flower.fedavg(question)
    X, y = beside_flower.with_ones(question.train.X), question.train.y
    pooled = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.allclose(found, beside_flower.with_ones(question.test.X) @ pooled, atol=1e-3)
    assert sent == rounds * beside_flower.SITES * 3 * 8


@pytest.mark.filterwarnings("ignore")  # what the other package warns of is its own
def test_both_solvers_of_stratified_models_have_one_objective():
    pytest.importorskip("strat_models")
    problem = beside_strat.grid(5, seed=0)
    w, _ = beside_strat.stratified(problem, abs_tol=1e-8, rel_tol=1e-8, maxiter=2000)
    from coterie import solve

    assert problem.objective(w) == pytest.approx(solve(problem).objective, rel=1e-5)
