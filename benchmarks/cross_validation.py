"""What choosing λ costs, and whether folds solved loosely choose the λ of folds solved tightly.

    python -m benchmarks.cross_validation [--tol 1e-3 …] [--scale 1]

Prints, for a family: the CPU time of one cold solve to 1e-6, that of a path of 30 λ × 5 folds at each tolerance, their
ratio, the λ that each rule chooses, and how far the errors are from those at the tightest, in standard errors.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

import coterie as ct
from benchmarks.families import blocks, spatial
from coterie.estimators.folds import folds_of
from coterie.estimators.lam_errors import cross_validate_lam

FAMILIES = {"b": blocks, "c": spatial}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, default="c")
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-5, 1e-3])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--over", default="auto")
    arguments = parser.parse_args()
    problem = FAMILIES[arguments.family](arguments.scale)
    warnings.simplefilter("ignore", ct.NotConverged)
    ct.solve(FAMILIES[arguments.family](0.01), engine="numba")  # compiles
    fresh = replace(problem, data=replace(problem.data))
    began = time.process_time()
    print(ct.solve(replace(fresh, lam=problem.lam)))
    cold = time.process_time() - began
    print(f"one cold solve to 1e-6 at λ = {problem.lam:g}: {cold:.2f} s")
    folds, over = folds_of(problem.data, 5, arguments.over, np.arange(len(problem.data.y)), 0)
    tightest = None
    for tol in sorted(arguments.tol):
        began = time.process_time()
        choice = cross_validate_lam(problem, 30, folds, over, tol=tol)
        seconds = time.process_time() - began
        tightest = tightest or choice
        off = np.abs(choice.mean - tightest.mean) / tightest.standard_error
        print(
            f"tol {tol:.0e}, folds over {over}: {seconds:.1f} s, {seconds / cold:.0f} × a cold solve; best λ "
            f"{choice.lams[choice.best]:.3g}, one-standard-error λ {choice.lams[choice.one_se]:.3g}; "
            f"off by {off.max():.2g} standard errors at most, {off[choice.best]:.2g} at the best"
        )


if __name__ == "__main__":
    main()
