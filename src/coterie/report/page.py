"""A fitted model as one page that opens from disk, with nothing to fetch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.io.files import MissingExtraError, write_whole
from coterie.report.coefficients import ClusterTable, coefficients_figure
from coterie.report.colours import channels, plain_channel, used_legend
from coterie.report.convergence import convergence_figure, gap_figure
from coterie.report.criterion import criterion_figure, smallest_in_words
from coterie.report.display_graph import MOST_COLUMNS, DisplayGraph
from coterie.report.held_out import Dots, held_out_figure
from coterie.report.interactive import plain, plotly, script_json
from coterie.report.map import MOST_EDGES, map_figure
from coterie.report.network import drawn_edges
from coterie.report.node_table import node_table
from coterie.report.notes import Notes
from coterie.report.over_time import OverTime, lines_figure, slice_figures
from coterie.report.summary import data_summary, model_summary, parameters, versions
from coterie.report.text import (
    called,
    changed_by,
    counted,
    explanation,
    federation_of,
    held_out_in_words,
    kind_of,
    labels_known,
    measure_of,
    plural,
    refit_in_words,
    score_in_words,
    short,
    smallest_error,
    some,
    target_of,
    unit_of,
    verdict,
)
from coterie.report.validation import close_to_best, comparison_figure, lam_choice_figure
from coterie.solver import Status

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.criterion import CriterionChoice

MOST_NAMES = 50  # undetermined nodes listed by name
MOST_LINES = 50  # rows of a table


def write_report(model: NetworkedModel, path: str | Path, *, criteria: bool = False) -> None:
    """Write a page with what was fitted, how good it is, and pictures: one HTML file that needs nothing else.

    The same model gives the same file, byte for byte.

    Parameters
    ----------
    model : NetworkedModel
        A fitted model, in memory or from :func:`coterie.load`. Its notes can add where the data came from,
        coordinates, baselines and more: see coterie.report.notes.
    path : str or Path
        The file to write; an old one is replaced in one step.
    criteria : bool, default=False
        Show AICc and BIC of every λ that folds have compared, beside their errors. A path of λ is solved for it, on
        all rows and to a smaller gap than those of folds. For models that have just been fitted, on a graph that is
        given, and losses with a likelihood.

    Raises
    ------
    ValueError
        If `criteria` are asked for that this model does not have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1)])
    >>> model = ct.NetworkedLinearRegression(graph).fit([[1.0], [2.0], [3.0]], [2.0, 4.0, 6.0], groups=[0, 0, 1])
    >>> page = Path(tempfile.mkdtemp()) / "report.html"
    >>> ct.write_report(model, page)
    >>> page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    write_whole(Path(path), render(model, criteria).encode("utf-8"))


def render(model: NetworkedModel, criteria: bool = False) -> str:
    """Return the page."""
    from coterie.estimators.criterion import criteria_beside_folds
    from coterie.estimators.export import column_names

    criterion = getattr(model, "criterion_choice_", None)
    if criteria and criterion is None:
        criterion = criteria_beside_folds(model)
    template, solution, notes, columns = _template(), model.solution_, Notes.of(model), column_names(model)
    drawn, table = DisplayGraph.of_model(model), ClusterTable.of(model)
    shown, figures = channels(drawn, columns), _figures(model, notes, drawn, table, columns, criterion)
    held_out, measure = getattr(model, "held_out_", None), measure_of(model)
    predictions, moments = None if held_out is None else Dots.of(held_out), OverTime.of(model) if drawn.time else None
    if moments is not None:
        figures |= slice_figures(moments, drawn, notes.coordinates) | {"lines": lines_figure(moments)}
    if predictions is not None:
        figures["predictions"] = held_out_figure(predictions)
    page = {
        "nodes": node_table(drawn, columns),
        "figures": {name: plain(figure) for name, figure in figures.items()},
        "channels": [plain_channel(channel) for channel in shown],
        "coefficients": [] if moments is None else moments.page(),
    }
    return template.render(
        title=_title(model),
        held_out=held_out,
        measure=measure,
        score=_score(model),
        unit=unit_of(model),
        quality=held_out_in_words(model),
        predictions=predictions,
        moments=moments,
        drawn=drawn,
        hidden=len(columns) > MOST_COLUMNS,
        n_coefficients=len(columns),
        model=model,
        solution=solution,
        converged=solution.status is Status.OPTIMAL,
        has_gap=not np.isnan(solution.gap),
        verdict=verdict(solution),
        explanation=[*explanation(solution, model.tol), *refit_in_words(model), *federation_of(model)],
        labels_known=labels_known(model),
        n_clusters=int(model.clusters_.max()) + 1,
        n_labelled_nodes=int((model.n_labelled_ > 0).sum()),
        model_summary=model_summary(model),
        data_summary=data_summary(model, notes),
        channels=[channel.name for channel in shown],
        legend=used_legend(shown[0]),
        has_undetermined=bool(len(solution.undetermined)),
        about_map=_about_map(drawn, notes, len(columns) > MOST_COLUMNS),
        has_cut=len(drawn_edges(drawn.graph, drawn.w, MOST_EDGES)[1]) > 0,
        on_map=notes.coordinates is not None,
        table=table,
        lines=_lines(table),
        effect=changed_by(model),
        level=f", less the {'median' if model._robust else 'average'} of the target" if model._scales_labels else "",
        choice=(choice := getattr(model, "lam_choice_", None)),
        criterion=criterion,
        smallest_criteria="" if criterion is None else smallest_in_words(criterion),
        smallest="" if choice is None else smallest_error(choice),
        notes=notes,
        close=[] if notes.baselines is None else close_to_best(notes.baselines),
        resolvability=notes.resolvability[:MOST_LINES],
        undetermined=some([called(name) for name in model.undetermined_nodes_], MOST_NAMES),
        parameters=parameters(model),
        versions=versions(model),
        page=script_json(page),
    )


