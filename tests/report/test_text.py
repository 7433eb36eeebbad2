from dataclasses import replace

import numpy as np
import pytest
from fitted_models import fitted

import coterie as ct
from coterie.cli.describe import as_object, in_words
from coterie.report.summary import model_summary
from coterie.report.text import at_most, explanation, kind_of, penalty_of, plural, short, some, verdict
from coterie.solver import Status


@pytest.fixture(scope="module")
def solution():
    return fitted().solution_


def test_numbers():
    assert [short(x) for x in (3e-7, 1234567.0, -2.0, 0.0, 1e20, np.nan)] == ["3e-7", "1.2e6", "−2", "0", "1e20", "nan"]
    assert short(-2.5e-10) == "−2.5e-10"
    assert (plural(1, "node"), plural(12000, "node")) == ("1 node", "12,000 nodes")
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"


@pytest.mark.parametrize(("gap", "said"), [(3e-7, "3e-7"), (3.01e-7, "4e-7"), (9.5e-7, "1e-6"), (0.08, "0.08")])
def test_a_distance_is_rounded_up(gap, said):
    assert at_most(gap) == said


def test_the_verdict_says_how_good_and_whether_it_is_done(solution):
    assert verdict(replace(solution, gap=3e-7)) == "Within 3e-7 of the best possible."
    assert verdict(replace(solution, gap=0.0)) == "Equal to the best possible, to rounding."
    stopped = replace(solution, status=Status.ITERATION_LIMIT)
    assert verdict(replace(stopped, gap=2.5e-3)) == "Not converged: within 0.003 of the best possible."
    assert "says little" in verdict(replace(stopped, gap=1.2))
    assert verdict(replace(stopped, gap=np.inf)).startswith("Nothing is known")


def test_the_explanation_says_what_is_proven(solution):
    text = " ".join(explanation(solution, 1e-6))
    assert "This bound is proven." in text
    assert "asked for" not in text
    stopped = replace(solution, status=Status.TIME_LIMIT, unconditional=False, condition="the moon is green")
    text = " ".join(explanation(stopped, 1e-6))
    assert "conditional: it holds if the moon is green." in text
    assert Status.TIME_LIMIT.value in text
    assert "1e-6 was asked for" in text
    text = " ".join(explanation(replace(solution, dual_bound=-np.inf, gap=np.inf), 1e-6))
    assert "no lower bound on it was found" in text


def test_objective_and_bound_are_written_with_enough_digits(solution):
    text = " ".join(explanation(replace(solution, objective=1.0, dual_bound=1 - 1e-9, gap=1e-9), 1e-6))
    assert "0.999999999" in text


def test_models_in_words():
    assert kind_of(ct.NetworkedLassoCV()) == "networked Lasso"
    assert kind_of(ct.NetworkedLogisticRegression()) == "networked logistic regression"
    group = ct.NetworkedLasso(penalty=ct.GroupTotalVariation())
    assert penalty_of(ct.NetworkedLasso(penalty="l2")) == penalty_of(group) != penalty_of(ct.NetworkedLasso())
    assert penalty_of(ct.NetworkedLasso(penalty=None)) == "None"
    assert penalty_of(ct.NetworkedLasso(shared=True)).endswith("; beside neighbours, a component that all nodes share")
    assert "a first one found a difference" in penalty_of(ct.NetworkedLasso(adaptive=True))
    assert "learnt in turns with the models" in penalty_of(ct.NetworkedLassoCV(learn_graph=True))


def test_what_a_number_of_clusters_found_is_not_called_given():
    model = fitted(n_clusters=2)
    assert dict(model_summary(model))["λ"] == f"{short(model.lam_, 4)}, found by n_clusters=2"
    assert any(f"λ = {short(model.lam_, 4)}, found by n_clusters=2;" in line for line in in_words(model, {}))
    assert as_object(model)["lam_chosen_by"] == "n_clusters"
    assert dict(model_summary(fitted(lam=0.1)))["λ"] == "0.1, as given"
