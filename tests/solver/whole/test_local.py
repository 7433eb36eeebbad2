"""Near the optimum the gap bounds where better weights can be: every claim of `Locality`, in exact arithmetic."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Minorant
from coterie.kernels.reference.exact import EPS
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.rest import Rest
from coterie.solver.certificate import Certifier
from coterie.solver.whole.closer_look import CloserLook
from coterie.solver.whole.local import Locality, lowest_that_holds
from exactly import Exact, at_most, exact_objective, fractions, high, inner
from pairs import in_pairs
from problems import EVERY_PENALTY, FIRST_LOSSES, instance, problems, ugly_problems

pytestmark = pytest.mark.usefixtures("compiled_kernels")

MULTIPLES = 3.0 ** np.arange(-9, 17)  # of G, that are tried for X


class Claim(NamedTuple):
    """−⟨ρ, z − w⟩ < X wherever P exceeds D by at most G + X."""

    local: Locality
    rest: Rest
    G: float
    X: float

    @property
    def w(self) -> np.ndarray:
        return self.rest.w


class Spy(CloserLook):
    """Keeps what a local proof is asked for; no other way of bounding a minimiser is there."""

    def __init__(self, problem: ct.Problem) -> None:
        prover = ArrayProver(problem.bound)
        prover.charge = lambda *_: -np.inf  # type: ignore[method-assign]
        certifier = Certifier(prover)
        super().__init__(prover, certifier)
        certifier.closer = self
        self.asked: list[tuple[Locality, Rest, float]] = []

    def local_charge(self, below: Minorant, u: Any, s: Any, level: float, most: float) -> float:
        design, rest = self.problem.f.design, below.rest
        assert design is not None
        local = Locality(self.problem, design, rest.w, u, s, below.duals, self.prover.enclosure.free_weights())
        self.asked.append((local, rest, max(self.at_most(rest.w, level) - below.value, 0.0)))
        return super().local_charge(below, u, s, level, most)


def solved(problem: ct.Problem, tol: float) -> ct.Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        return ct.solve(problem, tol, max_iter=400, time_limit=1.0)


def asked(problem: ct.Problem, w: np.ndarray, u: np.ndarray) -> list[tuple[Locality, Rest, float]]:
    """What local proofs with these duals start from; with two choices for the box of a Lasso."""
    spy, u = Spy(problem), u.copy()
    spy.prover.clip(u)
    for s in (spy.prover.split(w, u), None if problem.f.l1_box is None else spy.tight_split(w, u)):
        spy.certifier.bound(w, u, s, problem.objective(w), 0.0, local=True)
    return spy.asked


def claims(problem: ct.Problem, w: np.ndarray, u: np.ndarray) -> Iterator[Claim]:
    """The smallest X that is claimed."""
    for local, rest, G in asked(problem, w, u):
        X = next((one * G for one in MULTIPLES if local.holds(rest, G, one * G)), None)
        if X is not None:
            yield Claim(local, rest, G, X)


def directions(
    problem: ct.Problem, rho: np.ndarray, best: np.ndarray, w: np.ndarray, seed: int
) -> Iterator[np.ndarray]:
    """Against ρ: node by node, all nodes alike, in Newton's metric, one coordinate; to the optimum; at random."""
    rng, data, V = np.random.default_rng(seed), problem.data, len(w)
    X = data.X[~np.isnan(data.y)]
    H = X.T @ X
    pooled = np.linalg.pinv(H, rcond=1e-12, hermitian=True) @ rho.sum(axis=0)
    least_seen = np.linalg.eigh(H)[1][:, 0] if np.isfinite(H).all() else np.eye(w.shape[1])[0]
    yield -rho
    yield -np.tile(rho.sum(axis=0), (V, 1))
    yield -np.tile(pooled, (V, 1))
    yield -np.tile(least_seen * np.sign(rho.sum(axis=0) @ least_seen), (V, 1))
    yield -rho * (np.abs(rho) == np.abs(rho).max())
    yield best - w
    yield -w
    yield w
    yield rng.standard_normal(w.shape)
    yield -np.abs(rng.standard_normal(w.shape)) * np.sign(rho)


