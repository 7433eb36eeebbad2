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
from coterie.kernels.choice import Either, are_kept, compiled, using
from coterie.solver import pace
from coterie.solver.solve import engine_for

README = Path(__file__).parents[2] / "README.md"


def problem(size: int = 20, n: int = 2, penalty: ct.Penalty | None = None) -> ct.Problem:
    graph, rng = stochastic_block_model((size, size), labelled=8).graph, np.random.default_rng(0)
    nodes = np.repeat(np.arange(0, 2 * size, 2), 5)
    X = rng.standard_normal((len(nodes), n))
    y = np.where(nodes < size, X.sum(axis=1), -X[:, 0]) + 0.1 * rng.standard_normal(len(nodes))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=2 * size)
    return ct.Problem(graph, data, penalty=penalty or ct.TotalVariation(), lam=1e-2)


def test_the_ten_lines_of_the_readme_import_no_compiler() -> None:
    text = README.read_text()
    begin = text.index("```python\n") + len("```python\n")
    lines = text[begin : text.index("```", begin)]
    check = "import sys\nassert 'numba' not in sys.modules\nassert solution.gap <= 1e-6\n"
    subprocess.run([sys.executable, "-c", lines + check], check=True, stdout=subprocess.DEVNULL)


def test_small_problems_begin_in_numpy_and_large_ones_compiled() -> None:
    assert isinstance(engine_for("auto", None, pace.Pace(problem())), GrowingEngine)
    assert pace.is_long(problem(400))
    assert type(engine_for("auto", None, pace.Pace(problem(400)))).__name__ == "NumbaEngine"
    assert type(engine_for("numba", None, pace.Pace(problem()))).__name__ == "NumbaEngine"
    assert isinstance(engine_for("numpy", None, pace.Pace(problem(400))), NumpyEngine)


def test_many_small_problems_are_one_that_takes_long() -> None:
    own = pace.Pace(problem())
    with pace.expecting(10), pace.expecting(1000):
        assert own.compiles()
    assert not own.compiles()
    own.ended(200_000, compiled=False)
    assert pace.Pace(problem()).compiles()
    assert not pace.Pace(problem(n=3)).compiles()  # another sort
    pace.Pace(problem(n=3)).ended(20, compiled=True)
    assert pace.Pace(problem(n=3)).compiles()


@pytest.mark.parametrize("penalty", [ct.GroupTotalVariation(), ct.SquaredVariation()])
def test_a_solve_goes_on_compiled_where_numpy_takes_too_long(
    penalty: ct.Penalty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the next restart on, and to the same answer."""
    one = problem(penalty=penalty)
    expected = ct.solve(one, 1e-9, engine="numpy")
    monkeypatch.setattr(pace.Pace, "is_impatient", lambda self, n_iter: True)
    found = ct.solve(one, 1e-9)
    assert pace.Pace(one).compiles()
    np.testing.assert_allclose(found.w, expected.w, atol=1e-3)
    assert found.gap <= 1e-9
    assert found.unconditional


def test_kernels_on_disk_are_worth_less_time_in_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "are_kept", are_kept)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert pace.patience() == pace.COMPILING
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "flow.variation.nbi").touch()
    pace.patience.cache_clear()
    assert pace.patience() == pace.LOADING


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
