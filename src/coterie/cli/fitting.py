"""What coterie fit asks for, what travels with its model, and how it ends."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from coterie.cli.codes import ExitCode
from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError
from coterie.cli.lam import CV
from coterie.cli.network import split_names
from coterie.cli.options import LossName, OverName, PenaltyName

if TYPE_CHECKING:
    from coterie.cli.network import Knn, Network
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.by_ranks import Facts
    from coterie.io.formats import Table

NO_FEATURE = re.compile(r"id|.*[_ ]id|lat(itude)?|lon(gitude)?|lng", re.IGNORECASE)  # names of ids and coordinates
MOST_EDGES = 20_000  # up to here it is quickly told whether labels resolve clusters
KINDS = {
    LossName.squared: "LinearRegression",
    LossName.lasso: "Lasso",
    LossName.logistic: "LogisticRegression",
    LossName.poisson: "PoissonRegression",
    LossName.huber: "HuberRegression",
    LossName.quantile: "QuantileRegression",
}
OWN = {  # options that only some losses have
    "alpha": (LossName.lasso,),
    "l1": tuple(loss for loss in LossName if loss is not LossName.lasso),
    "class_weight": (LossName.logistic,),
    "delta": (LossName.huber,),
    "quantile": (LossName.quantile,),
    "offset": (LossName.poisson,),
    "exposure": (LossName.poisson,),
}


def left_out(
    data: Table, named: tuple[str, ...], features: list[str] | None, exclude: str | None, nearest: Knn | None
) -> list[str]:
    """Columns that are no features unless they are asked for: ids, coordinates, and what --exclude names."""
    from coterie.io.sources import sources

    if features is not None and exclude is not None:
        raise BadInputError("--exclude is for fits without --features; give one of them")
    places = [] if nearest is None else list(nearest.names)
    if features is not None:
        return places
    given = [] if exclude is None else split_names(exclude)
    guessed = [name for name in sources(data)[0].schema if NO_FEATURE.fullmatch(name) and name not in named]
    return list(dict.fromkeys([*places, *given, *guessed]))


def own_options(loss: LossName, **options: Any) -> dict[str, Any]:
    """The options of this loss that are given; one of another loss is refused."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if loss not in OWN.get(name, LossName):
            belongs = ", ".join(one.value for one in OWN[name])
            raise BadInputError(f"--{name.replace('_', '-')} belongs to --loss {belongs}, not to {loss.value}")
    if not 0 < given.get("delta", 1.0) < inf:
        raise BadInputError(f"--delta {given['delta']}: give a number above 0")
    if not 0 < given.get("quantile", 0.5) < 1:
        raise BadInputError(f"--quantile {given['quantile']}: give a number between 0 and 1")
    if "offset" in given and "exposure" in given:
        raise BadInputError("an exposure is an offset, its logarithm; give --offset or --exposure, not both")
    return given


def check_refit(loss: LossName, penalty: PenaltyName, lam: str, refit: bool, bounded: bool) -> None:
    """Refuse refits of what has no clusters, bounds or kinks, and criteria of losses that are no likelihood."""
    from coterie.estimators.criterion import CRITERIA

    if lam in CRITERIA and loss in (LossName.huber, LossName.quantile):
        raise BadInputError(f"--lam {lam} needs a likelihood, which --loss {loss.value} does not have; use --lam cv")
    if refit and penalty is PenaltyName.squared:
        raise BadInputError("--refit clusters needs clusters, which --penalty squared does not make; use l1 or l2")
    if refit and bounded:
        raise BadInputError("--refit clusters would not keep coefficients inside their bounds; leave one of them out")
    if refit and loss is LossName.quantile:
        raise BadInputError("--refit clusters is for losses without kinks, which --loss quantile has")


def new_model(
    loss: LossName, lam: str, n_clusters: int | None, own: dict[str, Any], choosing: dict[str, Any]
) -> NetworkedModel:
    """The estimator that the options ask for; λ is the one with so many clusters, if that is not None."""
    import coterie
    from coterie.estimators.criterion import CRITERIA

    strengths = {name: value for name, value in own.items() if name not in ("offset", "exposure")}
    estimator = f"Networked{KINDS[loss]}"
    if n_clusters is not None:
        return getattr(coterie, estimator)(n_clusters=n_clusters, **strengths)
    if lam in (CV, *CRITERIA):
        return getattr(coterie, f"{estimator}CV")(criterion=lam, **choosing, **strengths)
    try:
        value = float(lam)
    except ValueError:
        value = nan
    if not 0 <= value < inf:
        raise BadInputError(f"--lam {lam}: give a number that is not negative, or cv, aicc or bic")
    return getattr(coterie, estimator)(lam=value, **strengths)


