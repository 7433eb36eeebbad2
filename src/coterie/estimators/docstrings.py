"""The docstrings of the estimators: what they have in common is written once, and defaults come from signatures."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc, signature
from textwrap import indent
from typing import TypeVar

Class = TypeVar("Class", bound=type)

PARAMETERS = {
    "graph": """\
EmpiricalGraph, networkx.Graph, scipy.sparse matrix or frame of edges
As for :meth:`coterie.EmpiricalGraph.from_any`. None: one node. A pair (space, time) of such graphs: places at times,
joined as :func:`product_graph` joins them, with groups that are pairs; :func:`time_graph` makes the second. A
:class:`SimilarityGraph`: the graph that the rows make.""",
    "lam": """\
float
λ ≥ 0. The larger it is, the more nodes share a model; at 0 each node is alone.""",
    "alpha": """\
float
Strength of the ℓ1 norm of the weights. It does not apply to the intercept.""",
    "ridge": """\
float
Strength of the squared ℓ2 norm of the weights. It does not apply to the intercept.""",
    "l1": """\
float
Strength of the ℓ1 norm of the weights, which makes coefficients exactly zero (of quantiles, to rounding); with ridge,
an elastic net. It does not apply to the intercept.""",
    "lower": """\
float, array of shape (n_features,) or dict of feature → bound
No coefficient is below it, but zeros of nodes that no label reaches: one number for all, one for each feature, or
those of some features, by name or number, in the units of coef_. None: no bound.""",
    "upper": """\
float, array of shape (n_features,) or dict of feature → bound
No coefficient is above it, likewise.""",
    "positive": """\
bool
Whether no coefficient may be below zero. The intercept may.""",
    "delta": """\
float
δ, in the unit of y: residuals up to it count by their squares, larger ones by their sizes. About 1.35 standard
deviations of the noise is usual.""",
    "quantile": """\
float
The level of the quantile, between 0 and 1: about that part of the labels lies below the predictions.""",
    "penalty": """\
{"l1", "l2", "squared"} or Penalty
φ: the ℓ1 norm (every coefficient has clusters of its own), the ℓ2 norm (all coefficients have the same clusters), or
the squared ℓ2 norm (no clusters, weights vary gradually).""",
    "column_strength": """\
dict of column → strength
How much differences in a coefficient count, relative to λ: 0 (every node has it for itself; where a node has no labels,
it is the mean of the labelled nodes of its component), a positive number, or inf (all nodes of a component have the
same one, whatever λ is). Columns are features, by name or number, and "intercept", which with standardize is the
prediction at the mean of all features. None: 1 for all.""",
    "refine_strength": """\
bool
Whether held-out rows choose strengths, too: from those of column_strength on, or from slopes that all nodes share where
that is better, one column at a time, by factors of 4 up to 64, to 0 and to inf, as long as the error of the folds
falls. Strengths given as 0 or inf stay. The folds are solved again for every strength that is tried. held_out_ comes
from the same folds and does not know of the choice: its error is somewhat too small.""",
    "fit_intercept": """\
