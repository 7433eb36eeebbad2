"""Block models with wrong edges: clusters and errors of one fit, of two (adaptive), and with weights that are learnt.

    python -m benchmarks.adaptive [--seeds 3] [--penalty l1]

Three blocks of 20 nodes with models (1, 1), (−1, 1) and (1, −1), eight edges per node of which 10 to 40 % lead to
another block, three rows per node, noise 0.5. λ is chosen by four folds over rows, for the last fit with weights that
each fold makes of its own. Printed are means over seeds: the adjusted Rand index of the clusters, how many there are,
and the root mean squared error on new rows.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import adjusted_rand_score

import coterie as ct

SIZE, DEGREE, POINTS, NOISE, NEW = 20, 8, 3, 0.5, 20
MODELS = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
WRONG = (0.1, 0.2, 0.3, 0.4)
WAYS: dict[str, dict[str, bool]] = {"one fit": {}, "adaptive": {"adaptive": True}, "learnt": {"learn_graph": True}}


def block_graph(wrong: float, of: np.ndarray, rng: np.random.Generator) -> ct.EmpiricalGraph:
    """Edges drawn at random, this part of them between blocks."""
    i, j = np.triu_indices(len(of), 1)
    between = of[i] != of[j]
    count = len(of) * DEGREE // 2
    across = rng.choice(np.flatnonzero(between), round(wrong * count), replace=False)
    inside = rng.choice(np.flatnonzero(~between), count - len(across), replace=False)
    chosen = np.concatenate([across, inside])
    return ct.EmpiricalGraph.from_edges(np.stack([i, j], axis=1)[chosen], n_nodes=len(of))


def rows(of: np.ndarray, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of every node."""
    nodes = np.repeat(np.arange(len(of)), m)
    X = rng.standard_normal((len(nodes), 2))
    return X, (X * MODELS[of[nodes]]).sum(axis=1) + NOISE * rng.standard_normal(len(nodes)), nodes


def compare(wrong: float, penalty: str, seed: int) -> dict[str, tuple[float, float, float]]:
    """Rand index, number of clusters and error of each way."""
    rng, of = np.random.default_rng(seed), np.repeat(np.arange(3), SIZE)
    graph = block_graph(wrong, of, rng)
    (X, y, nodes), (X_new, y_new, nodes_new) = rows(of, POINTS, rng), rows(of, NEW, rng)
    found = {}
    for way, options in WAYS.items():
        model = ct.NetworkedLinearRegressionCV(
            graph, n_lams=12, cv=4, over="rows", random_state=seed, penalty=penalty, tol=1e-4, **options
        ).fit(X, y, groups=nodes)
        error = np.sqrt(((model.predict(X_new, groups=nodes_new) - y_new) ** 2).mean())
        clusters = model.clusters_
        found[way] = (adjusted_rand_score(of, clusters), float(clusters.max() + 1), float(error))
    return found


def main() -> None:
    """Print a line for each share of wrong edges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--penalty", default="l1")
    arguments = parser.parse_args()
    for wrong in WRONG:
        runs = [compare(wrong, arguments.penalty, seed) for seed in range(arguments.seeds)]
        lines = []
        for name in WAYS:
            rand, count, error = np.mean([run[name] for run in runs], axis=0)
            lines.append(f"{name}: Rand index {rand:.2f}, {count:.1f} clusters, error {error:.3f}")
        print(f"{wrong:.0%} wrong edges, {arguments.penalty}: {'; '.join(lines)}", flush=True)


if __name__ == "__main__":
    main()
