"""Numbers and models in words."""

from __future__ import annotations

import inspect
import math
import re
from typing import TYPE_CHECKING, Any

from coterie.estimators.column_strength import strengths_of
from coterie.estimators.variants import OF_GRAPHS
from coterie.problem import EmpiricalGraph
from coterie.problem.ids import Pairs
from coterie.problem.losses.measure import Measure
from coterie.problem.penalties import GroupTotalVariation, SquaredVariation, TotalVariation
from coterie.solver import Solution, Status

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.lam_choice import LamChoice

AS_GOOD_AS_ZERO, LARGE = 1e-15, 0.1  # relative gaps that are as good as zero, or say little
MOST_SITES = 10  # named one by one
MOST_STRENGTHS = 10
OWN, COSTS = ("delta", "quantile", "alpha"), ("ridge", "l1")  # parameters that only some estimators have
GRAPH_WORDS = {"n_neighbours": "neighbours of each node", "threshold": "median distances at most between neighbours"}
FEDERATION = {"sites", "rounds", "held", "complaints", "privacy"}  # keys of the note of a federation
PENALTIES = {
    ("l1", TotalVariation()): "ℓ1 total variation: every coefficient has clusters of its own",
    ("l2", GroupTotalVariation()): "ℓ2 total variation: all coefficients have the same clusters",
    ("squared", SquaredVariation()): "squared variation: weights vary gradually, without clusters",
}


WEIGHED_ANEW = {
    "adaptive": "; in a second fit, with less weight on edges across which a first one found a difference",
    "learn_graph": "; on weights of edges that were learnt in turns with the models",
}


def short(number: float, digits: int = 2) -> str:
    """Write a number with few digits: 3e-7 rather than 3e-07, −2 with a true minus."""
    text = re.sub(r"e([+-])0*", lambda m: "e" + m[1].replace("+", ""), f"{number:.{digits}g}")
    return re.sub(r"^-", "−", text)


def at_most(number: float) -> str:
    """Write a positive number with one digit, rounded up: what is said to be within it, is."""
    unit = 10.0 ** math.floor(math.log10(number))
    return short(math.ceil(number / unit * (1 - 1e-12)) * unit, 1)


def called(name: Any) -> str:
    """The id of a node as readers see it; of a place at a time, both."""
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def network_of(graph: EmpiricalGraph) -> str:
    """How many nodes and edges a graph has."""
    size, pairs = f"{plural(graph.n_nodes, 'node')}, {plural(graph.n_edges, 'edge')}", graph.ids
    if not isinstance(pairs, Pairs):
        return size
    return f"{plural(len(pairs.first), 'place')} at {plural(len(pairs.second), 'time')}: {size}"


def plural(count: int, thing: str) -> str:
    """Write how many: 1 node, 12,000 nodes."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def some(names: list[str], most: int) -> str:
    """List the first of many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def kind_of(model: NetworkedModel) -> str:
    """What a model is, as people say it: networked linear regression."""
    words = re.findall(r"[A-Z][a-z]+", type(model).__name__)
    return (
        " ".join(word.lower() for word in words)
        .replace("lasso", "Lasso")
        .replace("poisson", "Poisson")
        .replace("huber", "Huber")
    )


def measure_of(model: NetworkedModel) -> Measure:
    """What a model calls an error."""
    return model._loss(()).measure


def score_in_words(measure: Measure, score: float) -> str:
    """How good predictions are, without a unit."""
    return f"{measure.score} {score:.1%}" if measure.of_classes else f"{measure.score} {short(score, 3)}"


def target_of(model: NetworkedModel) -> str | None:
    """What is predicted, where its name is known."""
    return getattr(model, "target_name_", None)


FLATTERED = "The same folds chose the strengths of columns, so that this error is somewhat too small."


def unit_of(model: NetworkedModel) -> str | None:
    """What errors are in units of; log-losses and deviances have none."""
    return target_of(model) if measure_of(model).has_unit else None