def _title(model: NetworkedModel) -> str:
    kind, target = kind_of(model), target_of(model)
    return kind[0].upper() + kind[1:] + ("" if target is None else f" of {target}")


def _score(model: NetworkedModel) -> tuple[str, str] | None:
    """R² or accuracy: its name, and its value in words."""
    held_out, measure = getattr(model, "held_out_", None), measure_of(model)
    if held_out is None or held_out.score is None:
        return None
    name, _, value = score_in_words(measure, held_out.score).rpartition(" ")
    return name, value


def _template() -> Any:
    """The template, with plotly.js in it."""
    plotly()
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("a report needs jinja2, which comes with the extra coterie[report]") from None
    from plotly.offline import get_plotlyjs

    look: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=PackageLoader("coterie.report"), undefined=StrictUndefined, **look)
    environment.filters |= {"short": short, "comma": "{:,}".format}
    environment.globals["plotly_js"] = get_plotlyjs()
    return environment.get_template("report.html")


def _figures(
    model: NetworkedModel,
    notes: Notes,
    drawn: DisplayGraph,
    table: ClusterTable,
    columns: list[str],
    criterion: CriterionChoice | None,
) -> dict[str, Any]:
    error = measure_of(model).name
    figures = {
        "convergence": convergence_figure(model.solution_),
        "gap": gap_figure(model.solution_, model.tol),
        "network": map_figure(drawn, columns, notes.coordinates, error),
        "coefficients": coefficients_figure(table),
    }
    if (choice := getattr(model, "lam_choice_", None)) is not None:
        figures["choice"] = lam_choice_figure(choice, error)
    if criterion is not None:
        figures["criterion"] = criterion_figure(criterion)
    if notes.baselines is not None:
        figures["baselines"] = comparison_figure(notes.baselines, error)
    return figures


def _about_map(drawn: DisplayGraph, notes: Notes, hidden: bool) -> list[str]:
    """What the map does not show, in sentences."""
    said = [drawn.aggregated] if drawn.aggregated else []
    said += [f"Shown is the last time, {drawn.time}."] if drawn.time else []
    if drawn.graph.n_edges > MOST_EDGES:
        said.append(f"Of {plural(drawn.graph.n_edges, 'edge')}, {MOST_EDGES:,} drawn at random are shown.")
    if notes.coordinates is not None:
        places = notes.coordinates.values[-len(drawn.names) :] if drawn.time else notes.coordinates.values
        nowhere = int(np.isnan(places[:, 0]).sum())
        said += [f"{plural(nowhere, 'node')} without coordinates cannot be shown."] if nowhere else []
    if hidden:
        said.append(f"The {MOST_COLUMNS} coefficients that vary most between nodes can be chosen.")
    return said


def _lines(table: ClusterTable) -> list[tuple[int, int, str, list[str]]]:
    """The first rows of the table: cluster, nodes, labelled nodes, coefficients."""
    rows = zip(table.clusters, table.sizes, table.n_labelled, table.w, strict=True)
    return [(int(k), int(size), counted(int(m)), [short(v, 4) for v in w]) for k, size, m, w in rows][:MOST_LINES]
