"""coterie fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.errors import BadInputError, check_folder, check_numbers, plain_errors
from coterie.cli.fitting import (
    CV,
    checked_engine,
    end,
    left_out,
    new_model,
    notes_of,
    own_options,
    resolvability_of,
    without_convergence_warnings,
)
from coterie.cli.network import (
    check_choice,
    edge_table,
    in_time,
    place_column,
    read_network,
    split_names,
    text_format,
)
from coterie.cli.options import (
    DataArgument,
    DecimalOption,
    DistanceOption,
    EncodingOption,
    ExposureOption,
    IdsName,
    IdsOption,
    JsonOption,
    LossName,
    MissingName,
    NodeOption,
    OffsetOption,
    OverName,
    PenaltyName,
    QuietOption,
    RefitName,
    SeparatorOption,
    WeightName,
    WeightOption,
)
from coterie.cli.ranks import (
    RankTables,
    agreed,
    check_files,
    fit_by_ranks,
    keeping,
    ranks,
    refuse_other_options,
    refuse_partition,
    why_whole,
)
from coterie.cli.ranks import profile as where_time_went
from coterie.cli.strengths import check_engine, read_strengths

if TYPE_CHECKING:
    pass

DATA, NETWORK, MODEL, SOLVER = "What to learn from", "The network", "The model", "How to solve it"


def fit(
    context: typer.Context,
    data: Annotated[Path, DataArgument],
    node: Annotated[str, NodeOption],
    target: Annotated[str, typer.Option(help="Column to predict; empty where it is not known.", rich_help_panel=DATA)],
    out: Annotated[Path, typer.Option(help="Folder for the model; an old model there is replaced.")],
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns to predict from, as a,b,c.",
            show_default="all others but ids and coordinates",
            rich_help_panel=DATA,
        ),
    ] = None,
    exclude: Annotated[
        str | None,
        typer.Option(help="Columns that are no features, as a,b,c.", show_default="none", rich_help_panel=DATA),
    ] = None,
    one_hot: Annotated[
        str | None,
        typer.Option(
            help="Columns of which each level becomes a feature of 0 and 1, as a,b,c.",
            show_default="none",
            rich_help_panel=DATA,
        ),
    ] = None,
    missing: Annotated[
        MissingName | None,
        typer.Option(
            help="Features that are missing: fill in the mean of the column, or drop the row.",
            show_default="an error",
            rich_help_panel=DATA,
        ),
    ] = None,
    offset: Annotated[str | None, OffsetOption] = None,
    exposure: Annotated[str | None, ExposureOption] = None,
    separator: Annotated[str | None, SeparatorOption] = None,
    decimal: Annotated[str, DecimalOption] = ".",
    encoding: Annotated[str, EncodingOption] = "utf-8",
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Edges: a table of two columns of nodes, and perhaps one called weight.", rich_help_panel=NETWORK
        ),
    ] = None,
    knn: Annotated[
        str | None,
        typer.Option(
            help="Instead: join each node to its nearest, by columns of DATA, as lat,lon:5.", rich_help_panel=NETWORK
        ),
    ] = None,
    weight: Annotated[str | None, WeightOption] = None,
    distance: Annotated[str | None, DistanceOption] = None,
    ids: Annotated[IdsName, IdsOption] = IdsName.text,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column of times, numbers or dates, if nodes are places at times: --node place,time.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    time_strength: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="For --time: how much edges in time count beside those in space.",
            show_default="1, or chosen with --lam cv",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    loss: Annotated[
        LossName,
        typer.Option(
            help="lasso: few coefficients are not zero. logistic: the target is 0 or 1, or has two names. poisson: it "
            "is a count. huber: outliers count less. quantile: predict one, such as the median.",
            rich_help_panel=MODEL,
        ),
    ] = LossName.squared,
    penalty: Annotated[
        PenaltyName,
        typer.Option(help="l1, l2: neighbours share models. squared: they are similar.", rich_help_panel=MODEL),
    ] = PenaltyName.l1,
    lam: Annotated[
        str,
        typer.Option(
            help="How strongly neighbours are pulled together: a number; or what chooses it, cv, aicc or bic.",
            rich_help_panel=MODEL,
        ),
    ] = CV,
    strength: Annotated[
        list[str] | None,
        typer.Option(
            help="How much differences in one coefficient count, relative to --lam, as age=2: 0, every node has it for "
            "itself, to inf, all have the same. For the features named, and intercept; repeat it for each.",
            show_default="1",
            rich_help_panel=MODEL,
        ),
    ] = None,
    refine_strength: Annotated[
        bool,
        typer.Option(
            "--refine-strength",
            help="Let the folds of --lam cv choose strengths, too, one column at a time; they are solved many times.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Draw nodes to a component that all of them share, too; nodes not in the graph are predicted with it.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    refit: Annotated[
        RefitName | None,
        typer.Option(
            help="clusters: refit the clusters found, without --lam pulling their models together.",
            show_default="none",
            rich_help_panel=MODEL,
        ),
    ] = None,
    over: Annotated[
        OverName,
        typer.Option(
            help="For cv and baselines: hold out whole nodes, or rows of any node; of places at times also places, "
            "times to come, or blocks of both.",
            rich_help_panel=MODEL,
        ),
    ] = OverName.auto,
    folds: Annotated[int, typer.Option(min=2, help="For cv and baselines.", rich_help_panel=MODEL)] = 5,
    repeats: Annotated[
        int, typer.Option(min=1, help="For cv: draw the folds this many times.", rich_help_panel=MODEL)
    ] = 1,
    alpha: Annotated[
        float | None, typer.Option(min=0, help="Strength of the Lasso.", show_default="0.1", rich_help_panel=MODEL)
    ] = None,
    ridge: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Strength of the ridge; lasso has none.",
            show_default="0 for squared and huber, else 0.001",
            rich_help_panel=MODEL,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Of huber: the residual from which on a row pulls no harder.", show_default="1", rich_help_panel=MODEL
        ),
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(help="Of quantile: its level, between 0 and 1.", show_default="0.5", rich_help_panel=MODEL),
    ] = None,
    intercept: Annotated[bool, typer.Option(help="Whether models have one.", rich_help_panel=MODEL)] = True,
    scale: Annotated[
        bool,
        typer.Option(help="Solve in units of each column's own spread; results keep theirs.", rich_help_panel=MODEL),
    ] = True,
    weight_by: Annotated[
        WeightName,
        typer.Option(
            help="What counts alike: every row, or every node however many rows it has.", rich_help_panel=MODEL
        ),
    ] = WeightName.rows,
    baselines: Annotated[
        bool | None,
        typer.Option(
            "--baselines/--no-baselines",
            help="Does the network help? Compare it with models without it.",
            show_default="where that costs less than the fit",
            rich_help_panel=MODEL,
        ),
    ] = None,
    tol: Annotated[
        float, typer.Option(min=0, help="The certified gap to reach, relative.", rich_help_panel=SOLVER)
    ] = 1e-6,
    max_iter: Annotated[int, typer.Option(min=0, rich_help_panel=SOLVER, help="Iterations at most.")] = 100_000,
    time_limit: Annotated[
        float | None, typer.Option(min=0, help="Seconds for the solve.", show_default="none", rich_help_panel=SOLVER)
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="What computes: auto, numba, numpy, gpu, or mpi (mpiexec -n 4 coterie fit …).", rich_help_panel=SOLVER
        ),
    ] = "auto",
    profile: Annotated[
        bool, typer.Option("--profile", help="With mpi: say where the time of the ranks goes.", rich_help_panel=SOLVER)
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="With mpi: a folder to keep the solve in, every minute.", show_default="none", rich_help_panel=SOLVER
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from what --checkpoint holds.", rich_help_panel=SOLVER)
    ] = False,
    partition: Annotated[
        Path | None,
        typer.Option(
            help="With mpi: a table of nodes and the rank, from 0, that each belongs to.",
            show_default="ranks with equal work",
            rich_help_panel=SOLVER,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the folds.", rich_help_panel=SOLVER)] = 0,
    json: Annotated[bool, JsonOption] = False,
    quiet: Annotated[bool, QuietOption] = False,
) -> None:
    """Learn one model for every node, and write them to a folder with their certificate.

    Squared error and Lasso read DATA once and keep no rows, so they may be larger than memory. Ctrl-C writes the best
    model so far.
    """
    with plain_errors(quiet), ranks(checked_engine(engine)) as first:
        refuse_other_options(engine, context)
        check_folder(out)
        if checkpoint is not None:
            check_folder(checkpoint, "--checkpoint")
        check_numbers(tol=tol, time_limit=time_limit, alpha=alpha, ridge=ridge, time_strength=time_strength)
        if engine != "mpi" and (profile or checkpoint is not None or partition is not None):
            raise BadInputError("--profile, --checkpoint and --partition belong to --engine mpi")
        numbers = {"alpha": alpha, "ridge": ridge, "delta": delta, "quantile": quantile}
        own = own_options(loss, **numbers, offset=offset, exposure=exposure)
        place = place_column(node, time, time_strength, over)
        nearest = check_choice(graph, knn, weight, distance)
        if refine_strength and lam != CV:
            raise BadInputError(
                f"--refine-strength lets folds choose, as --lam cv does; it does not go with --lam {lam}"
            )
        choosing = {"cv": folds, "over": over.value, "cv_repeats": repeats, "random_state": seed}
        choosing["refine_strength"] = refine_strength
        model, strengths = new_model(loss, lam, own, choosing), read_strengths(strength)
        check_engine(strengths, engine)
        model.set_params(penalty=penalty.value, fit_intercept=intercept, tol=tol, max_iter=max_iter)
        model.set_params(shared=shared, refit=None if refit is None else refit.value)
        model.set_params(standardize=scale, weight_by=weight_by.value, time_limit=time_limit, engine=engine)
        from coterie.cli.screen import say, working
        from coterie.estimators.assessment import assess
        from coterie.estimators.column_strength import of_features
        from coterie.estimators.from_files import FileFit
        from coterie.estimators.offsets import Offset
        from coterie.io.formats import Table
        from coterie.io.preparation import prepare
        from coterie.io.rows import Columns
        from coterie.io.times import Times
        from coterie.problem.convert import Measure
        from coterie.solver import Status

        table = Table(data, text_format(separator, decimal, encoding))
        check_files(
            engine, table, None if graph is None else Table(graph), None if partition is None else Table(partition)
        )
        edges = None if graph is None else edge_table(graph, table)
        with working(quiet) as tell, without_convergence_warnings():
            tell(f"reading {data}", None)
            chosen = None if features is None else split_names(features)
            given = Offset.of(offset, exposure)
            known = None if given is None else given.column
            apart = left_out(table, (place, target, str(known)), chosen, exclude, nearest)
            times, moments = (None, []) if time is None else Times.found(table, time)
            options: dict[str, Any] = {"classes": loss is LossName.logistic, "offset": known, "times": times}
            columns = Columns.of(table, place, target, chosen, but=apart, **options)
            if apart and chosen is None:
                say(f"columns that are not used: {', '.join(apart)}; name features with --features", quiet)
            measure = Measure(weight, distance)
            levels, gap = [] if one_hot is None else split_names(one_hot), None if missing is None else missing.value
            if engine == "mpi":
                asked = {"knn": nearest, "time": time, "shared": shared, "refit": refit, "baselines": baselines}
                asked["strength …=0"] = 0.0 in strengths.values()
                whole = agreed(why_whole(model, table, edges, **asked))
                if whole is None and edges is not None:
                    model.set_params(verbose=tell)
                    columns = replace(columns, text_ids=ids is IdsName.text)
                    ours = RankTables(table, edges, partition, columns, measure, given, levels, gap, strengths)
                    notes = notes_of(context, table, None, seed) if first else {}
                    facts = fit_by_ranks(
                        model, ours, partial(say, quiet=quiet), (checkpoint, resume), baselines is None
                    )
                    model.set_params(verbose=0)
                    model.save(out, notes)
                    say("\n".join(where_time_went()), quiet or not profile)
                    end(model, notes, out, model.solution_.status is Status.INTERRUPTED, json, quiet, facts)
                refuse_partition(partition, str(whole))
                say(f"every rank holds the whole problem, as {whole}", quiet)
            network = read_network(table, place, edges, nearest, measure, text_ids=ids is IdsName.text)
            model.set_params(graph=network.graph, verbose=tell)
            if times is not None:
                model.set_params(**in_time(model, network.graph, moments, time_strength))
            notes = notes_of(context, table, network, seed)
            columns, gaps = prepare(table, columns.like(network.graph), levels, gap)
            model.set_params(column_strength=of_features(strengths, columns.features, levels, intercept) or None)
            files = FileFit(model, table, columns, partial(say, quiet=quiet), over.value, given)
            files.checks.gaps(gaps)
            with keeping(checkpoint, resume) as is_resumed:
                condensed = files.fit() is None
            if resume and not is_resumed():
                say(f"{checkpoint} holds no checkpoint of this fit, which began anew", quiet)
            interrupted = model.solution_.status is Status.INTERRUPTED
            try:
                if not interrupted:
                    tell("whether labels resolve the clusters", None)
                    notes |= resolvability_of(model)
                    found = assess(
                        model, cv=folds, over=over.value, random_state=seed, baselines=baselines, condensed=condensed
                    )
                    notes |= {} if found is None else {"baselines": found.to_dict()}
            except ValueError as error:
                hint = "; --over nodes holds out nodes" if condensed and over is not OverName.nodes else ""
                say(f"it is not known how good predictions are: {error}{hint}", quiet)
            except KeyboardInterrupt:
                interrupted = True
        model.set_params(verbose=0)
        if first:
            model.save(out, notes)
        if profile:
            say("\n".join(where_time_went()), quiet)
        end(model, notes, out, interrupted, json, quiet)
