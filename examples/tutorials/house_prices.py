"""
House prices
============

What is a square metre worth? It depends on where. A town has quarters with prices of their own, and a table of sales
does not say where one quarter ends. Every street is a node with a few sales; near streets are joined, and quarters
come out.

The town is synthetic: a stand-in for real sales, such as those of Sacramento, for which :doc:`/real-data` has the
figures.
"""

# %%
# A town
# ------
# 250 streets with four sales each. The price of a square metre has three levels, and there is noise of 30 thousand on
# every price. In one street of five nothing has been sold yet: prices are missing there.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import coterie as ct

rng = np.random.default_rng(1)
east, north = rng.uniform(0, 10, (2, 250))  # kilometres
in_old_town, in_hills = np.hypot(east - 3, north - 6) < 2.5, east + north > 12
quarter = np.select([in_old_town, in_hills], ["old town", "hills"], "plain")
level = pd.Series(
    {"old town": 6.0, "hills": 4.0, "plain": 2.5}
)  # thousands per square metre
streets = [f"street {k}" for k in range(250)]

street = np.repeat(np.arange(250), 4)
houses = pd.DataFrame(
    {"street": np.array(streets)[street], "area": rng.uniform(50, 200, 1000)}
)
noise = 30 * rng.standard_normal(1000)
houses["price"] = 80 + level[quarter[street]].to_numpy() * houses.area + noise
sold = rng.random(250) < 0.8
known = houses.price.where(sold[street])
print(houses.head(3).round(1))

# %%
# Neighbours
# ----------
# Join each street to the six nearest.

graph = ct.knn_graph(np.c_[east, north], k=6, metric="euclidean", ids=streets)
print(graph)

# %%
# A model for every street
# ------------------------
# ``NetworkedLinearRegressionCV`` chooses λ by folds; as some streets have no sales, folds hold out whole streets.
# With ``penalty="l2"`` the price of a square metre and the base price change at the same borders.

model = ct.NetworkedLinearRegressionCV(graph, penalty="l2", n_lams=12, cv=4, random_state=0)
model.fit(houses[["street", "area"]], known, groups="street")
print(model)
print(f"certified gap {model.gap_:.0e}")
print(f"error on held-out streets: {model.held_out_.error:.0f} thousand")

# %%
# The map: what one more square metre is worth, as it was when the data were made, and as it was learnt.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, value, title in zip(axes, (level[quarter], model.coef_[:, 0]), ("truth", "learnt")):
    dots = ax.scatter(east, north, c=value, vmin=2, vmax=6.5, s=22, cmap="viridis")
    ax.set(title=title, xlabel="km", aspect="equal")
figure.colorbar(dots, ax=axes, label="thousands per square metre")

# %%
# Does the network help?
# ----------------------
# Houses in streets without sales, each method on the same ones:

hidden = known.isna()
truth = houses.price[hidden]


def error(prediction):
    """Root mean squared error, in thousands."""
    return np.sqrt(np.mean((truth - prediction) ** 2))


line = np.polyfit(houses.area[~hidden], known[~hidden], 1)
print(f"networked: {error(model.predict(houses[['street', 'area']])[hidden]):.0f}")
print(f"one model for all: {error(np.polyval(line, houses.area[hidden])):.0f}")
print(f"the mean price: {error(known.mean()):.0f}")

# %%
# The noise alone is 30: nobody can do better than that. What is left are streets at borders, which cannot know on
# which side they are. On your own table, ``ct.compare_baselines`` makes such a comparison with folds, and says in
# words who wins: :doc:`/start/when-it-does-not-help`.
