"""What a curious server learns from an honest federation: XᵀX and Xᵀy of boundary nodes, from replies alone.

    python examples/curious_server.py

The server only does what it always does: it asks a site for proximal maps. Where a site is one labelled node with
squared error (1/m) Σ (y − ⟨x, w⟩)², its reply ŵ to a centre v with step τ satisfies

    (v − ŵ)/τ = (2/m) (XᵀX ŵ − Xᵀy),

n linear equations in XᵀX and Xᵀy. n + 1 replies give both, to the last digits; a boundary node of a larger site that
is not in one cluster with its neighbours is seen through in the same way, because its inner edges then pull with
constant forces. So whoever takes part must regard XᵀX and Xᵀy of every boundary node as known to the server, unless
rows are private (`row-privacy-epsilon`): then this finds the noisy moments that were released anyway.
"""

from __future__ import annotations

import numpy as np

import coterie as ct
from coterie.federation.loop import Rules, State, federate
from coterie.federation.messages import ProxReply, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.simulate import Simulated
from coterie.federation.site import Site

Transcript = list[tuple[ProxRequest, ProxReply]]


class Curious(Simulated):
    """A server that keeps what it was told."""

    def __init__(self, sites: list[Site]) -> None:
        super().__init__(sites)
        self.heard: dict[int, Transcript] = {k: [] for k in range(len(sites))}

    def ask(self, requests):  # type: ignore[no-untyped-def]
        replies = super().ask(requests)
        for k, reply in replies.items():
            self.heard[k].append((requests[k], reply))
        return replies


def moments(transcript: Transcript, node: int) -> tuple[np.ndarray, np.ndarray]:
    """(1/m) XᵀX and (1/m) Xᵀy of a boundary node, by least squares over all replies."""
    w = np.array([reply.w[node] for _, reply in transcript])
    g = np.array([(q.v[node] - reply.w[node]) / q.tau[node] for q, reply in transcript])
    n = w.shape[1]
    found = np.linalg.lstsq(np.column_stack([w, np.ones(len(w))]), g / 2, rcond=None)[0]
    return (found[:n] + found[:n].T) / 2, -found[n]


def network(sites: int = 8, n: int = 3, points: int = 6, seed: int = 0) -> ct.Problem:
    """Sites of one node each, on a circle."""
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(sites), points)
    X = rng.standard_normal((len(nodes), n))
    y = X @ np.ones(n) + 0.3 * rng.standard_normal(len(nodes))
    circle = np.stack([np.arange(sites), (np.arange(sites) + 1) % sites], axis=1)
    return ct.Problem(ct.EmpiricalGraph.from_edges(circle), ct.LocalDatasets.from_rows(X, y, nodes), lam=0.05)


def errors(problem: ct.Problem, rounds: int) -> list[float]:
    """Run a federation of one-node sites and return, of each, the relative error of XᵀX as the server finds it."""
    parts, cut = partition(problem.graph, np.arange(problem.graph.n_nodes))
    server = Curious([Site(part.problem(problem), part.boundary) for part in parts])
    said = [site.introduce(str(k), cut.nodes[cut.of(k)]) for k, site in enumerate(server.sites)]
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, said)
    federate(server, state, Rules(tol=0.0, max_rounds=rounds))
    out = []
    for k in range(len(parts)):
        X = problem.data.X[problem.data.nodes == k]
        true = X.T @ X / len(X)
        found, _ = moments(server.heard[k], 0)
        out.append(float(np.linalg.norm(found - true) / np.linalg.norm(true)))
    return out


def main() -> None:
    """Print how many sites are seen through after some rounds."""
    problem = network()
    print("rounds  sites of 8 whose XᵀX is known to 1e-6  worst relative error")
    for rounds in (2, 4, 6, 8):
        found = errors(problem, rounds)
        print(f"{rounds:6d}  {sum(error < 1e-6 for error in found):37d}  {max(found):.1e}")


if __name__ == "__main__":
    main()
