"""Can the labels of a network resolve its clusters? What the max-flow check says, beside what learning gives.

Two clusters of 100 nodes; 8 nodes of the first and 30 of the second have labels. The heavier the edges between the
clusters, the less can the labels of the first hold it together. Prints the tables of docs/resolvability.md:

    python examples/resolvability.py
"""

from __future__ import annotations

import numpy as np

import coterie as ct
from coterie.datasets import SyntheticNetwork, stochastic_block_model

SIZE, SEEDS = 100, range(10)
NOISY_LAMS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)


def network(across: float, noise: float, seed: int) -> SyntheticNetwork:
    """Draw two clusters; edges inside have weight 1, edges between them weigh `across`."""
    law = ((1.0, 0.0), (across, 0.0))
    return stochastic_block_model(
        (SIZE, SIZE), p_in=0.3, p_out=0.02, labelled=2 * SIZE, edge_weights=law, noise=noise, seed=seed
    )


def chosen(seed: int) -> np.ndarray:
    """The nodes that show their labels: 8 of the first cluster, 30 of the second."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.choice(SIZE, 8, replace=False), SIZE + rng.choice(SIZE, 30, replace=False)])


def error(drawn: SyntheticNetwork, M: np.ndarray, lam: float) -> float:
    """Mean squared distance of the learnt weights of the first cluster from the true ones."""
    data = drawn.data
    y = np.where(np.isin(data.nodes, M), drawn.labels, np.nan)
    shown = ct.LocalDatasets.from_rows(data.X, y, data.nodes, n_nodes=data.n_nodes)
    w = ct.solve(ct.Problem(drawn.graph, shown, lam=lam)).w
    return float(((w - drawn.weights) ** 2).sum(axis=1)[:SIZE].mean())


def measure(across: float, seed: int) -> tuple[float, ...]:
    """Ratio and margin of the first cluster; its error without noise at λ = 1e-4, with noise at the best λ."""
    M = chosen(seed)
    exact, noisy = network(across, 0.0, seed), network(across, 1.0, seed)
    first = ct.resolvability(exact.graph, M, exact.cluster).clusters[0]
    return first.ratio, first.margin, error(exact, M, 1e-4), min(error(noisy, M, lam) for lam in NOISY_LAMS)


def labels_needed(advised: bool, seed: int) -> int:
    """How many labels resolve both clusters, labelled one by one as advised or at random."""
    drawn = network(0.5, 0.0, seed)
    at_random = np.random.default_rng(seed).permutation(2 * SIZE).tolist()
    labelled: list = []
    while (check := ct.resolvability(drawn.graph, labelled, drawn.cluster)).next_label is not None:
        labelled.append(check.next_label if advised else at_random.pop())
    return len(labelled)


def main() -> None:
    """Print both tables; medians over ten networks."""
    print("| weight across | ratio | margin | error, no noise | error, noise 1 |\n|---|---|---|---|---|")
    for across in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0):
        ratio, margin, exact, noisy = np.median([measure(across, seed) for seed in SEEDS], axis=0)
        print(f"| {across} | {ratio:.2f} | {margin:.2f} | {exact:.1e} | {noisy:.2f} |", flush=True)
    counts = {advised: [labels_needed(advised, seed) for seed in SEEDS] for advised in (True, False)}
    print("\n| labelled | labels needed, median | range |\n|---|---|---|")
    for advised, name in ((True, "as `next_label` advises"), (False, "at random")):
        print(f"| {name} | {np.median(counts[advised]):.0f} | {min(counts[advised])} to {max(counts[advised])} |")


if __name__ == "__main__":
    main()
