"""The options that only coterie fit has, as its help shows them."""

from __future__ import annotations

import typer

DATA, NETWORK, MODEL, SOLVER = "What to learn from", "The network", "The model", "How to solve it"

Target = typer.Option(help="Column to predict; empty where it is not known.", rich_help_panel=DATA)
Out = typer.Option(help="Folder for the model; an old model there is replaced.")
Features = typer.Option(
    help="Columns to predict from, as a,b,c.",
    show_default="all others but ids and coordinates",
    rich_help_panel=DATA,
)
Exclude = typer.Option(help="Columns that are no features, as a,b,c.", show_default="none", rich_help_panel=DATA)
OneHot = typer.Option(
    help="Columns of which each level becomes a feature of 0 and 1, as a,b,c.",
    show_default="none",
    rich_help_panel=DATA,
)
Missing = typer.Option(
    help="Features that are missing: fill in the mean of the column, or drop the row.",
    show_default="an error",
    rich_help_panel=DATA,
)
Graph = typer.Option(
    help="Edges: a table of two columns of nodes, and perhaps one called weight.", rich_help_panel=NETWORK
)
Knn = typer.Option(
    help="Instead: join each node to its nearest, by columns of DATA, as lat,lon:5.", rich_help_panel=NETWORK
)
Time = typer.Option(
    help="Column of times, numbers or dates, if nodes are places at times: --node place,time.",
    rich_help_panel=NETWORK,
)
TimeStrength = typer.Option(
    min=0,
    help="For --time: how much edges in time count beside those in space.",
    show_default="1, or chosen with --lam cv",
    rich_help_panel=NETWORK,
)
Loss = typer.Option(
    help="lasso: few coefficients are not zero. logistic: the target is a class, 0 or 1 or names of two or more. "
    "poisson: it is a count. huber: outliers count less. quantile: predict one, such as the median.",
    rich_help_panel=MODEL,
)
Penalty = typer.Option(help="l1, l2: neighbours share models. squared: they are similar.", rich_help_panel=MODEL)
Lam = typer.Option(
    help="How strongly neighbours are pulled together: a number; or what chooses it, cv, aicc or bic.",
    rich_help_panel=MODEL,
)
NClusters = typer.Option(
    "--n-clusters",
    min=1,
    help="Instead of --lam: how many clusters are to remain, by which λ is found.",
    show_default="none",
    rich_help_panel=MODEL,
)
Rule = typer.Option(
    help="For --lam cv: the λ of smallest error, or the largest within one standard error of it.",
    show_default="best",
    rich_help_panel=MODEL,
)
Adaptive = typer.Option(
    "--adaptive",
    help="Fit twice, with less weight on edges across which the first fit finds a difference.",
    rich_help_panel=MODEL,
)
LearnGraph = typer.Option(
    "--learn-graph",
    help="Learn the weights of the edges, in turns with the models.",
    rich_help_panel=MODEL,
)
Strength = typer.Option(
    help="How much differences in one coefficient count, relative to --lam, as age=2: 0, every node has it for "
    "itself, to inf, all have the same. For the features named, and intercept; repeat it for each.",
    show_default="1",
    rich_help_panel=MODEL,
)
RefineStrength = typer.Option(
    "--refine-strength",
    help="Let the folds of --lam cv choose strengths, too, one column at a time; they are solved many times.",
    rich_help_panel=MODEL,
)
Shared = typer.Option(
    "--shared",
    help="Draw nodes to a component that all of them share, too; nodes not in the graph are predicted with it.",
    rich_help_panel=MODEL,
)
Refit = typer.Option(
    help="clusters: refit the clusters found, without --lam pulling their models together.",
    show_default="none",
    rich_help_panel=MODEL,
)
Over = typer.Option(
    help="For cv and baselines: hold out whole nodes, or rows of any node; of places at times also places, "
    "times to come, or blocks of both.",
    rich_help_panel=MODEL,
)
Folds = typer.Option(min=2, help="For cv and baselines.", rich_help_panel=MODEL)
Repeats = typer.Option(min=1, help="For cv: draw the folds this many times.", rich_help_panel=MODEL)
Alpha = typer.Option(min=0, help="Strength of the Lasso.", show_default="0.1", rich_help_panel=MODEL)
Ridge = typer.Option(
    min=0,
    help="Strength of the ridge.",
    show_default="0 for squared, lasso and huber, else 0.001",
    rich_help_panel=MODEL,
)
L1 = typer.Option(
    "--l1", min=0, help="Strength of the l1 norm, for any loss; lasso calls it --alpha.", rich_help_panel=MODEL
)
Lower = typer.Option(
    help="No coefficient of a column below a number, as age=0; of all columns, as -1. Repeat it.",
    metavar="COLUMN=NUMBER",
    rich_help_panel=MODEL,
)
Upper = typer.Option(help="The same above a number.", metavar="COLUMN=NUMBER", rich_help_panel=MODEL)
Positive = typer.Option("--positive", help="No coefficient below zero.", rich_help_panel=MODEL)
Delta = typer.Option(
    help="Of huber: the residual from which on a row pulls no harder.", show_default="1", rich_help_panel=MODEL
)
ClassWeight = typer.Option(
    help="Of logistic: let all classes count alike, however many rows they have.",
    show_default="every row counts alike",
    rich_help_panel=MODEL,
)
Quantile = typer.Option(help="Of quantile: its level, between 0 and 1.", show_default="0.5", rich_help_panel=MODEL)
Intercept = typer.Option(help="Whether models have one.", rich_help_panel=MODEL)
Scale = typer.Option(help="Solve in units of each column's own spread; results keep theirs.", rich_help_panel=MODEL)
WeightBy = typer.Option(
    help="What counts alike: every row, or every node however many rows it has.", rich_help_panel=MODEL
)
Baselines = typer.Option(
    "--baselines/--no-baselines",
    help="Does the network help? Compare it with models without it.",
    show_default="where that costs less than the fit",
    rich_help_panel=MODEL,
)
Tol = typer.Option(min=0, help="The certified gap to reach, relative.", rich_help_panel=SOLVER)
MaxIter = typer.Option(min=0, rich_help_panel=SOLVER, help="Iterations at most.")
TimeLimit = typer.Option(min=0, help="Seconds for the solve.", show_default="none", rich_help_panel=SOLVER)
Engine = typer.Option(
    help="What computes: auto, numba, numpy, gpu, or mpi (mpiexec -n 4 coterie fit …).", rich_help_panel=SOLVER
)
Profile = typer.Option("--profile", help="With mpi: say where the time of the ranks goes.", rich_help_panel=SOLVER)
Checkpoint = typer.Option(
    help="With mpi: a folder to keep the solve in, every minute.", show_default="none", rich_help_panel=SOLVER
)
Resume = typer.Option("--resume", help="Go on from what --checkpoint holds.", rich_help_panel=SOLVER)
Partition = typer.Option(
    help="With mpi: a table of nodes and the rank, from 0, that each belongs to.",
    show_default="ranks with equal work",
    rich_help_panel=SOLVER,
)
Seed = typer.Option(min=0, help="For the folds.", rich_help_panel=SOLVER)
