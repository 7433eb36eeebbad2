from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie.federation.prox_surrogate import ProxSurrogate

TAU = np.array([0.5, 0.5, 2.0, 1.0, 1.0])
SITES = [slice(0, 3), slice(3, 5)]
PART = np.array([0, 0, 0, 1, 1])
ALL = np.ones(5, dtype=bool)


def prox(H: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """argmin ½ wᵀHw + Σ ‖w_b − v_b‖²/(2τ_b), for all coordinates of a site together."""
    rho = np.repeat(1 / tau, v.shape[1])
    return np.linalg.solve(H + np.diag(rho), rho * v.ravel()).reshape(v.shape)


def replies_of(seed: int, rounds: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[np.ndarray]]:
    """Answers of two sites with quadratics, to random centres."""
    rng = np.random.default_rng(seed)
    H = [A @ A.T for A in (rng.standard_normal((6, 6)), rng.standard_normal((4, 4)))]
    replies = []
    for _ in range(rounds):
        v = rng.standard_normal((5, 2))
        w = np.concatenate([prox(H[k], v[at], TAU[at]) for k, at in enumerate(SITES)])
        replies.append((w, (v - w) / TAU[:, None]))
    return replies, H


@given(st.integers(0, 1000), st.integers(1, 6))
def test_the_latest_answer_is_repeated_and_no_step_is_too_long(seed: int, rounds: int) -> None:
    replies, _ = replies_of(seed, rounds)
    model = ProxSurrogate(replies, TAU, PART, ALL)
    w, g = replies[-1]
    v = w + TAU[:, None] * g
    np.testing.assert_allclose(model(v), w, atol=1e-12)
    step = np.random.default_rng(seed).standard_normal(v.shape)
    moved = model(v + step) - w
    length = np.sqrt((moved**2 / TAU[:, None]).sum())
    assert length <= np.sqrt((step**2 / TAU[:, None]).sum()) * (1 + 1e-9)
    assert (moved * step / TAU[:, None]).sum() >= -1e-9


def test_answers_are_foreseen_better_the_more_have_been_seen() -> None:
    rng, misses = np.random.default_rng(1), []
    for rounds in (1, 4, 16):
        miss = 0.0
        for seed in range(10):
            replies, H = replies_of(seed, rounds)
            v = rng.standard_normal((5, 2))
            right = np.concatenate([prox(H[k], v[at], TAU[at]) for k, at in enumerate(SITES)])
            miss += np.linalg.norm(ProxSurrogate(replies, TAU, PART, ALL)(v) - right)
        misses.append(miss)
    assert misses[0] > 1.5 * misses[1] > 2 * misses[2]


def test_nodes_of_one_cluster_move_together() -> None:
    w = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 3.0], [0.0, 0.0], [5.0, 5.0]])
    model = ProxSurrogate([(w, np.zeros_like(w))], TAU, PART, ALL)
    moved = model(w + np.random.default_rng(0).standard_normal(w.shape)) - w
    assert np.ptp(moved[:3, 0]) <= 1e-12
    assert abs(moved[1, 1] - moved[2, 1]) <= 1e-12
    assert abs(moved[0, 1] - moved[1, 1]) > 1e-6


def test_sites_that_are_held_do_not_move() -> None:
    replies, _ = replies_of(0, 3)
    w, g = replies[-1]
    moved = ProxSurrogate(replies, TAU, PART, PART == 1)(w + TAU[:, None] * g + 1.0) - w
    assert not moved[:3].any()
    assert moved[3:].all()
    assert not (ProxSurrogate(replies, TAU, PART, ~ALL)(w + 1.0) - w).any()
