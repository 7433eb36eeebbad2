"""What paths of λ cost, in cold solves: one λ after the other, or in strides with means of two solutions in between.

    python -m benchmarks.paths [--what path cv tasks] [--family c] [--scale 1] [--strides 1 8] [--draws 8]

Prints CPU seconds: of one cold solve to 1e-6 and to 1e-4, each the median of three; of a path of 30 λ to 1e-4; of
cross-validation, 30 λ × 5 folds, as the CV estimators do it. With --draws, for so many problems of the family: cold
solves of some take twice as long as those of others, and paths do not. And of a whole CV fit on 139 tasks, every two
of which are joined, with 27 features and 15,000 rows (the size of the inner London schools, synthetic).
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from statistics import median

import numpy as np

import coterie as ct
from benchmarks.families import blocks, spatial
from coterie.estimators.folds import folds_of
from coterie.estimators.lam_errors import cross_validate_lam
from coterie.solver import strides

FAMILIES = {"b": blocks, "c": spatial}
TASKS, FEATURES, ROWS = 139, 27, 15_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", default=["path", "cv", "tasks"])
    parser.add_argument("--family", choices=FAMILIES, default="c")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--strides", type=int, nargs="+", default=[1, strides.STRIDE])
    parser.add_argument("--draws", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    build = FAMILIES[arguments.family]
    for tol in (1e-6, 1e-2):
        ct.solve_path(build(0.03), n_lams=8, tol=tol, engine="numba")  # compiles
    for stride in arguments.strides:
        strides.STRIDE = stride
        ratios: dict[str, list[float]] = {}
        for draw in range(arguments.draws):
            measure(build(arguments.scale, draw), stride, arguments.what, ratios)
        for what, of in ratios.items():
            print(
                f"stride {stride}: {what}: {median(of):.1f} cold solves in the median, {min(of):.1f} to {max(of):.1f}"
            )
        if "tasks" in arguments.what:
            seconds = spent(report_tasks)
            print(f"stride {stride}: CV fit on {TASKS} tasks {seconds:.1f} s")


def measure(problem: ct.Problem, stride: int, what: list[str], ratios: dict[str, list[float]]) -> None:
    """Print what one problem costs; add how many cold solves that is to `ratios`."""
    cold = {tol: median(spent(lambda tol=tol: ct.solve(fresh(problem), tol)) for _ in range(3)) for tol in (1e-6, 1e-4)}
    print(f"one cold solve: {cold[1e-6]:.3f} s to 1e-6, {cold[1e-4]:.3f} s to 1e-4")
    works = {"path": ("path of 30 λ to 1e-4", report_path), "cv": ("30 λ × 5 folds", report_choice)}
    for name, work in (works[one] for one in what if one in works):
        seconds = spent(lambda work=work: work(problem))
        ratios.setdefault(name, []).append(seconds / cold[1e-6])
        print(f"stride {stride}: {name} {seconds:.2f} s, {ratios[name][-1]:.1f} cold solves", flush=True)


def fresh(problem: ct.Problem) -> ct.Problem:
    """The same problem, of which nothing has been found."""
    return replace(problem, data=replace(problem.data))


def spent(work) -> float:
    """CPU seconds of work()."""
    began = time.process_time()
    work()
    return time.process_time() - began


def report_path(problem: ct.Problem) -> None:
    """Solve the path, and say how many iterations that took."""
    path = ct.solve_path(fresh(problem), tol=1e-4)
    iterations = [solution.n_iter for solution in path.solutions]
    largest = max(solution.gap for solution in path.solutions)
    print(f"  {sum(iterations)} iterations, none at {iterations.count(0)} λ; largest gap {largest:.1e}")


def report_choice(problem: ct.Problem) -> None:
    """Choose λ by five folds over rows."""
    folds, over = folds_of(problem.data, 5, "rows", np.arange(len(problem.data.y)), 0)
    print(f"  {cross_validate_lam(fresh(problem), 30, folds, over)}")


def report_tasks() -> None:
    """Choose λ by five folds over the rows of the tasks, and fit."""
    X, y, nodes, graph = tasks()
    model = ct.NetworkedLinearRegressionCV(graph, over="rows", random_state=0).fit(X, y, groups=nodes)
    print(f"  λ {model.lam_:.3g}, gap {model.gap_:.1e}, held-out error {model.held_out_.error:.4f}")


def tasks(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, ct.EmpiricalGraph]:
    """Rows of tasks in five groups that share a model, and the complete graph."""
    rng = np.random.default_rng(seed)
    nodes = np.sort(rng.integers(TASKS, size=ROWS))
    X = rng.standard_normal((ROWS, FEATURES))
    common, groups = rng.standard_normal(FEATURES), 0.3 * rng.standard_normal((5, FEATURES))
    y = (X * (common + groups[nodes % 5])).sum(axis=1) + 2 * rng.standard_normal(ROWS)
    pairs = np.stack(np.triu_indices(TASKS, 1), axis=1)
    return X, y, nodes, ct.EmpiricalGraph.from_edges(pairs)


if __name__ == "__main__":
    main()