def furthest(problem: ct.Problem, claim: Claim, step: np.ndarray) -> Iterator[np.ndarray]:
    """The last point on the way where P exceeds D by at most G + X, as far as floats tell; also a little before."""
    size = float(np.abs(step).max(initial=0.0))
    if not 0 < size < np.inf:
        return
    step, start = step / size, problem.objective(claim.w)

    def inside(t: float) -> bool:
        z = claim.w + t * step
        return bool(problem.objective(z) - start - (claim.rest.rho * (z - claim.w)).sum() <= claim.X)

    low, top = -300.0, 12.0
    if inside(10.0**top):
        low = top
    for _ in range(24):
        middle = (low + top) / 2 if low > -299 else (top - 24 if top > 0 else top * 2)
        low, top = (middle, top) if inside(10.0**middle) else (low, middle)
    for part in (1.0, 0.3):
        yield claim.w + part * 10.0**low * step


def never_broken(problem: ct.Problem, claim: Claim, zs: list[np.ndarray], at_w: Exact) -> None:
    """r(z) = −⟨ρ, z − w⟩ ≤ X where P(z) − P(w) + r(z) ≤ X; no P(z) is below P(w) − G − X, less rounding of shares."""
    G, X = Fraction(claim.G), Fraction(claim.X)
    for z in zs:
        assert at_most(plus(at_w, -G - X, 1 - rounding(claim)), exact_objective(problem, z))
        moved = moves(claim, z)
        if unshifted(claim, moved) and is_inside(problem, claim, z, at_w):
            r, unsure = against(claim, moved)
            assert r - unsure <= X


def rounding(claim: Claim) -> Fraction:
    return Fraction((claim.w.shape[1] + 64) * EPS)


def moves(claim: Claim, z: np.ndarray) -> np.ndarray:
    """z − w, exactly."""
    pairs = zip(fractions(z.ravel()), fractions(claim.w.ravel()), strict=True)
    return np.array([a - b for a, b in pairs], dtype=object).reshape(z.shape)


def against(claim: Claim, moved: np.ndarray) -> tuple[Fraction, Fraction]:
    """−⟨ρ, z − w⟩, and how far that may be from the truth."""
    step = moved.ravel().tolist()
    return -inner(claim.rest.rho.ravel(), step), inner(claim.rest.rounding_bound.ravel(), map(abs, step))


def unshifted(claim: Claim, moved: np.ndarray) -> bool:
    return all(one == 0 for one in moved[claim.local.free])


def is_inside(problem: ct.Problem, claim: Claim, z: np.ndarray, at_w: Exact) -> bool:
    """Whether P exceeds D by at most G + X at z: surely, as P(w) exceeds it by at most G."""
    r, unsure = against(claim, moves(claim, z))
    return at_most(plus(exact_objective(problem, z), r + unsure), plus(at_w, Fraction(claim.X), 1 - rounding(claim)))


def plus(value: Exact, more: Fraction, times: Fraction = Fraction(1)) -> Exact:
    return value * times + more if isinstance(value, Fraction) else value * high(times) + high(more)


def stay_in_their_sets(problem: ct.Problem, claim: Claim, z: np.ndarray) -> None:
    """Moves of a group's nodes are within R of each other, that of its first labelled one is in caps and ellipsoid."""
    moved = moves(claim, z)
    for level, sets in claim.local._levels:
        R = claim.local._spread(level, claim.G, claim.X)
        caps = claim.local._caps(level, claim.G, claim.X) + R[:, None]
        width = sets.half_widths(sets.radius(np.full(len(R), claim.G + claim.X), R, caps), caps)
        for g, first in enumerate(claim.local._first(level)):
            group = moved[level.labelled == g]
            assert all(one <= Fraction(float(R[g])) for one in group.max(axis=0) - group.min(axis=0))
            far = np.isfinite(width[g])
            assert all(abs(a) <= Fraction(float(b)) for a, b in zip(moved[first][far], width[g][far], strict=True))


