"""Small problems never compile; what takes long does. (As in every test, nothing has been solved before.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.engines.growing import GrowingEngine
from coterie.engines.numpy import NumpyEngine
from coterie.kernels import choice
from coterie.kernels.choice import Either, compiled, using
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem
from coterie.solver import pace
from coterie.solver.solve import engine_for

README = Path(__file__).parents[2] / "README.md"


def problem(size: int = 20, n: int = 2, penalty: ct.Penalty | None = None) -> BoundProblem:
    graph, rng = stochastic_block_model((size, size), labelled=8).graph, np.random.default_rng(0)
    nodes = np.repeat(np.arange(0, 2 * size, 2), 5)
    X = rng.standard_normal((len(nodes), n))
    y = np.where(nodes < size, X.sum(axis=1), -X[:, 0]) + 0.1 * rng.standard_normal(len(nodes))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=2 * size)
    return ct.Problem(graph, data, penalty=penalty or ct.TotalVariation(), lam=1e-2).bound


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a machine that has not compiled anything."""
    monkeypatch.setattr(choice, "_folder", lambda: tmp_path)
    monkeypatch.setattr(pace, "is_noted", choice.is_noted)


def test_the_ten_lines_of_the_readme_import_no_compiler() -> None:
    text = README.read_text()
    begin = text.index("```python\n") + len("```python\n")
    lines = text[begin : text.index("```", begin)]
    check = "import sys\nassert 'numba' not in sys.modules\nassert solution.gap <= 1e-6\n"
    subprocess.run([sys.executable, "-c", lines + check], check=True, stdout=subprocess.DEVNULL)


def test_small_problems_begin_in_numpy_and_large_ones_compiled() -> None:
    assert pace.Pace(problem()).form() is Form.NUMPY
    assert isinstance(engine_for("auto", None, pace.Pace(problem())), GrowingEngine)
    assert pace.is_long(problem(400))
    assert pace.Pace(problem(400)).form() is Form.ANY_N
    assert type(engine_for("numba", None, pace.Pace(problem()))).__name__ == "NumbaEngine"
    assert isinstance(engine_for("numpy", None, pace.Pace(problem(400))), NumpyEngine)


def test_many_small_problems_are_one_that_takes_long() -> None:
    own = pace.Pace(problem())
    with pace.expecting(10), pace.expecting(100):
        assert own.form() is Form.ANY_N
        with pace.expecting(1000):
            assert own.form() is Form.THIS_N
    assert own.form() is Form.NUMPY
    assert own.form(200_000) is Form.ANY_N
    own.ended(200_000, Form.NUMPY)
    assert pace.Pace(problem(n=3)).form() is Form.ANY_N  # which serves another n, too
    assert pace.Pace(problem(penalty=ct.GroupTotalVariation())).form() is Form.NUMPY  # another kind
    pace.Pace(problem(penalty=ct.GroupTotalVariation())).ended(20, Form.ANY_N)
    assert pace.Pace(problem(penalty=ct.GroupTotalVariation())).form() is Form.ANY_N


@pytest.mark.usefixtures("fresh")
def test_kernels_that_know_n_are_compiled_where_they_pay() -> None:
    own, other = pace.Pace(problem(400)), pace.Pace(problem(400, n=3))
    many = int(1.1 * pace.COMPILING_N / pace.seconds_saved(own.problem, 1))
    assert own.form(many) is Form.THIS_N
    own.ended(many, Form.ANY_N)
    assert own.form() is Form.THIS_N
    assert other.form() is Form.ANY_N
    own.ended(20, Form.THIS_N)
    assert pace.Pace(problem()).form() is Form.THIS_N  # compiled in this process
    pace._compiled.clear()
    pace._saved.clear()
    assert own.form(many // 4) is Form.THIS_N  # kept on disk: it pays sooner
    assert pace.Pace(problem()).form() is Form.NUMPY
    assert other.form(many // 4) is Form.ANY_N


@pytest.mark.usefixtures("fresh")
def test_single_precision_is_compiled_where_it_pays() -> None:
    own = pace.Pace(problem(400))
    assert not own.single_pays()
    with pace.expecting(100_000):
        assert own.single_pays()
    own.ended_roughly(10_000_000, in_single=False)
    assert own.single_pays()
    pace._saved.clear()
    own.ended_roughly(20, in_single=True)
    assert own.single_pays()  # compiled in this process
    pace._compiled.clear()
    assert not own.single_pays()
    with pace.expecting(20):
        assert own.single_pays()  # kept on disk: it pays sooner
        assert not pace.Pace(problem(400, n=3)).single_pays()


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [ct.GroupTotalVariation(), ct.SquaredVariation()])
def test_a_solve_goes_on_compiled_where_it_takes_too_long(penalty: ct.Penalty, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one restart to the next, NumPy, compiled for any n, compiled for this n; and to the same answer."""
    one, forms = problem(penalty=penalty), iter([Form.NUMPY, Form.NUMPY, Form.ANY_N])
    expected = ct.solve(one, 1e-9, engine="numpy")
    monkeypatch.setattr(pace.Pace, "form", lambda self, n_iter=0: next(forms, Form.THIS_N))
    found = ct.solve(one, 1e-9)
    assert pace.sort_of(one) in pace._compiled
    np.testing.assert_allclose(found.w, expected.w, atol=1e-3)
    assert found.gap <= 1e-9
    assert found.unconditional


@pytest.mark.usefixtures("fresh")
def test_kernels_on_disk_are_worth_less_time_in_numpy_and_those_of_other_kinds_are_not() -> None:
    own, other = pace.Pace(problem()), pace.Pace(problem(penalty=ct.GroupTotalVariation()))
    assert pace.patience(own.kind) == pace.patience(other.kind) == pace.COMPILING
    own.ended(20, Form.ANY_N)
    assert pace.patience(own.kind) == pace.LOADING
    assert pace.patience(other.kind) == pace.COMPILING


def test_either_form_by_choice() -> None:
    flow = Either("flow")
    with using(compiled=False):
        assert not compiled()
        assert flow.variation.__module__ == "coterie.kernels.reference.flow"
        with using(compiled=True):
            assert flow.variation.__module__ == "coterie.kernels.flow"
        assert Either("nodes").node_gather.__module__ == "coterie.kernels.nodes"  # has no NumPy form
        with pytest.raises(AttributeError):
            _ = flow.nothing_of_the_sort
