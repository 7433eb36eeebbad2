"""Ellipsoids that hold the weights of a minimiser, one for each group of nodes, proven from their rows.

Nodes of a group are within R of each other in every coordinate, and their losses add up to Δ at most, so one v near
them all has F(v) = Σ L_i(v) ≤ T. In coordinates v = v₀ + Ct whose Gram matrix is within φ of the identity (`Pool`),

    squared error:  F(v) ≥ F(v₀) − ‖ĝ‖‖t‖ + ½(1 − φ)‖t‖²,
    |ψ‴| ≤ ψ″:      F(v) ≥ F(v₀) + ‖t‖ [(1 − φ)(e^−τ + τ − 1)/(κτ) − ‖ĝ‖]   wherever ‖t‖ ≥ τ/κ, for any τ > 0,
    ψ″ steady:      F(v) ≥ F(v₀) + ‖t‖ [(1 − φ)τ/(2κ) − ‖ĝ‖]   wherever ‖t‖ ≥ τ/κ, for τ ≤ steady,
    ψ ≥ c|e| − d:   the first of these, of Σ s²e² ≤ ((T + d Σ s)/c)²,

with ĝ = Cᵀ∇F(v₀) and κ = max ‖Cᵀx_r‖. Both bound ‖t‖. See docs/certificate.md for the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.kernels.interruption import TimeUp
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.problem.losses.pooling import Coordinates, Pool, one_model, separating
from coterie.problem.losses.psi import SQUARED
from coterie.problem.reuse import reused
from coterie.proofs.null_directions import independent_columns, null_columns

kernels = Either("gram")

WIDER = 1 + 1e-9  # for the rounding of what is computed here
WIDE = 100  # columns, from which on those with a ridge are left to their caps where rows are few
FAR = 1.0  # margins further from v₀ than this do not count with more than the slope there, where ψ has no steepest one
TAUS = np.concatenate([4.0 ** np.arange(-12, 0), [0.5, 1.0, 2.0, 4.0, 8.0]])  # small ones for small T: see decision 16


@dataclass(frozen=True, eq=False)
class Ellipsoids:
    """What is known of every group before any objective is.

    Attributes
    ----------
    design : Design
    v0, C : arrays of shape (G, n) and (G, n, k)
        k columns are free in some group; coordinates are one for each.
    error, longest, slope, least : arrays of shape (G,)
        φ, κ, and bounds on ‖ĝ‖ (from above) and F(v₀) (from below).
    capped : array of shape (G, n)
        Columns that C leaves out because the penalty of the loss bounds their weights.
    resolved : array of shape (G,)
        Where ‖t‖ is bounded at all.
    off : (squares, sums) of shape (G,) each
        What R = 1 costs (`kernels.gram.stretch`), with ridge among the squares.
    ridged : array of shape (G,)
        Ridge of all nodes and free columns together.
    pull : array of shape (N,)
        Factors of rows, times how steep ψ can be as far as margins matter.
    groups : array of shape (|M|,)
    apart : bool
        Whether v₀ separates the classes of every group: then there is no minimiser.
    distance : array of shape (n,), or None
        Nodes of a group are within R times this of each other; None: within R.
    """

    design: Design
    v0: Array
    C: Array
    error: Array
    longest: Array
    slope: Array
    least: Array
    capped: NDArray[np.bool_]
    resolved: NDArray[np.bool_]
    off: tuple[Array, Array]
    ridged: Array
    pull: Array
    groups: NDArray[np.int64]
    apart: bool = False
    distance: Array | None = None

    @classmethod
    def of(
        cls,
        design: Design,
        groups: NDArray[np.int64],
        n_groups: int,
        cappable: NDArray[np.bool_],
        shift: bool,
        distance: Array | None = None,
    ) -> Ellipsoids:
        """Look for ellipsoids over all columns; where the data leave some open, over those that are not capped.

        With `shift`, moving all weights of a group together costs nothing but loss, so that directions
        that no row sees can be fixed at zero. When time is up, nothing is known.
        """
        try:
            found = reused(cls._found, design, groups, n_groups, cappable, shift)
        except TimeUp:
            return cls.unknown(design, groups, n_groups)
        return found if distance is None else found._at(distance)

    def _at(self, distance: Array) -> Ellipsoids:
        """The same for nodes that are within R times `distance` of each other."""
        off = stretched(self.design, self.pull, self.groups, np.broadcast_to(distance, self.v0.shape).copy())
        ridged = np.bincount(self.groups, minlength=len(self.v0)) * float(self.design.ridge @ distance**2)
        return replace(self, off=off, ridged=ridged, distance=distance)

    @classmethod
    def unknown(cls, design: Design, groups: NDArray[np.int64], n_groups: int) -> Ellipsoids:
        """Weights can be anywhere."""
        shape = n_groups, design.X.shape[1]
        v0, C, capped = np.zeros(shape), np.zeros((*shape, 1)), np.zeros(shape, dtype=bool)
        none, everywhere, resolved = np.zeros(n_groups), np.full(n_groups, np.inf), np.zeros(n_groups, dtype=bool)
        sizes = everywhere, none, everywhere, none
        return cls(design, v0, C, *sizes, capped, resolved, (none, none), none, design.s, groups)

    @classmethod
    def _found(
        cls, design: Design, groups: NDArray[np.int64], n_groups: int, cappable: NDArray[np.bool_], shift: bool
    ) -> Ellipsoids:
        n = design.X.shape[1]
        if not design.psi.encloses:
            return cls.unknown(design, groups, n_groups)
        if design.psi.rise is not None:
            inner = Design(SQUARED, design.X, design.y, design.s**2, design.starts, np.zeros(n))
            found = cls._found(inner, groups, n_groups, cappable, shift)
            pull = design.psi.lipschitz * design.s
            off = stretched(design, pull, groups, np.ones((n_groups, n)))
            return replace(found, design=design, pull=pull, off=off)
        columns, capped = np.ones((n_groups, n), dtype=bool), np.zeros((n_groups, n), dtype=bool)
        rows = np.bincount(groups, np.diff(design.starts), minlength=n_groups)
        short = rows + (design.ridge > 0).sum() < n  # nobody has to look whether they see all columns
        if n > WIDE and cappable.any():
            short |= 2 * rows <= n  # ridge would see the rest, at the cost of n × n numbers
        open_ended = np.zeros_like(short) if shift or cappable.any() else short
        if open_ended.all():
            return cls.unknown(design, groups, n_groups)
        columns[open_ended] = False
        apart = separating(design, groups, n_groups)
        if apart is not None:
            return replace(cls.unknown(design, groups, n_groups), v0=apart, apart=True)
        if cappable.any():
            columns[short], capped[short] = ~cappable, cappable
        elif shift:
            for g in np.flatnonzero(short):
                columns[g] = independent_columns(design, groups == g)

        def look() -> tuple[NDArray[np.int64], Pool, Array, Coordinates, NDArray[np.bool_]]:
            used = np.flatnonzero(columns.any(axis=0)) if columns.any() else np.zeros(1, dtype=np.int64)
            pool = Pool.of(design.of_columns(used), groups, n_groups, columns[:, used])
            whole = n_groups == 1 and len(used) == n and columns.all()
            v, at = one_model(design) if whole else pool.minimise()
            return used, pool, v, at, hidden(at, columns[:, used]) | open_ended

        used, pool, v, at, lost = look()
        if lost.any() and cappable.any():
            columns[lost], capped[lost] = ~cappable, cappable
            used, pool, v, at, lost = look()
        if lost.any() and shift:
            twice = np.zeros_like(lost)  # nobody has proven that those left span what had looked dependent before
            for g in np.flatnonzero(lost):
                null = null_columns(pool.design, groups == g, columns[g, used], at.C[g], at.weak[g])
                twice[g] = len(null) > 0 and not columns[g].all() and not cappable.any()
                columns[g, used[null]] = False
            used, pool, v, at, lost = look()
            lost |= twice
        design.pause()
        slope, rounding_bound = pool.slope(v, at.C)
        design.pause()
        full = _put_back(v, used, n)
        pull = pulls(design, full[groups])
        off = stretched(design, pull, groups, np.ones((n_groups, n)))
        ridged = np.bincount(groups, minlength=n_groups) * float(design.ridge.sum())
        return cls(
            design,
            full,
            _put_back(at.C, used, n),
            at.error,
            at.longest,
            (np.linalg.norm(slope, axis=1) + rounding_bound) * WIDER,
            pool.least(v) / WIDER,
            capped,
            ~lost,
            off,
            ridged,
            pull,
            groups,
        )

    @property
    def floors(self) -> Array:
        """What the losses of each group add up to at least, (G,), if all its nodes have the same weights."""
        if self.design.psi.rise is not None or not self.design.psi.encloses:
            return np.zeros(len(self.least))
        with np.errstate(all="ignore"):
            kept = (1 - self.error) / WIDER
            if self.design.is_squared:
                lost = self.slope**2 / (2 * kept)
            else:  # beyond τ/κ the loss is at least that of v₀, for any τ with growth; nearer, it falls by this at most
                taus = self._taus
                rises = kept * self._growth(taus) > self.slope * self.longest * WIDER
                lost = np.where(rises, self.slope * taus / self.longest, np.inf).min(axis=0)
            known = self.resolved & ~self.capped.any(axis=1)
            return np.where(known, np.maximum(self.least - lost * WIDER, 0.0), 0.0)

    def radius(self, level: Array, R: Array, caps: Array) -> Array:
        """The largest ‖t‖ of any minimiser, (G,), given what the losses of each group can be; infinite: unknown."""
        if not self.design.psi.encloses:
            return np.full(len(R), np.inf)
        T, rise = self._budget(level, R, caps), self.design.psi.rise
        if rise is not None:  # Σ s² e² is at most the square of Σ s|e|
            weight = np.bincount(np.repeat(self.groups, np.diff(self.design.starts)), self.design.s, minlength=len(R))
            T = ((T + rise[1] * weight) / rise[0]) ** 2 * WIDER
        T, kept = np.maximum(T - self.least, 0.0), (1 - self.error) / WIDER
        with np.errstate(all="ignore"):
            if self.design.is_squared or rise is not None:
                radius = (self.slope + np.sqrt(self.slope**2 + 2 * kept * T)) / kept
            else:
                taus = self._taus
                steep = kept * self._growth(taus) / (self.longest * WIDER) - self.slope
                found = np.where(steep > 0, np.maximum(taus / self.longest, T / steep), np.inf)
                radius = found.min(axis=0)
        return np.where(self.resolved & np.isfinite(radius), radius * WIDER, np.inf)

    @property
    def _taus(self) -> Array:
        """Lengths on which curvature is known, as a column: where `pull` is of ψ as it is up to FAR away, no longer."""
        psi = self.design.psi
        furthest = FAR if psi.lipschitz == np.inf else np.inf
        return TAUS[(furthest if psi.self_concordant else min(psi.steady, furthest)) >= TAUS][:, None]

    def _growth(self, taus: Array) -> Array:
        """τ/2 where curvature is steady; else (e^−τ + τ − 1)/τ.

        Where that would cancel, τ/2 − τ²/6, which is less (an alternating series).
        """
        if not self.design.psi.self_concordant:
            return taus / 2
        return np.where(taus < 0.1, taus / 2 - taus**2 / 6, (np.exp(-taus) + taus - 1) / taus)

    def _budget(self, level: Array, R: Array, caps: Array) -> Array:
        """What F(v) can be at most."""
        extra = np.zeros((2, len(R)))
        if self.capped.any():
            extra = np.array(stretched(self.design, self.pull, self.groups, np.where(self.capped, caps, 0.0)))
        if self.design.psi.rise is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                return (level + np.where(R > 0, R * self.off[1], 0.0) + extra[1]) * WIDER
        (squares, sums), part = self.off, self.design.psi.curvature / 2  # f ≥ 0 with f'' ≤ 2p: √f is no steeper than √p
        with np.errstate(invalid="ignore", over="ignore"):
            far = np.where(R > 0, R * np.sqrt(part * squares + self.ridged), 0.0)
            smooth = (np.sqrt(level) + far + np.sqrt(part * extra[0])) ** 2 * WIDER
            if self.design.is_squared:
                return smooth
            far = np.where(R > 0, R * np.sqrt(self.ridged), 0.0)
            steep = (level + np.where(R > 0, R * sums, 0.0) + extra[1] + (2 * np.sqrt(level) + far) * far) * WIDER
            return np.fmin(smooth, steep)

    def distances(self, R: Array) -> Array:
        """How far apart the nodes of each group can be in each coordinate, (G, n) or (G, 1)."""
        if self.distance is None:
            return R[:, None]
        with np.errstate(invalid="ignore"):  # tied columns do not differ, however far apart nodes can be
            return np.where(self.distance > 0, R[:, None] * self.distance, 0.0)

    def half_widths(self, radius: Array, caps: Array) -> Array:
        """By how much v can differ from v₀ in each coordinate, (G, n)."""
        with np.errstate(invalid="ignore", over="ignore"):
            spread = np.linalg.norm(self.C, axis=2)
            width = np.where(spread > 0, spread * radius[:, None], 0.0) * WIDER
        width = np.where(self.capped, caps, width)
        return np.where(np.isfinite(radius)[:, None], width, np.inf)


def hidden(at: Coordinates, columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Groups in which a direction of these columns is not seen, or cannot be told from rounding."""
    there = np.abs(at.C).max(axis=1) > 0
    return ~at.resolved | (columns & ~there).any(axis=1)