def uneven_directions(problem: ct.Problem, claim: Claim, seed: int) -> Iterator[np.ndarray]:
    """Moves of one column, of some nodes and not of others: single ones, and sides of the groups."""
    rng, (V, n) = np.random.default_rng(seed), claim.w.shape
    sides = [np.arange(V) == rng.integers(V), rng.random(V) < 0.5, np.ones(V, dtype=bool)]
    for level, _ in claim.local._levels[1:]:
        sides.append(level.group == rng.integers(level.group.max() + 1))
    for side in sides:
        yield np.outer(side, np.eye(n)[rng.integers(n)] * rng.choice([-1.0, 1.0]))


def attack(problem: ct.Problem, tol: float, noise: float, seed: int) -> int:
    """Try to break all that is claimed around an answer whose duals are off by `noise`; how much was claimed."""
    rng = np.random.default_rng(seed)
    answer, best = solved(problem, tol), solved(problem, 1e-10).w
    u = answer.u + noise * problem.c[:, None] * rng.standard_normal(answer.u.shape)
    found = list(claims(problem, answer.w, u))
    for claim in found:
        at_w = exact_objective(problem, claim.w)
        ways = directions(problem, claim.rest.rho, best, claim.w, seed)
        zs = [best, *(z for step in ways for z in furthest(problem, claim, step))]
        never_broken(problem, claim, [z for z in zs if np.isfinite(z).all()], at_w)
    return len(found)


@settings(max_examples=30)
@given(problems(lam=st.sampled_from([1e-4, 1e-2, 0.3])), st.sampled_from([1e-9, 1e-3, 0.3]), st.integers(0, 99))
def test_moves_stay_in_their_sets(problem: ct.Problem, noise: float, seed: int) -> None:
    """Wherever P exceeds D by at most G + X, whether or not X is large enough to prove anything."""
    rng, answer = np.random.default_rng(seed), solved(problem, 1e-5)
    u = answer.u * (1 - noise * rng.random((len(answer.u), 1)))
    for local, rest, G in asked(problem, answer.w, u)[-1:]:
        at_w = exact_objective(problem, answer.w)
        for part in (0.1, 1e3):
            claim = Claim(local, rest, G, part * G)
            for step in uneven_directions(problem, claim, seed):
                for z in furthest(problem, claim, step):
                    if unshifted(claim, moves(claim, z)) and is_inside(problem, claim, z, at_w):
                        stay_in_their_sets(problem, claim, z)


NOISE, TOL = st.sampled_from([0.0, 1e-9, 1e-4, 0.03]), st.sampled_from([1e-2, 1e-5, 1e-9])


@settings(max_examples=20)
@given(problems(lam=st.sampled_from([1e-4, 1e-2, 0.3])), TOL, NOISE, st.integers(0, 99))
def test_on_any_problem(problem: ct.Problem, tol: float, noise: float, seed: int) -> None:
    attack(problem, tol, noise, seed)


@pytest.mark.slow
@settings(max_examples=20)
@given(ugly_problems(), TOL, NOISE, st.integers(0, 99))
def test_on_ugly_data(problem: ct.Problem, tol: float, noise: float, seed: int) -> None:
    attack(problem, tol, noise, seed)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_something_is_claimed(loss: ct.Loss, penalty: ct.Penalty) -> None:
    """On ordinary problems; on some only if all nodes have labels, as edges without slack hold no others."""
    some, every = (instance(kind, loss, penalty) for kind in ("few labelled", "all labelled"))
    assert any(attack(problem, 1e-5, noise, 0) for problem in (some, every) for noise in (1e-6, 1e-9))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "noise", "penalty"), in_pairs([1.0, 10.0, 40.0, 300.0], [0.0, 1e-12, 1e-6, 1e-2], EVERY_PENALTY), ids=str
)
def test_classes_that_can_be_separated(size: float, noise: float, penalty: ct.Penalty) -> None:
    """P falls to 0 and never gets there: nothing that is claimed keeps larger weights from being better."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([1.0, 2.0, -1.0], 2) + 0.1 * rng.random(6), rng.standard_normal(6)])
    data = ct.LocalDatasets.from_rows(X, (X[:, 0] > 0).astype(float), np.repeat([0, 1, 3], 2), n_nodes=4)
    graph = ct.EmpiricalGraph.from_edges([[0, 1], [1, 2], [2, 3]])
    problem = ct.Problem(graph, data, ct.Logistic(), penalty, 0.1)
    w = np.tile([size, 0.0], (4, 1))
    further = [(1 + 10.0**k) * w for k in range(-12, 4)]
    reachable = exact_objective(problem, 1e3 * w)
    u = noise * rng.standard_normal((3, 2))
    for claim in claims(problem, w, u):
        never_broken(problem, claim, further, exact_objective(problem, w))
    proof = ct.certify(problem, w, u)
    assert not proof.unconditional or at_most(Fraction(proof.dual_bound), reachable)


@pytest.mark.parametrize(("flow", "held"), [(0.0, True), (1.0, False)])
def test_part_of_a_component_cannot_be_shifted_alone(flow: float, held: bool) -> None:
    """A column of zeros: two nodes may have any weight there, the same one; an edge without slack does not say so."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [2.0, 0.0]], [1.0, 2.0], [0, 1])
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, lam=1.0)
    design, w, u = problem.f.design, np.ones((2, 2)), np.array([[0.0, flow]])
    assert design is not None
    local = Locality(problem.bound, design, w, u, None, design.slopes(w), Enclosure(problem.bound).free_weights())
    rho = np.array([[0.0, 1e-9], [0.0, -1e-9]])
    assert local.free.tolist() == [[False, True], [False, False]]
    assert local.holds(Rest(rho, 0 * rho, w), 1e-3, 1e-3) == held


