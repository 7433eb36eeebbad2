"""Coterie beside mgwr, statsmodels' MixedLM, strat_models and Flower: the tables of docs/compared.md.

    python -m benchmarks.compared [--parts mgwr mixed strat flower] [--data FOLDER] [--seeds 5]

A quarter of the rows, or all rows of a quarter of the nodes, is held out; errors are root mean squared errors of their
labels, means over so many draws (five for mgwr, three for the others) with standard errors. Every tool chooses its own
strength or bandwidth from the other rows. Seconds are CPU seconds of one thread, choice included. `make bench-compared`
installs mgwr and statsmodels; strat_models is not on PyPI, see benchmarks/beside_strat.py. FOLDER as for
benchmarks.weighting.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import beside_flower, beside_mgwr, beside_mixed, beside_strat
from benchmarks.machine import processor, version_of

DRAWS = {"mgwr": 5, "mixed": 3, "strat": 3, "flower": 3}
PACKAGES = ("coterie", "mgwr", "statsmodels", "torch", "flwr", "numpy", "scipy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=DRAWS, default=list(DRAWS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    versions = ", ".join(f"{name} {found}" for name in PACKAGES if (found := version_of(name)))
    print(f"{date.today()}, {processor()}, one thread; {versions}")
    parts = {
        "mgwr": beside_mgwr.run,
        "mixed": lambda seeds: beside_mixed.run(seeds, arguments.data),
        "strat": beside_strat.run,
        "flower": beside_flower.run,
    }
    with threadpool_limits(1):
        for part in arguments.parts:
            parts[part](arguments.seeds or DRAWS[part])


if __name__ == "__main__":
    main()