def _put_back(values: Array, used: NDArray[np.int64], n: int) -> Array:
    """Values (G, k, …) of some columns among zeros for the others, (G, n, …)."""
    out = np.zeros((len(values), n, *values.shape[2:]))
    out[:, used] = values
    return out


def pulls(design: Design, w: Array, a: Array | float = 0.0) -> Array:
    """s_r times |ψ'| at most, of a ψ that goes on as a straight line where margins are more than FAR from those at w.

    With a, that of s_r ψ less a linear function of this slope.
    """
    psi = design.psi
    if design.is_squared:
        return design.s
    if psi.lipschitz < np.inf:
        return design.s if psi.lipschitz == 1 else design.s * psi.lipschitz * WIDER
    with np.errstate(over="ignore", invalid="ignore"):
        steep = psi.steepest(design.tilts(design.slopes(w)[0]), design.y, FAR + design.misses(w))
        return (design.s * steep + np.abs(a)) * WIDER


def stretched(design: Design, pull: Array, groups: NDArray[np.int64], size: Array) -> tuple[Array, Array]:
    """What weights that are off by `size` (G, n) cost the rows of each group (`kernels.gram.stretch`).

    Squares have the factors of rows, sums those times slopes.
    """
    squares, sums = np.empty((2, len(size)))
    kernels.stretch(design.X, design.s, design.starts, groups, size, squares, sums)
    if pull is not design.s:
        kernels.stretch(design.X, pull, design.starts, groups, size, np.empty_like(sums), sums)
    return squares, sums
