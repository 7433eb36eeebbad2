"""Why the printed steps crawl: the paper's network, with primal and dual steps in different balance.

    python examples/crawl.py crawl.png

Algorithm 1 converges for τ_i = s/|N_i| and σ_e = 1/(2s) with any s > 0; the printed choice is s = 1. Draws the first
weight of one unlabelled node, and the mean squared error of all weights, against the iteration number, and prints the
errors.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import coterie as ct
from coterie.datasets import SyntheticNetwork, stochastic_block_model
from coterie.report.figures import new_figure, save_figure

BALANCES = {1: "#d55e00", 10: "#e69f00", 100: "#009e73", 300: "#0072b2"}
N_ITER = 1000
AT = (100, 200, 500, 1000)


def watched(network: SyntheticNetwork, s: float) -> tuple[Any, Any]:
    """Return the first weight of an unlabelled node, and the weight error, after each iteration."""
    node = int(np.setdiff1d(np.arange(network.graph.n_nodes), network.data.labelled.M)[0])
    weight, error = [], []

    def look(k: int, w: Any, u: Any) -> None:
        weight.append(w[node, 0])
        error.append(np.mean(np.sum((w - network.weights) ** 2, axis=1)))

    problem = ct.Problem(network.graph, network.data, lam=1e-3)
    ct.algorithm1(problem, N_ITER, sigma=1 / (2 * s), tau=s, callback=look)
    return weight, error


def main(path: str) -> None:
    """Draw the figure, and print the errors at a few iterations."""
    network = stochastic_block_model()
    figure = new_figure(10, 4)
    left, right = figure.subplots(1, 2)
    print("s", *(f"k = {k}" for k in AT), sep="\t")
    for s, colour in BALANCES.items():
        weight, error = watched(network, s)
        k = np.arange(1, N_ITER + 1)
        label = f"s = {s}" + (", as printed" if s == 1 else "")
        left.plot(k, weight, color=colour, label=label)
        right.semilogy(k, error, color=colour, label=label)
        print(s, *(f"{error[at - 1]:.2g}" for at in AT), sep="\t")
    left.plot(k, np.minimum(1e-3 * k, 2), ":", color="black", label="λ per iteration")
    left.axhline(2, color="0.6", linewidth=0.8)
    left.set(xlabel="iteration", ylabel="first weight of one unlabelled node", title="it has a distance of 2 to go")
    right.set(xlabel="iteration", ylabel="mean of ‖ŵ − w̄‖²", title="all nodes")
    left.legend(loc=(0.38, 0.55), frameon=False)
    right.legend(frameon=False)
    save_figure(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