def held_out_in_words(model: NetworkedModel) -> list[str]:
    """How well held-out labels are predicted, in one line; none where that is not known."""
    if (found := getattr(model, "held_out_", None)) is None:
        return []
    measure = measure_of(model)
    held = "labels" if found.over == "given" else found.over
    sure = f" ± {short(found.standard_error)}" if found.n_folds > 1 else ""
    unit = "" if unit_of(model) is None else f" in units of {unit_of(model)}"
    folds = plural(found.n_folds, "fold") if found.n_folds > 1 else "one split"
    score = "" if found.score is None else f", {score_in_words(measure, found.score)}"
    below = "" if found.coverage is None else f", {found.coverage:.1%} of labels below"
    said = f"Error on held-out {held}: {measure.name} {short(found.error, 3)}{sure}{unit}{score}{below} ({folds})."
    return [said, *([FLATTERED] if getattr(model, "refine_strength", False) else [])]


def own_parameters(model: NetworkedModel) -> dict[str, Any]:
    """What a model has of its own, as JSON can hold it: parameters of its loss, what coefficients cost by themselves,
    their bounds, and what was chosen of a graph that rows make.
    """
    given = {name: getattr(model, name) for name in (*OWN, *COSTS) if hasattr(model, name)}
    given |= model.bounds_by_feature
    return given | {name.rstrip("_"): getattr(model, name) for name in OF_GRAPHS if hasattr(model, name)}


def own_of(model: NetworkedModel) -> str:
    """The same in words, but what coefficients cost by default, and the column of an exposure; with a comma."""
    own, usual = own_parameters(model), inspect.signature(type(model)).parameters
    named = [
        name for name in own if name in OWN or (name in COSTS and name in usual and own[name] != usual[name].default)
    ]
    said = [f"{name} {short(own[name], 4)}" for name in named]
    lower = {k: v for k, v in own.get("lower", {}).items() if not (model.positive and v == 0)}
    limits = [f"{k} ≥ {short(v, 4)}" for k, v in lower.items()]
    limits += [f"{k} ≤ {short(v, 4)}" for k, v in own.get("upper", {}).items()]
    said += ["coefficients ≥ 0"] if model.positive else []
    said += [some(limits, MOST_STRENGTHS)] if limits else []
    said += [f"{short(own[name], 4)} {words}" for name, words in GRAPH_WORDS.items() if name in own]
    if model.offset_ is not None:
        kind, column = model.offset_
        said.append(kind if column is None else f"{kind} in the column {column}")
    return "".join(f", {one}" for one in said)


def penalty_of(model: NetworkedModel) -> str:
    """The penalty in words, with strengths of columns that are not one, or that folds chose, and what weighs edges."""
    words = next((text for names, text in PENALTIES.items() if model.penalty in names), repr(model.penalty))
    strengths = [f"{name} {strength_in_words(value)}" for name, value in strengths_of(model).items()]
    shared = "; beside neighbours, a component that all nodes share" if model.shared else ""
    chosen = " as the folds chose" if getattr(model, "refine_strength", False) else ""
    relative = f"; relative to λ{chosen}, {some(strengths, MOST_STRENGTHS)}" if strengths else ""
    return words + relative + shared + next((text for name, text in WEIGHED_ANEW.items() if getattr(model, name)), "")


def clusters_asked_of(model: NetworkedModel) -> str:
    """What λ was found by, where so many clusters were asked for; empty otherwise."""
    k = model.n_clusters if model.graph_.n_nodes > 1 else None
    return "" if k is None else f", found by n_clusters={k}"


def strength_in_words(strength: float) -> str:
    """How much a coefficient's differences count."""
    if strength == math.inf:
        return "∞ (one coefficient for all)"
    return "0 (every node for itself)" if strength == 0 else short(strength, 3)


def changed_by(model: NetworkedModel) -> str:
    """What coefficients change: what is predicted, its logarithm, or log-odds."""
    if (classes := getattr(model, "classes_", None)) is not None:
        return "the logarithm of the odds" if len(classes) == 2 else "the score of the class"
    return "the prediction" if model._scales_labels else "the logarithm of the expected count"


def weighting_of(model: NetworkedModel) -> str:
    """What counts alike."""
    return "every row counts alike" if model.weight_by == "rows" else "every node counts alike, whatever its rows"


def labels_of(model: NetworkedModel) -> str:
    """How many rows have labels, and at how many nodes."""
    if not labels_known(model):
        return "only its sites know which rows have labels"
    nodes = plural(int((model.n_labelled_ > 0).sum()), "node")
    return f"{plural(int(model.n_labelled_.sum()), 'labelled row')} at {nodes}"