bool
The intercept is one more coefficient: neighbours' intercepts are pulled together too.""",
    "standardize": """\
bool
Solve for features (and numeric labels) of zero mean and unit variance, over the labelled rows of all nodes: λ, ridge
and alpha then mean the same whatever the units, and columns of very different sizes do no harm. Counts stay as they
are; labels of the Huber and quantile losses go by their median and their median distance from it. coef_, intercept_,
predictions and errors are in the units of X and y all the same; solution_ and dual_coef_ are in those of the problem
that was solved. Without an intercept, columns are scaled and not centred.""",
    "weight_by": """\
{"rows", "nodes"}
What counts alike. "nodes": c_i = 1, a node with one row counts like one with 900. "rows": c_i = m_i/m̄, where m̄ is
the mean of m_i over the nodes with labels, so that λ, ridge, l1 and alpha keep their size; the same where all nodes
have as many rows. A sample weight counts as that many rows.""",
    "refit": """\
{None, "clusters"}
"clusters": weights are refitted on the clusters that were found, one joint regression in which λ, l1 and alpha no
longer pull; ridge stays. coef_, intercept_ and predictions are those of the refit, and so is what folds or criteria
choose λ by; solution_, its certificate and gap_ are those of the penalised problem.""",
    "shared": """\
bool
Whether nodes are drawn to a component that all of them share, too: one more node without labels, joined to every node.
Nodes that are not in the graph are predicted with it.""",
    "tol": """\
float
The relative duality gap to reach.""",
    "max_iter": """\
int
Iterations at most.""",
    "time_limit": """\
float
Seconds for the solve; what a CV form does before, to choose λ, does not count. None: no limit.""",
    "engine": """\
str
What computes: see :func:`coterie.solve`.""",
    "threads": """\
int
How many threads the solve uses. None: as many as pay, and not more than the environment allows.""",
    "warm_start": """\
bool
Begin a fit where the last one ended; the graph may have changed.""",
    "lams": """\
sequence of float
The values of λ to try. None: n_lams values, evenly spaced in logarithms below the largest useful one.""",
    "n_lams": """\
int
How many values of λ to try.""",
    "cv": """\
int, splitter or iterable of (train, test)
The number of folds; or what scikit-learn takes for cv, with nodes numbered as its groups.""",
    "over": """\
{"auto", "nodes", "rows", "places", "times", "blocks"}
What a fold holds out. "nodes": all labels of some nodes (can the network predict a node it has not seen?). "rows":
some labels of any node (can it predict new points of the nodes it knows?). "auto": nodes where the graph has nodes
without labels or most nodes have one row, otherwise rows. Of a graph (space, time) also "places": all times of some
places (a new place?); "times": the times that come next, from those before alone (the future?); "blocks": some places
at the times that come next, from other places before (a new place in the future?).""",
    "cv_repeats": """\
int
How many times the folds are drawn; their errors are averaged. For a number of folds only.""",
    "rule": """\
{"best", "one_se"}
The λ of smallest mean error over the rows held out, or the largest λ within one standard error of it.""",
    "criterion": """\
{"cv", "aicc", "bic"}
What chooses λ. "cv": the error of what folds hold out. "aicc", "bic": the smallest of these on one path over all rows;
cv, over, cv_repeats, rule and random_state are then not used, and nothing is held out.""",
    "random_state": """\
int or RandomState
Draws the folds.""",
    "n_jobs": """\
int
How many processes solve folds at a time; -1: as many as there are cores, which they share out among their threads.
None: one, or what a joblib.parallel_config says. The result is the same, to rounding.""",
    "class_weight": """\
dict, "balanced" or None
How much a row of each class counts: {class: weight}, or, balanced, n / (K n_c) with n_c of the n labelled rows in
class c, one of K. It multiplies the sample weights. None: all count alike.""",
    "node": """\
str or list of str
The column of the frame X that says which node a row belongs to, for callers that pass no groups: pipelines, grid
searches, cross_val_score. Of several columns, the nodes are the tuples: (place, time) of a :func:`product_graph`.""",
    "time_strength": """\
float
Of a graph (space, time): how much an edge in time counts beside one in space. λ times this is the λ of time.""",
    "time_strengths": """\
sequence of float
Of a graph (space, time): the strengths of edges in time to try, each with its own λ. None: 0.1, 1 and 10 times
the one at which the median edge in time weighs what the median edge in space does.""",
    "adaptive": """\
bool
Fit twice: the weights A_e of the second fit are divided by ε + ‖ŵ_i − ŵ_j‖, the differences that the first one found,
so that wrong edges count less and there are fewer, truer clusters. A CV form chooses λ for each of the two, and makes
the weights again in each fold.""",
    "learn_graph": """\
bool
Learn the weights of the edges with the models: in turn, models are fitted, and every node shares the weight of its
edges out anew, more to neighbours with models like its own, until that changes little. The graph says which edges
there may be. As with adaptive, a CV form chooses λ for the first fit and the last, and each fold learns weights.""",
    "n_clusters": """\
int
Instead of lam: find the smallest λ at which so many clusters remain, as clusters_ counts them, and take a hundredth
more, where as many do; an error where there is none. For "l1" and "l2".""",
    "verbose": """\
int or callable
Above 0: print progress. A callable is called instead as ``verbose(line, done)``, done being from 0 to 1. Where the
logger "coterie" has a handler and its level is INFO or lower, progress is logged and not printed.""",
}

