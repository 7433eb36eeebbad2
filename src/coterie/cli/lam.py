"""--lam, and the options that find λ another way, or say how folds do."""

from __future__ import annotations

import typer

from coterie.cli.errors import BadInputError
from coterie.cli.options import PenaltyName, RuleName

CV = "cv"


def check_lam(
    context: typer.Context,
    lam: str,
    n_clusters: int | None,
    penalty: PenaltyName,
    *,
    shared: bool,
    refine_strength: bool,
    rule: RuleName | None,
) -> None:
    """Refuse two ways to find λ, clusters where there are none, and questions to folds that do not choose λ."""
    if n_clusters is not None:
        if getattr(context.get_parameter_source("lam"), "name", None) == "COMMANDLINE":
            raise BadInputError(f"--n-clusters {n_clusters} finds λ itself; leave out --lam {lam}")
        if penalty is PenaltyName.squared:
            raise BadInputError("--n-clusters needs clusters, which --penalty squared does not make; use l1 or l2")
        if shared:
            raise BadInputError("--n-clusters counts clusters, and --shared joins all nodes; leave one of them out")
    elif lam == CV:
        return
    instead = f"--lam {lam}" if n_clusters is None else "--n-clusters"
    if refine_strength:
        raise BadInputError(f"--refine-strength lets folds choose, as --lam cv does; it does not go with {instead}")
    if rule is not None:
        raise BadInputError(f"--rule says which λ folds choose, as --lam cv does; it does not go with {instead}")


def check_second_fit(lam: str, *, adaptive: bool, learn_graph: bool, shared: bool) -> None:
    """Refuse what does not go with edges that are weighed anew."""
    from coterie.estimators.criterion import CRITERIA

    option = "--adaptive" if adaptive else "--learn-graph"
    if adaptive and learn_graph:
        raise BadInputError("--adaptive and --learn-graph are two ways to weigh edges anew; give one of them")
    if (adaptive or learn_graph) and shared:
        raise BadInputError(f"{option} does not go with --shared, whose edges to all nodes it would weigh anew")
    if (adaptive or learn_graph) and lam in CRITERIA:
        raise BadInputError(f"{option} does not go with --lam {lam}, which would not see weights learnt; use --lam cv")
