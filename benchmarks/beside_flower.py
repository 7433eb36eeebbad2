"""One model for all sites (FedAvg of Flower) beside one per node (a Coterie federation): the same sites and rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import coterie as ct
from benchmarks.beside_mgwr import field
from benchmarks.held_out import KINDS, Question, ask, cell
from coterie.federation.loop import Rules
from coterie.federation.simulate import simulate

SITES, PLACES, ROUNDS, EPOCHS, STEP, TOL = 5, 100, 50, 5, 0.1, 1e-4
LAMS = (0.001, 0.003, 0.01, 0.03, 0.1)
NUMBER = 8  # bytes


class OneProcess:
    """Flower's Grid with all sites in this process, through which FedAvg sends and receives; it counts bytes."""

    def __init__(self, sites: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.sites, self.sent = sites, 0

    def get_node_ids(self) -> Iterable[int]:
        return range(len(self.sites))

    def send_and_receive(self, messages: Iterable[Any], **_: Any) -> Iterable[Any]:
        return [self._train(message) for message in messages]

    def _train(self, message: Any) -> Any:
        """A site's local epochs: full gradient steps on the mean of its squared errors."""
        from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

        (w,) = message.content["arrays"].to_numpy_ndarrays()
        X, y = self.sites[message.metadata.dst_node_id]
        for _ in range(EPOCHS):
            w = w - STEP * 2 * X.T @ (X @ w - y) / len(y)
        self.sent += NUMBER * w.size
        content = {"arrays": ArrayRecord([w]), "metrics": MetricRecord({"num-examples": len(y)})}
        return Message(RecordDict(content), reply_to=message)


def with_ones(X: np.ndarray) -> np.ndarray:
    """Add a column for the intercept."""
    return np.column_stack([X, np.ones(len(X))])


def fedavg(question: Question) -> tuple[np.ndarray, int, int]:
    """Predictions, rounds and bytes to the server."""
    from flwr.app import ArrayRecord
    from flwr.serverapp.strategy import FedAvg
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1  # what Flower does when it starts an app
    logging.getLogger("flwr").setLevel(logging.ERROR)
    train, test = question.train, question.test
    site = site_of(question)[train.nodes]
    grid: Any = OneProcess([(with_ones(train.X[site == s]), train.y[site == s]) for s in range(SITES)])
    done = FedAvg(fraction_evaluate=0.0).start(grid, ArrayRecord([np.zeros(train.X.shape[1] + 1)]), ROUNDS)
    (w,) = done.arrays.to_numpy_ndarrays()
    return with_ones(test.X) @ w, ROUNDS, grid.sent


def alone(question: Question) -> tuple[np.ndarray, int, int]:
    """One least-squares model for each site, without any message."""
    train = question.train
    of = site_of(question)
    rows = [of[train.nodes] == s for s in range(SITES)]
    models = np.array([np.linalg.lstsq(with_ones(train.X[k]), train.y[k], rcond=None)[0] for k in rows])
    return predicted(question, models[of]), 0, 0


def problem_of(question: Question, lam: float) -> ct.Problem:
    """One model per node, intercepts included."""
    train = question.train
    data = ct.LocalDatasets.from_rows(with_ones(train.X), train.y, train.nodes, n_nodes=train.graph.n_nodes)
    return ct.Problem(train.graph, data, loss=ct.SquaredError(reduction="sum"), lam=lam)


def predicted(question: Question, w: np.ndarray) -> np.ndarray:
    """What the models of nodes say of the held-out rows."""
    return np.asarray((with_ones(question.test.X) * w[question.test.nodes]).sum(axis=1))


def federated(question: Question, lam: float) -> tuple[np.ndarray, int, int]:
    """A Coterie federation."""
    done = simulate(problem_of(question, lam), site_of(question), Rules(tol=TOL))
    return predicted(question, done.w), done.outcome.rounds, done.to_server


def site_of(question: Question) -> np.ndarray:
    """Stripes of the square: borders of sites are not borders of regions."""
    assert question.places is not None
    return np.minimum((SITES * question.places[:, 0]).astype(int), SITES - 1)


def asked(over: str, seed: int) -> Question:
    """Regions with borders, in so many places."""
    table, places = field(PLACES, True, seed)
    return ask(table, over, seed, places)


def error(question: Question, found: np.ndarray) -> float:
    """The root mean squared error of predictions."""
    return float(np.sqrt(np.mean((found - question.test.y) ** 2)))


def best_lam() -> float:
    """λ of all draws: the best of another one, solved in one place."""
    question = asked("nodes", 999)
    return min(LAMS, key=lambda lam: error(question, predicted(question, ct.solve(problem_of(question, lam)).w)))


def run(seeds: int) -> None:
    """Print the table."""
    lam = best_lam()
    methods: dict[str, Callable[[Question], tuple[np.ndarray, int, int]]] = {
        f"Flower, FedAvg of {EPOCHS} local steps": fedavg,
        "each site alone": alone,
        f"Coterie, λ = {lam:g}, certified to {TOL:g}": lambda question: federated(question, lam),
    }
    print(f"\n{SITES} sites, stripes of a square with {PLACES} places; regions with borders.")
    print("\n| method | held-out rows | held-out nodes | rounds | kB to the server |\n|---|---|---|---|---|")
    for name, method in methods.items():
        cells, costs = [], []
        for over in KINDS:
            errors = []
            for question in (asked(over, seed) for seed in range(seeds)):
                found, *cost = method(question)
                errors.append(error(question, found))
                costs.append(cost)
            cells.append(cell(np.array(errors)))
        rounds, sent = np.median(costs, axis=0)
        print(f"| {name} | {' | '.join(cells)} | {rounds:.0f} | {sent / 1000:.3g} |", flush=True)
