"""What other forms of a site's answer hide from the attack of `examples/curious_server.py`, and what they cost.

    python -m benchmarks.exchange

Four sites of three nodes with three features each, all labelled, every node with a neighbour elsewhere. Each form is
run until the gap is certified to 1e-6 (or for 60 rounds); the attack knows the form and undoes what can be undone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import coterie as ct
from coterie.federation.loop import Rules, State, federate
from coterie.federation.messages import ProxReply, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.simulate import Simulated
from coterie.federation.site import Site

SITES, NODES, N, ROWS, LAM, MOST = 4, 3, 3, 6, 0.02, 60
Heard = list[tuple[ProxRequest, Any]]


class Averaging(Site):
    """Tells the mean of its answers so far, and proves what it can of that."""

    sum: Any = 0.0
    count = 0

    def _solved(self, request: ProxRequest) -> tuple[np.ndarray, np.ndarray]:
        w, u = super()._solved(request)
        self.sum, self.count = self.sum + w, self.count + 1
        return self.sum / self.count, u


class Curious(Simulated):
    """Keeps what it was told."""

    def __init__(self, sites: list[Site]) -> None:
        super().__init__(sites)
        self.heard: list[Heard] = [[] for _ in sites]

    def ask(self, requests: Any) -> dict[int, ProxReply]:
        replies = super().ask(requests)
        for k, reply in replies.items():
            self.heard[k].append((requests[k], reply.w))
        return replies


def network(seed: int) -> ct.Problem:
    """A circle of all nodes, sites taking turns, and edges inside sites."""
    rng, total = np.random.default_rng(seed), SITES * NODES
    nodes = np.repeat(np.arange(total), ROWS)
    X = rng.standard_normal((len(nodes), N))
    w = rng.choice([-1.0, 1.0, 2.0], (total, N))
    y = np.einsum("rk,rk->r", X, w[nodes]) + 0.3 * rng.standard_normal(len(nodes))
    circle = np.stack([np.arange(total), (np.arange(total) + 1) % total], axis=1)
    inside = np.stack([np.arange(total), (np.arange(total) + SITES) % total], axis=1)
    edges = np.unique(np.sort(np.concatenate([circle, inside]), axis=1), axis=0)
    return ct.Problem(ct.EmpiricalGraph.from_edges(edges), ct.LocalDatasets.from_rows(X, y, nodes), lam=LAM)


def run(problem: ct.Problem, kind: type[Site], round_to: float = 0.0) -> tuple[Curious, Any, list[Any]]:
    """A federation, what its server heard, and its parts."""
    parts, cut = partition(problem.graph, np.arange(SITES * NODES) % SITES)
    server = Curious([kind(part.problem(problem), part.boundary, round_to) for part in parts])
    said = [site.introduce(str(k), cut.nodes[cut.of(k)]) for k, site in enumerate(server.sites)]
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, said)
    state.consistency.contradiction = lambda *_: None  # type: ignore[method-assign]  # averages contradict each other
    return server, federate(server, state, Rules(max_rounds=MOST)), parts


def answers(form: str, heard: Heard) -> Heard:
    """The weights ŵ behind what was told."""
    if form == "duals":  # g = (v − ŵ)/τ was told
        told = [(q, (q.v - w) / q.tau[:, None]) for q, w in heard]
        return [(q, q.v - q.tau[:, None] * g) for q, g in told]
    if form == "running means":  # ŵ_k = k·mean_k − (k − 1)·mean_{k−1}
        means = [w for _, w in heard]
        before = [np.zeros_like(means[0]), *means]
        return [(q, (k + 1) * w - k * before[k]) for k, (q, w) in enumerate(heard)]
    return heard


def moments(heard: Heard, node: int) -> np.ndarray:
    """(1/m) XᵀX of a boundary node, by least squares; inner edges pull with constant forces."""
    w = np.array([w[node] for _, w in heard])
    g = np.array([(q.v[node] - w[node]) / q.tau[node] for q, w in heard])
    found = np.linalg.lstsq(np.column_stack([w, np.ones(len(w))]), g / 2, rcond=None)[0][:N]
    return (found + found.T) / 2


def errors(problem: ct.Problem, form: str, server: Curious, parts: list[Any], rounds: int) -> np.ndarray:
    """The relative error of XᵀX of every node, after so many rounds."""
    out = []
    for part, heard in zip(parts, server.heard, strict=True):
        seen = answers(form, heard[:rounds])
        for place, node in enumerate(part.own[part.boundary]):
            X = problem.data.X[problem.data.nodes == node]
            true = X.T @ X / len(X)
            out.append(np.linalg.norm(moments(seen, place) - true) / np.linalg.norm(true))
    return np.array(out)


def line(form: str, problems: list[ct.Problem]) -> str:
    """Medians over problems."""
    rows = []
    for problem in problems:
        kind = Averaging if form == "running means" else Site
        server, outcome, parts = run(problem, kind, 1e-4 if "rounded" in form else 0.0)
        known = [np.mean(errors(problem, form, server, parts, r) < 1e-6) for r in range(1, outcome.rounds + 1)]
        first = next((r + 1 for r, share in enumerate(known) if share >= 0.5), np.inf)
        final = errors(problem, form, server, parts, outcome.rounds)
        rows.append([outcome.rounds, outcome.gap, first, known[-1] * SITES * NODES, np.median(final)])
    rounds, gap, first, known_last, final = np.median(rows, axis=0)
    return f"| {form} | {rounds:.0f} | {gap:.1e} | {first:.0f} | {known_last:.0f} of {SITES * NODES} | {final:.1e} |"


def main() -> None:
    problems = [network(seed) for seed in range(5)]
    print(
        "| answer | rounds | gap | rounds until half of the nodes are known to 1e-6 | known at the end | median error |"
    )
    print("|---|---|---|---|---|---|")
    for form in ("weights", "duals", "running means", "weights, rounded to 1e-4"):
        print(line(form, problems), flush=True)


if __name__ == "__main__":
    main()
