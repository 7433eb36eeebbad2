"""coterie fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli import fit_options as own
from coterie.cli.bounds import Bounds
from coterie.cli.errors import BadInputError, check_folder, check_numbers, plain_errors
from coterie.cli.fitting import (
    assess_into,
    check_refit,
    checked_engine,
    end,
    left_out,
    new_model,
    notes_of,
    own_options,
    without_convergence_warnings,
)
from coterie.cli.lam import CV, check_lam, check_second_fit
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
    ClassWeightName,
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
    RuleName,
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


def fit(
    context: typer.Context,
    data: Annotated[Path, DataArgument],
    node: Annotated[str, NodeOption],
    target: Annotated[str, own.Target],
    out: Annotated[Path, own.Out],
    features: Annotated[str | None, own.Features] = None,
    exclude: Annotated[str | None, own.Exclude] = None,
    one_hot: Annotated[str | None, own.OneHot] = None,
    missing: Annotated[MissingName | None, own.Missing] = None,
    offset: Annotated[str | None, OffsetOption] = None,
    exposure: Annotated[str | None, ExposureOption] = None,
    separator: Annotated[str | None, SeparatorOption] = None,
    decimal: Annotated[str, DecimalOption] = ".",
    encoding: Annotated[str, EncodingOption] = "utf-8",
    graph: Annotated[Path | None, own.Graph] = None,
    knn: Annotated[str | None, own.Knn] = None,
    weight: Annotated[str | None, WeightOption] = None,
    distance: Annotated[str | None, DistanceOption] = None,
    ids: Annotated[IdsName, IdsOption] = IdsName.text,
    time: Annotated[str | None, own.Time] = None,
    time_strength: Annotated[float | None, own.TimeStrength] = None,
    loss: Annotated[LossName, own.Loss] = LossName.squared,
    penalty: Annotated[PenaltyName, own.Penalty] = PenaltyName.l1,
    lam: Annotated[str, own.Lam] = CV,
    n_clusters: Annotated[int | None, own.NClusters] = None,
    rule: Annotated[RuleName | None, own.Rule] = None,
    adaptive: Annotated[bool, own.Adaptive] = False,
    learn_graph: Annotated[bool, own.LearnGraph] = False,
    strength: Annotated[list[str] | None, own.Strength] = None,
    refine_strength: Annotated[bool, own.RefineStrength] = False,
    shared: Annotated[bool, own.Shared] = False,
    refit: Annotated[RefitName | None, own.Refit] = None,
    over: Annotated[OverName, own.Over] = OverName.auto,
    folds: Annotated[int, own.Folds] = 5,
    repeats: Annotated[int, own.Repeats] = 1,
    alpha: Annotated[float | None, own.Alpha] = None,
    ridge: Annotated[float | None, own.Ridge] = None,
    l1: Annotated[float | None, own.L1] = None,
    lower: Annotated[list[str] | None, own.Lower] = None,
    upper: Annotated[list[str] | None, own.Upper] = None,
    positive: Annotated[bool, own.Positive] = False,
    delta: Annotated[float | None, own.Delta] = None,
    quantile: Annotated[float | None, own.Quantile] = None,
    class_weight: Annotated[ClassWeightName | None, own.ClassWeight] = None,
    intercept: Annotated[bool, own.Intercept] = True,
    scale: Annotated[bool, own.Scale] = True,
    weight_by: Annotated[WeightName, own.WeightBy] = WeightName.rows,
    baselines: Annotated[bool | None, own.Baselines] = None,
    tol: Annotated[float, own.Tol] = 1e-6,
    max_iter: Annotated[int, own.MaxIter] = 100_000,
    time_limit: Annotated[float | None, own.TimeLimit] = None,
    engine: Annotated[str, own.Engine] = "auto",
    profile: Annotated[bool, own.Profile] = False,
    checkpoint: Annotated[Path | None, own.Checkpoint] = None,
    resume: Annotated[bool, own.Resume] = False,
    partition: Annotated[Path | None, own.Partition] = None,
    seed: Annotated[int, own.Seed] = 0,
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
        check_numbers(tol=tol, time_limit=time_limit, alpha=alpha, ridge=ridge, l1=l1, time_strength=time_strength)
        if engine != "mpi" and (profile or checkpoint is not None or partition is not None):
            raise BadInputError("--profile, --checkpoint and --partition belong to --engine mpi")
        numbers = {"alpha": alpha, "ridge": ridge, "l1": l1, "delta": delta, "quantile": quantile}
        classes = None if class_weight is None else class_weight.value
        of_loss = own_options(loss, **numbers, class_weight=classes, offset=offset, exposure=exposure)
        place = place_column(node, time, time_strength, over, shared)
        nearest = check_choice(graph, knn, weight, distance)
        check_lam(context, lam, n_clusters, penalty, shared=shared, refine_strength=refine_strength, rule=rule)
        second = {"adaptive": adaptive, "learn_graph": learn_graph}
        check_second_fit(lam, shared=shared, **second)
        bounds = Bounds.read(lower, upper)
        check_refit(loss, penalty, lam, refit is not None, positive or bounds.are_there)
        choosing = {"cv": folds, "over": over.value, "cv_repeats": repeats, "random_state": seed}
        choosing |= {"refine_strength": refine_strength, "rule": "best" if rule is None else rule.value}
        model, strengths = new_model(loss, lam, n_clusters, of_loss, choosing), read_strengths(strength)
        check_engine(strengths, engine)
        model.set_params(penalty=penalty.value, fit_intercept=intercept, tol=tol, max_iter=max_iter)
        model.set_params(shared=shared, refit=None if refit is None else refit.value, positive=positive, **second)
        model.set_params(standardize=scale, weight_by=weight_by.value, time_limit=time_limit, engine=engine)
        from coterie.cli.screen import say, working
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
        with working(quiet) as tell, without_convergence_warnings(quiet):
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
                asked: dict[str, Any] = {"knn": nearest, "time": time, "shared": shared, "refit": refit, **second}
                asked |= {"n_clusters": n_clusters, "class_weight": class_weight, "baselines": baselines}
                asked |= {"strength …=0": 0.0 in strengths.values(), "lower or --upper": bounds.are_there}
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
            model.set_params(**bounds.of(columns.features, levels))
            given_strengths = of_features(strengths, columns.features, levels, intercept, "--strength")
            model.set_params(column_strength=given_strengths or None)
            files = FileFit(model, table, columns, partial(say, quiet=quiet), over.value, given)
            files.checks.gaps(gaps)
            with keeping(checkpoint, resume) as is_resumed:
                condensed = files.fit() is None
            if resume and not is_resumed():
                say(f"{checkpoint} holds no checkpoint of this fit, which began anew", quiet)
            interrupted = model.solution_.status is Status.INTERRUPTED
            if not interrupted:
                how = {"cv": folds, "over": over.value, "random_state": seed, "baselines": baselines}
                interrupted = not assess_into(notes, model, condensed, tell, partial(say, quiet=quiet), **how)
        model.set_params(verbose=0)
        if first:
            model.save(out, notes)
        if profile:
            say("\n".join(where_time_went()), quiet)
        end(model, notes, out, interrupted, json, quiet)
