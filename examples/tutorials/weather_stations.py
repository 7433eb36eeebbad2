"""
Weather stations
================

A hundred stations measure temperature at different heights above the sea. How fast does it get colder with height?
Some nights cold air lies in the valleys, and there the answer is the other way round. Some have just been built, and
have no measurements at all.

The stations are synthetic. With real ones the network may be of no use at all, which is a result as well:
:doc:`/real-data` has the temperatures of a Finnish winter, where one model for all stations is as good.
"""

# %%
# The stations
# ------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import coterie as ct

rng = np.random.default_rng(3)
stations = pd.DataFrame({"station": [f"S{k:02d}" for k in range(100)]})
stations["lat"] = rng.uniform(46, 47, 100)
stations["lon"] = np.r_[
    rng.uniform(8.0, 8.9, 50), rng.uniform(9.1, 10.0, 50)
]  # ridge between
stations["valley"] = stations.lon > 9
stations["new"] = rng.random(100) < 0.3

rows = stations.loc[np.repeat(np.arange(100), 6)].reset_index(drop=True)  # six nights each
rows["height"] = rng.uniform(0.2, 2.0, len(rows))  # km above the sea, of a balloon
rows["wind"] = rng.exponential(3.0, len(rows))
slope = np.where(rows.valley, 2.0, -6.5)  # degrees per km: inversions in valleys
noise = 1.5 * rng.standard_normal(len(rows))
rows["temperature"] = 5 + slope * rows.height + 0.2 * rows.wind + noise
rows.loc[rows.new, "temperature"] = np.nan
print(rows[["station", "height", "wind", "temperature"]].head(3).round(1))

# %%
# A graph from places
# -------------------
# Latitude and longitude are degrees; distances are kilometres on the sphere.

graph = ct.knn_graph(stations[["lat", "lon"]], k=5, ids=list(stations.station))

# %%
# Fit, and look at the new stations
# ---------------------------------

X, y = rows[["station", "height", "wind"]], rows.temperature
model = ct.NetworkedLinearRegressionCV(graph, n_lams=12, cv=4, random_state=0)
model.fit(X, y, groups="station")
coefficients = model.coef_frame().assign(new=stations.new)
print(coefficients[coefficients.new].head(5).round(2))

# %%
# New stations have a frame around them. They have the model of their neighbours. The notes say where stations are.

places = stations[["lat", "lon"]].values.tolist()
model.notes_ = {"coordinates": {"names": ["lat", "lon"], "values": places}}
new = stations[stations.new]
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ct.plot.network(model, by="height", ax=axes[0])
axes[0].plot(new.lon, new.lat, "s", mfc="none", mec="black", markersize=11)
ct.plot.lam_choice(model, ax=axes[1])

# %%
# Does the network help?
# ----------------------
# The same folds for six methods. Two of them, with a level per station, are what a statistician would try first.

comparison = ct.compare_baselines(model, X, y, "station", cv=4)
print(comparison.frame().round(2).to_string(index=False))
print(comparison.verdict)

# %%
# ``coterie fit`` does all of this from files, without Python: :doc:`/cli`.
