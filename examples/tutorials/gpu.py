"""
A GPU
=====

Very large networks are solved on an NVIDIA GPU, by the same method and with the same certificate. Most machines that
build this page have none, so this tutorial solves a small problem on what there is, and shows recorded figures for
the large ones.
"""

# %%
# Ask for it
# ----------
# ``engine="gpu"`` needs the extra ``gpu`` and a card. Where something is missing, a sentence says what.

import matplotlib.pyplot as plt

import coterie as ct
from coterie.datasets import stochastic_block_model

network = stochastic_block_model((100, 100), p_in=0.2, labelled=60, noise=0.5)
problem = ct.Problem(network.graph, network.data, lam=0.01)
try:
    print(ct.solve(problem, engine="gpu"))
except RuntimeError as error:
    print(f"not on this machine: {error}")

# %%
# ``engine="auto"``, the default, takes a GPU only where it pays, and the processor otherwise. It says nothing if
# there is none.

print(ct.solve(problem))

# %%
# When it pays
# ------------
# From about ten million numbers on (edges times features). Smaller problems are solved before a GPU has been started.
# Recorded on 18 November 2026 with one NVIDIA H200, and on two cores of an AMD EPYC on 15 November 2026; every answer
# is certified:

recorded = {
    "10⁶ nodes, 10⁷ edges, n = 10,\nto 7e-5 on two cores": 149,
    "the same on the GPU,\nto 1e-4": 3.0,
    "the same on the GPU,\nto 1e-6": 5.2,
    "10⁷ nodes, 10⁸ edges, n = 4,\non the GPU, to 1e-4": 35.3,
}
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
bars = ax.barh(
    list(recorded),
    list(recorded.values()),
    color=["#0072b2", "#e69f00", "#e69f00", "#e69f00"],
)
ax.bar_label(bars, fmt="%.3g s", padding=3)
ax.set(xscale="log", xlim=(1, 500), xlabel="recorded seconds, set-up and transfers counted")
ax.invert_yaxis()

# %%
# Memory, precision, what is proven where, and the tables that these figures come from: :doc:`/gpu` and
# :doc:`/benchmarks`.
