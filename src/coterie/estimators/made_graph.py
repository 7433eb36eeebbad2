"""Graphs that a fit makes: of the rows, or with weights of edges that a first fit leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from coterie.estimators.adaptive import adapted
from coterie.estimators.fold_paths import Remade
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.learnt_graph import learnt
from coterie.estimators.variants import CHOSEN, one_after_the_other, recipe_of, varies
from coterie.graphs.similarity_recipe import choices, joined
from coterie.problem import Problem

Reweights = Callable[..., Problem]
"""From a problem, λ and options of `solve` to the problem with other weights of edges."""


@dataclass(frozen=True)
class SecondFit:
    """Says of which problem a second fit is: that of the first one, which `made` makes, with other weights of edges."""

    made: Remade | None
    reweights: Reweights
    options: dict[str, Any]

    def after(self, lam: float) -> Remade:
        """What makes the problem after a first fit at λ."""
        return one_after_the_other(self.made, partial(self.reweights, lam=lam, options=self.options))

    def in_folds(self, first: LamChoice, rule: str) -> list[Remade]:
        """The same for each fold, after a first fit at the λ that the other folds choose."""
        return [self.after(lam) for lam in first.lams_elsewhere(rule).tolist()]


class MakesGraph:
    """Says what makes the graph. Mixed into a networked model; the parameters are its own."""

    graph: Any
    shared: bool
    adaptive: bool = False
    learn_graph: bool = False

    @property
    def _reweights(self) -> Reweights | None:
        """What makes weights of edges for a second fit; None: there is one fit."""
        return adapted if self.adaptive else learnt if self.learn_graph else None

    def _made(self) -> Remade | None:
        """What makes the graph of the rows, with the k or threshold that was chosen; None: it is given."""
        recipe, chosen = recipe_of(self), CHOSEN[varies(self)]
        if recipe is None:
            return None
        if len(several := choices(recipe)) == 1:
            setattr(self, chosen, several[0])
        return partial(joined, recipe, value=getattr(self, chosen))

    def _check_graph(self) -> None:
        """Refuse what graphs that are made of rows, or weighed anew, do not go with."""
        recipe, second = recipe_of(self), "adaptive" if self.adaptive else "learn_graph"
        if self.adaptive and self.learn_graph:
            raise ValueError("adaptive=True and learn_graph=True are two ways to weigh edges; choose one")
        if self.shared and self._reweights is not None:
            raise ValueError(f"{second}=True goes without shared=True, whose edges to all nodes it would adapt")
        by_folds = getattr(self, "criterion", "cv") == "cv"
        if self._reweights is not None and not by_folds:
            raise ValueError(f'{second}=True chooses λ by folds, which learn the weights anew; use criterion="cv"')
        if recipe is None:
            return
        if self.shared:
            raise ValueError("shared=True needs a graph that is given; with SimilarityGraph leave it out")
        if not by_folds or getattr(self, "refine_strength", False):
            raise ValueError(
                "SimilarityGraph makes a graph for each fold, which refine_strength and criteria other than "
                '"cv" do not know; leave them out, or give the graph that ct.similarity_graph makes'
            )
        if len(several := choices(recipe)) > 1 and not hasattr(self, "n_lams"):
            name = "k" if recipe.threshold is None else "threshold"
            raise ValueError(f"{name}={several}: one of several is chosen by the estimators that end in CV; give one")

    def _check_new_nodes(self) -> None:
        """Refuse nodes that are added after the fit."""
        if self._reweights is not None:
            raise ValueError("the weights of new edges are not adapted; fit again, with the new nodes in the graph")
        if recipe_of(self) is not None:
            raise ValueError("the graph is made of the rows; fit again, with those of the new nodes")
