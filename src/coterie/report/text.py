"""Numbers and models in words."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from coterie.problem.penalties import GroupTotalVariation, SquaredVariation, TotalVariation
from coterie.solver import Solution, Status

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.cross_validation import LamChoice

ROUNDING, LARGE = 1e-15, 0.1  # relative gaps that are as good as zero, or say little
PENALTIES = {
    ("l1", TotalVariation()): "ℓ1 total variation: every coefficient has clusters of its own",
    ("l2", GroupTotalVariation()): "ℓ2 total variation: all coefficients have the same clusters",
    ("squared", SquaredVariation()): "squared variation: weights vary gradually, without clusters",
}


def short(number: float, digits: int = 2) -> str:
    """Write a number with few digits: 3e-7 rather than 3e-07, −2 with a true minus."""
    text = re.sub(r"e([+-])0*", lambda m: "e" + m[1].replace("+", ""), f"{number:.{digits}g}")
    return re.sub(r"^-", "−", text)


def at_most(number: float) -> str:
    """Write a positive number with one digit, rounded up: what is said to be within it, is."""
    unit = 10.0 ** math.floor(math.log10(number))
    return short(math.ceil(number / unit * (1 - 1e-12)) * unit, 1)


def plural(count: int, thing: str) -> str:
    """Write how many: 1 node, 12,000 nodes."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def some(names: list[str], most: int) -> str:
    """List the first of many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def kind_of(model: NetworkedModel) -> str:
    """What a model is, as people say it: networked linear regression."""
    words = re.findall(r"[A-Z][a-z]+", type(model).__name__)
    return " ".join(word.lower() for word in words).replace("lasso", "Lasso")


def error_of(model: NetworkedModel) -> str:
    """What a model calls an error."""
    return "log-loss" if hasattr(model, "classes_") else "squared error"


def penalty_of(model: NetworkedModel) -> str:
    """The penalty in words."""
    return next((text for names, text in PENALTIES.items() if model.penalty in names), repr(model.penalty))


def weighting_of(model: NetworkedModel) -> str:
    """What counts alike."""
    return "every row counts alike" if model.weight_by == "rows" else "every node counts alike, whatever its rows"


def smallest_error(choice: LamChoice) -> str:
    """The error that the choice of λ rests on, with its standard error."""
    return f"smallest error {short(choice.mean[choice.best], 4)} ± {short(choice.standard_error[choice.best])}"


def verdict(solution: Solution) -> str:
    """The certificate in one line."""
    if not math.isfinite(solution.gap):
        return "Nothing is known about how close to the best possible this is."
    distance = "equal to the best possible, to rounding"
    if solution.gap > ROUNDING:
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
    digits = min(3 - math.floor(math.log10(solution.gap)), 15) if ROUNDING < solution.gap < 1e-6 else 8
    objective, bound = short(solution.objective, digits), short(solution.dual_bound, digits)
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
    sentences.append(f"It took {plural(solution.n_iter, 'iteration')} and {short(solution.seconds)} s.")
    return sentences
