"""
Space × time
============

Sensors in a city, month by month. How traffic makes the air bad differs from place to place, and it changed when a
street was closed in summer. One model for every place in every month would have eight rows each; neighbours in space
*and* in time lend each other theirs. The data are synthetic.
"""

# %%
# Two graphs, multiplied
# ----------------------
# Places are joined to their four nearest, months to the next one. In the product each place is joined to its
# neighbours in the same month, and to itself in the next. ``strength`` says how strongly, in space and in time.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import coterie as ct

rng = np.random.default_rng(0)
where = rng.uniform(0, 10, (40, 2))
sensors = [f"sensor {k}" for k in range(40)]
months = [f"2025-{m:02d}" for m in range(1, 13)]
space = ct.knn_graph(where, k=4, metric="euclidean", ids=sensors)
graph = ct.product_graph(space, ct.time_graph(months), strength=(1.0, 1.0))
print(graph, graph.names[0])

# %%
# Measurements
# ------------
# In the west the effect of traffic falls from 2 to 1 in July.

place, month = rng.integers(0, 40, 4000), rng.integers(0, 12, 4000)
west = where[:, 0] < 5
effect = np.where(west[place], np.where(month >= 6, 1.0, 2.0), 0.5)
table = pd.DataFrame(
    {"traffic": rng.standard_normal(4000), "wind": rng.standard_normal(4000)}
)
soot = 10 + effect * table.traffic - table.wind + rng.standard_normal(4000)
nodes = [(sensors[i], months[t]) for i, t in zip(place, month)]
print(table.assign(sensor_and_month=nodes, soot=soot).head(3).round(2))

# %%
# Fit
# ---
# Nodes are pairs of a place and a time; ``groups`` has one for each row.

model = ct.NetworkedLinearRegressionCV(graph, over="rows", n_lams=10, cv=3, random_state=0)
model.fit(table, soot, groups=nodes)
print(f"λ = {model.lam_:.2g}, certified gap {model.gap_:.0e}")
print(f"error on held-out rows: {model.held_out_.error:.2f}")

# %%
# The effect of traffic, sensors from west to east, month by month. The border in July, and the one between east and
# west, were found: nobody had said that there were any.

order = np.argsort(where[:, 0])
by_month = model.coef_[:, 0].reshape(12, 40)[
    :, order
]  # node t·40 + i is sensor i in month t
truth = np.where(west[order], np.where(np.arange(12)[:, None] >= 6, 1.0, 2.0), 0.5)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, value, title in zip(axes, (truth, by_month), ("truth", "learnt")):
    picture = ax.imshow(value.T, aspect="auto", vmin=0, vmax=2.2, cmap="viridis")
    ax.set(title=title, xticks=range(0, 12, 2), xticklabels=months[::2])
    ax.tick_params(axis="x", rotation=45)
axes[0].set_ylabel("sensors, from west to east")
figure.colorbar(picture, ax=axes, label="effect of traffic")

# %%
# An estimator also takes the two graphs themselves, ``graph=(space, time)``, with ``groups=["sensor", "month"]``, two
# columns of a frame, and its CV form chooses how strongly to pull in time as well: :doc:`/space-time`. With dates that
# go round, such as months of several years, ``ct.time_graph(range(1, 13), period=12)`` joins December to January.