ATTRIBUTES = """\
coef_ : array of shape (nodes, features)
    The coefficients of every node.
intercept_ : array of shape (nodes,)
    The intercepts; zero without fit_intercept.
nodes_ : array of shape (nodes,)
    The ids of the nodes, in the order of coef_.
coef_penalised_, intercept_penalised_ : arrays
    With refit="clusters": what λ, l1 and alpha made of coef_ and intercept_ before the refit.
shared_coef_, shared_intercept_ : array of shape (features,) and float
    With shared=True: the component that all nodes share.
dual_coef_ : array of shape (edges, features + 1)
    The dual variables u of the edges, in the order of ``graph_.edges``.
gap_ : float
    How far the objective is from the best possible, at most, relative to it.
n_iter_ : int
    At least 1, also where no iteration was needed.
clusters_ : array of shape (nodes,)
    Nodes with the same number are connected and have exactly the same model.
undetermined_nodes_ : array
    Ids of nodes that no label reaches; their model is zero.
n_labelled_ : array of shape (nodes,)
    m_i, the number of labelled rows of each node.
node_errors_ : array of shape (nodes,)
    Mean training error (squared error, log-loss, deviance, absolute error or pinball loss) of the labelled rows of each
    node; nan where there are none.
lam_ : float
    The λ of the fit: as given, or as cross-validation chose it.
effective_parameters_ : float
    How many parameters the fit has used: how much predictions follow labels, Σ ∂ŷ/∂y. For squared error with the ℓ1
    penalty that is the number of fused groups over all coefficients. Like aicc_ and bic_, computed when asked for.
aicc_, bic_ : float
    −2 log likelihood, with a charge for parameters; nan for losses that are no likelihood.
time_strength_ : float
    The strength of edges in time, as given or as cross-validation chose it, where the graph is a pair (space, time).
n_neighbours_, threshold_ : int, float
    k or threshold of a :class:`SimilarityGraph`, as given or as cross-validation chose it; the other one is not there.
strengths_ : array of shape (features + 1,), or None
    The strength of each column, the intercept last; None: they are all one.
solution_ : Solution
    What the solver returned, with its certificate.
graph_ : EmpiricalGraph
    The graph of the fit, with the nodes that were added since.
target_name_ : str, or None
    The name of y, where it was a series.
n_features_in_ : int
    The number of features.
feature_names_in_ : array of shape (n_features_in_,)
    Their names, where X was a frame."""

CHOICE = """\
cv_results_ : dict of arrays
    For each λ: lam, time_strength, k or threshold where several were tried, mean_error (what held_out_.measure names,
    of all rows held out, in units of y), standard_error, the error of each fold, and the largest gap any fold had left.
lam_choice_ : LamChoice
    The same, with both rules.
held_out_ : HeldOut
    How well held-out labels are predicted: error, standard_error, score (R², D² or accuracy) and the error of
    each node. Each fold counts with the λ that the other folds choose.
criterion_choice_ : CriterionChoice
    Instead of these three, with criterion "aicc" or "bic": effective parameters, deviance, AICc and BIC of each λ."""

CLASSES = """\
classes_ : array of shape (classes,)
    The classes, in order. With more than two, coef_ has the shape (nodes, classes, features), intercept_ (nodes,
    classes), and dual_coef_ has features + 1 columns for each class, one class after the other.
class_weight_ : array of shape (classes,)
    How much a row of each of them counts."""


def documented(*attributes: str) -> Callable[[Class], Class]:
    """Fill {parameters} of a class docstring from the signature, and {attributes} with the common ones and these."""

    def fill(cls: Class) -> Class:
        listed = []
        for one in signature(cls).parameters.values():
            kind, _, text = PARAMETERS[one.name].partition("\n")
            listed += [f"{one.name} : {kind}, default={one.default!r}", indent(text, "    ")]
        doc = cleandoc(cls.__doc__ or "").replace("{parameters}", "\n".join(listed))
        cls.__doc__ = doc.replace("{attributes}", "\n".join([ATTRIBUTES, *attributes]))
        return cls

    return fill
