"""How wrong is an answer? Three measures, each with what it divides by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.datasets import SyntheticNetwork
from coterie.problem.arrays import Array
from coterie.problem.losses.base import linear_predictor


class LabelError(NamedTuple):
    """Mean of (y − ŷ)² over the points of labelled nodes (train) and of unlabelled nodes (test)."""

    train: float
    test: float


def label_error(network: SyntheticNetwork, predicted: Array) -> LabelError:
    """Compare predictions for every row with the labels; this is the MSE of the paper's table."""
    squares, hidden = (network.labels - predicted) ** 2, network.held_out
    return LabelError(*(float(squares[rows].mean()) if rows.any() else np.nan for rows in (~hidden, hidden)))


def predictions(network: SyntheticNetwork, w: Array) -> Array:
    """⟨x, w_i⟩ for every row, with the weights of its node."""
    return linear_predictor(network.data.X, w[network.data.nodes])


def weight_error(network: SyntheticNetwork, w: Array) -> float:
    """ε(w) = (1/|V|) Σ_{i ∉ M} ‖w̄_i − w_i‖²: a sum over unlabelled nodes, divided by the number of *all* nodes."""
    squares = ((network.weights - w) ** 2).sum(axis=1)
    squares[network.data.labelled.M] = 0.0
    return float(squares.sum()) / len(squares)


def weight_mse(network: SyntheticNetwork, w: Array) -> float:
    """Mean of (w̄ − w)² over all nodes and coordinates: what the paper's first figure shows."""
    return float(((network.weights - w) ** 2).mean())