def checked_engine(name: str) -> str:
    """The name of an engine; any other is refused."""
    from coterie.solver.solve import check_engine

    try:
        check_engine(name)
    except ValueError as error:
        raise BadInputError(f"--engine: {error}") from None
    return name


def notes_of(context: typer.Context, data: Table, network: Network | None, seed: int) -> dict[str, Any]:
    """What travels with the model; docs/report.md lists the keys."""
    from coterie.io.sources import data_files, sha256_of
    from coterie.io.tables import count_rows

    return {
        "command": shlex.join(["coterie", *(context.obj or [])]),
        "seed": seed,
        "data": {"files": list(map(str, data_files(data))), "rows": count_rows(data), "sha256": sha256_of(data)},
        "coordinates": None if network is None else network.coordinates,
    }


@contextmanager
def without_convergence_warnings(quiet: bool) -> Iterator[None]:
    """How a fit ended is said at the end, but not whether weights of edges have settled."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not quiet:
            warnings.filterwarnings("default", "learn_graph: ", ConvergenceWarning)
        yield


def assess_into(
    notes: dict[str, Any],
    model: NetworkedModel,
    condensed: bool,
    tell: Callable[[str, float | None], None],
    say: Callable[[str], None],
    **how: Any,
) -> bool:
    """Note whether labels resolve the clusters, and how good predictions are; False if Ctrl-C ended that."""
    from coterie.estimators.assessment import assess

    try:
        tell("whether labels resolve the clusters", None)
        notes |= resolvability_of(model)
        found = assess(model, condensed=condensed, **how)
        notes |= {} if found is None else {"baselines": found.to_dict()}
    except ValueError as error:
        hint = "; --over nodes holds out nodes" if condensed and how["over"] != OverName.nodes else ""
        say(f"it is not known how good predictions are: {error}{hint}")
    except KeyboardInterrupt:
        return False
    return True


def resolvability_of(model: NetworkedModel) -> dict[str, Any]:
    """Whether the labels resolve the clusters found, where there are clusters and this is quickly told."""
    from coterie.graphs import resolvability
    from coterie.report.text import called

    if model.penalty == "squared" or model.graph_.n_edges > MOST_EDGES:
        return {}
    found = resolvability(model.graph_, model.n_labelled_ > 0, model.clusters_)
    next_ = [one.next_label for one in found]
    names = [called(name) if isinstance(name, tuple) else name for name in next_]  # of places at times
    return {"resolvability": found.to_dict() | {"next_label": names}}


def end(
    model: NetworkedModel,
    notes: dict[str, Any],
    out: Path,
    interrupted: bool,
    json: bool,
    quiet: bool,
    facts: Facts | None = None,
) -> None:
    """Say what came out, and with which code the command ends. `facts`: of a model that ranks fitted, see there."""
    from coterie.cli.describe import as_object, in_words
    from coterie.cli.screen import say, show_json
    from coterie.solver import Status

    ends = {Status.OPTIMAL: ExitCode.DONE, Status.CONDITIONAL: ExitCode.CONDITIONAL}
    code = ExitCode.INTERRUPTED if interrupted else ends.get(model.solution_.status, ExitCode.NOT_CONVERGED)
    if json:
        show_json(
            {**as_object(model, facts), "baselines": notes.get("baselines"), "model": str(out), "exit_code": int(code)}
        )
    elif not quiet:
        echo("\n".join([*in_words(model, notes, facts), f"Model written to {out}"]))
    if interrupted:
        say(f"interrupted; the best model so far is in {out}, with a gap of {model.gap_:.1e}", quiet)
    elif code is ExitCode.CONDITIONAL:
        say(
            f"not proven: the gap of {model.gap_:.1e} holds if {model.solution_.condition}; the model is in {out}",
            quiet,
        )
    elif code is not ExitCode.DONE:
        say(f"not converged: the gap is {model.gap_:.1e}, asked for was {model.tol:.1e}; the model is in {out}", quiet)
    raise typer.Exit(code)