def labels_known(model: NetworkedModel) -> bool:
    """Whether it is known which nodes have labels; those of a federation stay at its sites."""
    return bool((model.n_labelled_ >= 0).all())


def counted(count: int) -> str:
    """Write a count; one that is not known is negative."""
    return f"{count:,}" if count >= 0 else "–"


def federation_of(model: NetworkedModel) -> list[str]:
    """Where a federated model comes from, in sentences; none for other models."""
    note = (getattr(model, "notes_", None) or {}).get("federation")
    if not (isinstance(note, dict) and note.keys() >= FEDERATION):
        return []
    sites = f"{plural(len(note['sites']), 'site')} ({some(note['sites'], MOST_SITES)})"
    said = [
        f"The model comes from a federation of {sites} in {plural(note['rounds'], 'round')}. Edges are those between "
        "sites; edges inside a site stay there, so nodes of one site with equal weights count as one cluster."
    ]
    if note["held"]:
        held = some(note["held"], MOST_SITES)
        said.append(f"The last weights of {held} were kept, as they went away or were set aside.")
    said += [f"Set aside: {complaint}." for complaint in note["complaints"]]
    if (privacy := note["privacy"]) is not None:
        budget = f"ε = {short(privacy['epsilon'], 3)} for δ = {short(privacy['delta'])}"
        said.append(f"Differential privacy of {budget} protects {privacy['protects']}.")
    return said


def refit_in_words(model: NetworkedModel) -> list[str]:
    """What was refitted, and what the certificate is then of."""
    if model._refit is None:
        return []
    return ["The weights are refitted on these clusters; the certificate is that of the penalised fit that found them."]


def information_in_words(model: NetworkedModel) -> list[str]:
    """Effective parameters, and AICc and BIC where there are any, in one sentence; none where they are not known."""
    found = model._known_information()
    if found is None or math.isnan(found.effective_parameters):
        return []
    used = f"{short(found.effective_parameters, 4)} of {plural(round(found.n_rows), 'row')}"
    if math.isnan(found.deviance):
        return [f"Effective parameters: {used}."]
    return [f"Effective parameters: {used}; AICc {short(found.aicc, 6)}, BIC {short(found.bic, 6)}."]


def smallest_error(choice: LamChoice) -> str:
    """The error that the choice of λ rests on, with its standard error."""
    return f"smallest error {short(choice.mean[choice.best], 4)} ± {short(choice.standard_error[choice.best])}"


def verdict(solution: Solution) -> str:
    """The certificate in one line."""
    if not math.isfinite(solution.gap):
        return "Nothing is known about how close to the best possible this is."
    distance = "equal to the best possible, to rounding"
    if solution.gap > AS_GOOD_AS_ZERO:
        distance = f"within {at_most(solution.gap)} of the best possible"
    if solution.gap > LARGE:
        distance = f"the relative gap of {short(solution.gap)} says little yet"
    if solution.status is Status.OPTIMAL:
        return distance[0].upper() + distance[1:] + "."
    if solution.status is Status.CONDITIONAL:
        return f"{distance[0].upper() + distance[1:]}, under a condition that is not proven."
    return f"Not converged: {distance}."


def explanation(solution: Solution, tol: float) -> list[str]:
    """The certificate in sentences."""
    digits = min(3 - math.floor(math.log10(solution.gap)), 15) if AS_GOOD_AS_ZERO < solution.gap < 1e-6 else 8
    objective, bound = short(solution.objective, digits), short(solution.dual_bound, digits)
    took = f"It took {plural(solution.n_iter, 'iteration')} and {short(solution.seconds)} s."
    if math.isnan(solution.objective) and solution.condition:
        return [f"{solution.condition[:1].upper()}{solution.condition[1:]}.", took]
    sentences = []
    if solution.status is not Status.OPTIMAL:
        sentences.append(f"{solution.status.value} A relative gap of {short(tol)} was asked for.")
    if math.isfinite(solution.gap):
        sentences.append(
            f"The objective is {objective}, and no weights whatever can bring it below {bound}: "
            f"a relative gap of {short(solution.gap)}."
        )
        sentences.append(
            "This bound is proven."
            if solution.unconditional
            else f"This bound is conditional: it holds if {solution.condition}."
        )
    else:
        sentences.append(f"The objective is {objective}; no lower bound on it was found.")
    return [*sentences, took]
