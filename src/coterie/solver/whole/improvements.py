"""Better points than the iteration's, by methods that want the whole network as arrays."""

from __future__ import annotations

from coterie.engines.arrays import ArrayProver
from coterie.problem.arrays import Array
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.whole import contraction, merged, polish
from coterie.solver.whole.newton import newton_point

WORTH = 1.5  # times the cost of polishing must have gone into iterations since the last time
FEW, SETTLED = 64, 0.02  # clusters that are always polished; the change, relatively, up to which more of them are
KINKS_SETTLED = 0.15  # the same where losses have kinks: rounds of polishing change more, and iterations take longer


class Improvements:
    """Says which of these methods are worth their time, and keeps what they need to know for that."""

    def __init__(self, prover: ArrayProver) -> None:
        self.problem, self.enclosure = prover.problem, prover.enclosure
        self.polishes, self.n_clusters = polish.applies(self.problem), 0
        self.can_merge = merged.applies(self.problem)
        self.polish_after, self.polish_costs = 0.0, WORTH * polish.costs(self.problem)

    def begin_warm(self) -> None:
        """Begin with duals that are nearly right: iterations find better ones sooner than flows that are spread."""
        if polish.is_large(self.problem):
            self.polish_after = self.polish_costs

    def newton_point(self, w: Array, goal: float) -> tuple[Array, Array]:
        """Weights and duals after second-order steps from w, for an absolute gap of `goal`."""
        return newton_point(self.problem, w, goal, self.enclosure.free_weights())

    def contracts(self, clusters: DualClusters) -> bool:
        """Whether the problem on these clusters is a small one of its own kind."""
        return contraction.contracts(self.problem, clusters)

    def refined(self, clusters: DualClusters, tol: float) -> Array:
        """The weights that are best on these clusters."""
        return contraction.refine(self.problem, clusters, tol)

    def merges(self, clusters: DualClusters) -> bool:
        """Whether nodes have many weights, and few are left where those with the same clusters are one."""
        return self.can_merge and merged.are_few(self.problem, clusters)

    def merged(self, clusters: DualClusters, w: Array, u: Array) -> Array:
        """Weights that are better on these clusters."""
        return merged.refine(self.problem, clusters, w, u)

    def are_settled(self, clusters: DualClusters, n_iter: int) -> bool:
        """Whether polishing is worth its time: clusters are few, or change little, and iterations have cost as much."""
        K, before = clusters.total, self.n_clusters
        self.n_clusters = K
        smooth = self.problem.f.smooth
        few, settled = K <= FEW, abs(K - before) <= (SETTLED if smooth else KINKS_SETTLED) * K
        worth_it = (few or settled) and n_iter >= max(self.polish_after, 0 if few and smooth else self.polish_costs)
        if not (self.polishes and worth_it) or self.contracts(clusters):
            return False
        self.polish_after = n_iter + (self.polish_costs if smooth else max(self.polish_costs, n_iter))
        return True

    def polished(
        self, clusters: DualClusters, w: Array, u: Array, enough: polish.Enough
    ) -> tuple[Array, DualClusters | None]:
        """The optimum near w, if these clusters are nearly right, and the clusters it has; u is moved to prove it."""
        return polish.settle(self.problem, clusters, w, u, enough)
