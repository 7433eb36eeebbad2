"""
Choosing λ
==========

λ says how strongly neighbours are pulled together. At 0 every node is alone; from some λ on, all share one model.
This page shows what happens between, and how to choose. The data are synthetic: three groups of nodes.
"""

# %%
# From one end to the other
# -------------------------
# ``ct.largest_useful_lam`` is where the last clusters become one. ``ct.solve_path`` has λ below it, each solve
# starting from those of other λ nearby.

import matplotlib.pyplot as plt
import numpy as np

import coterie as ct
from coterie.datasets import stochastic_block_model

network = stochastic_block_model(
    (20, 20, 20),
    [[2, 2], [-2, 2], [1, -1]],
    p_in=0.3,
    p_out=0.02,
    points=4,
    labelled=45,
    noise=3.0,
    seed=1,
)
problem = ct.Problem(network.graph, network.data)
print(f"from λ = {ct.largest_useful_lam(problem):.3g} on, there is one model")
path = ct.solve_path(problem, n_lams=25)
print(path)

# %%
# On the left, the first weight of every node: branches meet when nodes begin to share a model. On the right, the
# number of different models, and the error of the weights, which only synthetic data can show.

lams = np.array(path.lams)
weights = np.array([solution.w[:, 0] for solution in path.solutions])
joint = [len(np.unique(solution.w.round(9), axis=0)) for solution in path.solutions]
error = [np.mean((solution.w - network.weights) ** 2) for solution in path.solutions]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for group, colour in enumerate(("#0072b2", "#e69f00", "#009e73")):
    axes[0].semilogx(
        lams, weights[:, network.cluster == group], color=colour, linewidth=0.8
    )
axes[0].set(xlabel="λ", ylabel="first weight of each node", title="a path")
axes[1].loglog(lams, joint, color="#0072b2", label="different models")
axes[1].loglog(lams, error, color="#d55e00", label="error of the weights")
axes[1].set(xlabel="λ", title="few models, small error: between")
axes[1].legend()

# %%
# By cross-validation
# -------------------
# With real data the truth is not known, and labels are held out instead. *Which* labels is a question about what you
# want to predict: ``over="nodes"`` holds out all labels of some nodes (can the network predict a node that it has not
# seen?), ``over="rows"`` some labels of any node (new rows of nodes that it knows?). ``"auto"`` asks for nodes where
# some have no labels.

data = network.data
for over in ("nodes", "rows"):
    model = ct.NetworkedLinearRegressionCV(
        network.graph, over=over, n_lams=15, cv=4, random_state=0
    )
    model.fit(data.X, data.y, groups=data.nodes)
    error, spread = model.held_out_.error, model.held_out_.standard_error
    print(f"over {over}: λ = {model.lam_:.3g}, error {error:.2f} ± {spread:.2f}")

# %%
# The curve of the last one. ``rule="best"`` takes its lowest point. ``rule="one_se"`` takes the largest λ whose error
# is within one standard error of that: fewer models, as good as the data can tell.

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ct.plot.lam_choice(model, ax=ax)
simple = ct.NetworkedLinearRegressionCV(**model.get_params()).set_params(rule="one_se")
simple.fit(data.X, data.y, groups=data.nodes)
print(f"best: {len(set(model.clusters_))} models")
print(f"one_se: {len(set(simple.clusters_))} models")

# %%
# The scale of λ
# --------------
# The estimators measure columns and labels in units of their standard deviation, so that a λ means the same in metres
# and in miles. (``ct.Problem`` takes numbers as they are: its λ is in units of the loss.) λ multiplies the weights of
# the edges: twice the weights and half the λ is the same problem. Folds in detail: :doc:`/estimators`.