@pytest.mark.parametrize("alpha", [0.1, 3.0])
@pytest.mark.parametrize("part", [1e-4, 10.0])
def test_the_ground_of_a_lasso(alpha: float, part: float) -> None:
    """A weight that no row sees, at .001: it can move to (G + X)/alpha on the other side, and no further."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0]], [1.0], [0])
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), data, ct.Lasso(alpha, unpenalised=(0,)))
    design, w, zero = problem.f.design, np.array([[1.0, 1e-3]]), np.zeros((1, 2))
    assert design is not None
    local = Locality(problem.bound, design, w, np.zeros((0, 2)), zero, design.slopes(w), zero > 0)
    G = float(np.nextafter(problem.objective(w), 1))
    level, X = local._levels[0][0], part * G
    furthest_move = (Fraction(G) + Fraction(X)) / Fraction(alpha) + Fraction(1e-3)
    assert furthest_move <= Fraction(float(local._caps(level, G, X)[0, 1])) <= furthest_move * Fraction(1 + 1e-8)
    stay_in_their_sets(problem, Claim(local, Rest(zero, zero, w), G, X), np.array([[1.0, 1e-3 - float(furthest_move)]]))


class Never:
    """Counts how often it is asked."""

    asked = 0

    def holds(self, *_: Any) -> bool:
        self.asked += 1
        return False


@pytest.mark.parametrize("G", [0.0, 5e-324, 2.0**-900, 1e-9, 1.0, np.inf, np.nan])
@pytest.mark.parametrize("most", [0.0, 1e-300, 1.0, 1e300, np.inf])
def test_a_search_ends(G: float, most: float) -> None:
    never = Never()
    assert lowest_that_holds(never, Rest(*np.zeros((3, 1, 1))), G, most) is None  # type: ignore[arg-type]
    assert never.asked <= 30


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.sampled_from([1.0, 30.0, 700.0]), st.sampled_from([1e-3, 1.0, 1e9]))
def test_an_objective_is_at_most_what_is_taken_for_it(seed: int, margin: float, offset: float) -> None:
    """Also where all rows are far on the right side, and where margins are small differences of large numbers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([offset + rng.random(4), np.full(4, offset)])
    for loss in (ct.Logistic(), ct.SquaredError(), ct.Lasso(0.1)):
        w = margin * rng.standard_normal((2, 2)) * [[1.0, 1.0]]
        w[:, 1] = -w[:, 0] * (1 + 1e-3 * rng.random(2))
        z = (X * w[[0, 0, 1, 1]]).sum(axis=1)
        y = (z > 0).astype(float) if isinstance(loss, ct.Logistic) else z
        data = ct.LocalDatasets.from_rows(X, y, [0, 0, 1, 1])
        problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, loss, lam=1e-12)
        most = CloserLook(ArrayProver(problem.bound), None).at_most(w, problem.objective(w))
        assert at_most(exact_objective(problem, w), Fraction(most))
