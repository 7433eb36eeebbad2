"""
The paper's network
===================

Three hundred small datasets are the nodes of a graph. They form two groups, each with a model of its own, and nobody
says which node is in which group. Only 30 nodes have labels. Can all 300 models be learnt?

This is the experiment of "Federated Learning from Big Data over Networks" (arXiv 2010.14159), drawn anew.
"""

# %%
# The network
# -----------
# Each node has five points with two features. A label is ⟨x, w⟩ without noise, with w = (2, 2) in the first group and
# w = (−2, 2) in the second. Half of all pairs inside a group are joined, and one pair in a thousand across.

import matplotlib.pyplot as plt
import numpy as np

import coterie as ct
from coterie.datasets import stochastic_block_model

network = stochastic_block_model(sizes=(150, 150), labelled=30, seed=0)
print(network.graph)
print(network.data)

# %%
# The problem, and its solution
# -----------------------------
# The sum of the losses of the labelled nodes, plus λ times the differences across edges. ``solve`` stops when it has
# *proven* that no other weights have an objective that is lower by more than a millionth.

problem = ct.Problem(network.graph, network.data, loss=ct.SquaredError(), lam=1e-3)
solution = ct.solve(problem)
print(solution)
print(solution.clusters())

# %%
# The 270 nodes without labels have models too. How good are they? The hidden labels tell:

hidden = network.held_out
X, nodes = network.data.X[hidden], network.data.nodes[hidden]


def test_error(w):
    """Mean squared error on the labels that nobody has learnt from."""
    return np.mean((network.labels[hidden] - np.sum(X * w[nodes], axis=1)) ** 2)


pooled = np.linalg.lstsq(network.data.X[~hidden], network.labels[~hidden], rcond=None)[0]
print(f"the network: {test_error(solution.w):.1e}")
print(f"one model for all: {test_error(np.tile(pooled, (300, 1))):.1e}")

# %%
# The printed iteration
# ---------------------
# The paper solves the same problem by its Algorithm 1, which is in the package line by line. After the 500 iterations
# of the experiment it is far from done, and its certificate says so: a gap of 0.99 means that nearly all of the
# objective may be superfluous. :doc:`/how-it-works/crawl` explains why, and what cures it.

printed = ct.algorithm1(problem, n_iter=500)
print(f"Algorithm 1 after 500 iterations: gap {printed.gap:.2f}")
print(f"its test error: {test_error(printed.w):.1f}")

# %%
# Each dot below is the model of one node. The crosses are the two models that made the data.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
titles = ("Algorithm 1, 500 iterations", f"ct.solve, {solution.n_iter} iterations")
for ax, answer, title in zip(axes, (printed, solution), titles):
    for group, colour in enumerate(("#0072b2", "#e69f00")):
        dots = answer.w[network.cluster == group].T
        ax.scatter(*dots, s=30, alpha=0.5, color=colour, label=f"group {group + 1}")
    ax.plot([2, -2], [2, 2], "x", color="black", markersize=10, label="truth")
    ax.set(title=title, xlabel="first weight", ylabel="second weight")
axes[0].legend(loc="lower center")

# %%
# The dots of the certified solution lie on each other: inside a group all models are *exactly* equal, and a tiny
# distance from the truth is what λ costs. The whole experiment, with its table and figures: :doc:`/paper`.
