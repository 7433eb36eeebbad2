"""The rows of some nodes enclose a minimiser: what is charged there is never too little."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.problem.penalties.by_column import by_column
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.rest import Rest
from problems import EVERY_PENALTY, instance

if find_spec("mpi4py") is None:
    pytest.skip("mpi4py is not installed (coterie[mpi])", allow_module_level=True)

from mpi4py import MPI

from coterie.engines.mpi import outline
from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import OwnPart, Share
from coterie.engines.mpi.prover import PartRest
from coterie.solver import part_problem
from coterie.solver.parts import solve_parts
from coterie.solver.units import Units

LOSSES = [ct.SquaredError(ridge=0.1), ct.Lasso(alpha=0.05), ct.Logistic(ridge=0.01), ct.SquaredError()]
CASES = list(zip(LOSSES, [*EVERY_PENALTY, EVERY_PENALTY[0]], strict=True))


@pytest.mark.parametrize("known", [6, 20_000])
@pytest.mark.parametrize(("loss", "penalty"), CASES, ids=repr)
def test_a_minimiser_is_never_further_than_the_charge_says(
    loss: ct.Loss, penalty: ct.Penalty, known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "ROWS", known)
    problem, crew = instance("all labelled", loss, penalty), Crew(MPI.COMM_SELF)
    best, rng = ct.solve(problem, 1e-10, engine="numpy").w, np.random.default_rng(0)
    share = Share.of(problem.graph, np.zeros(problem.graph.n_nodes, dtype=np.int32), 0)
    sizes = problem.graph.n_nodes, problem.graph.n_edges
    stated = part_problem.PartProblem(share, *sizes, problem.data.labelled, problem.loss, problem.penalty, problem.lam)
    with using(Form.NUMPY):
        part = OwnPart.joined(crew, share, problem.n_features, partial(part_problem._stated, stated))
        part, units, prover = part_problem.Prepared.of(stated, part).at(stated.lam)
        whole = Enclosure(Units.of(problem.bound).problem)
        best = best[part.nodes] / units.weight
        for size in (1e-3, 1.0):
            w = best + size * rng.standard_normal(best.shape)
            rho, level = rng.standard_normal(best.shape), prover.objective(w)
            rest = Rest(rho, np.zeros_like(rho), w)
            charge = prover.charge(PartRest(part, rest), level, 0.0, True)
            at_best = float((rho * (best - w)).sum())
            assert charge <= at_best + 1e-6 * (1 + abs(at_best))
            if np.isfinite(charge):  # all rows say more
                there = Rest(*(x[np.argsort(part.nodes)] for x in rest))
                assert charge <= whole.charge(there, level) * (1 - 1e-6) + 1e-9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lam": 0.0}, "lam must be above 0"),
        ({"penalty": by_column(ct.TotalVariation(), np.array([1.0, 0.0, 1.0]))}, "no strengths of 0"),
        ({"rows": instance().data.labelled.of_nodes(np.empty(0, dtype=np.int64))}, "nothing to learn from"),
    ],
)
def test_what_parts_cannot_be_solved_of_is_refused(
    change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew, problem = Crew(MPI.COMM_SELF), instance()
    monkeypatch.setattr(part_problem, "crew", lambda: crew)
    share = Share.of(problem.graph, np.zeros(problem.graph.n_nodes, dtype=np.int32), 0)
    sizes = problem.graph.n_nodes, problem.graph.n_edges
    part = part_problem.PartProblem(share, *sizes, problem.data.labelled, problem.loss, problem.penalty, problem.lam)
    with pytest.raises((ValueError, TypeError), match=said):
        solve_parts(replace(part, **change))
