"""
Convex clustering
=================

Points instead of datasets: every point wants to stay where it is and to be near its neighbours, and those that become
one are a cluster. The problem is convex, so the answer does not depend on a start, and it has a certificate.
"""

# %%
# Two moons
# ---------
# Made by scikit-learn. k-means, which looks for round clusters, cannot tell them apart.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import adjusted_rand_score

import coterie as ct

X, truth = make_moons(150, noise=0.08, random_state=0)
model = ct.ConvexClustering(n_clusters=2, n_lams=30).fit(X)
print(model.solution_)
print(f"agreement with the truth: {adjusted_rand_score(truth, model.labels_):.2f}")
k_means = KMeans(2, n_init=5, random_state=0).fit_predict(X)
print(f"k-means: {adjusted_rand_score(truth, k_means):.2f}")

# %%
# Crosses are where the points have gone to: w, the solution at the λ of the last merge.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
colours = np.array(["#0072b2", "#e69f00"])[model.labels_]
axes[0].scatter(*X.T, c=colours, s=18)
axes[0].scatter(*model.solution_.w.T, c=colours, marker="x", s=40)
axes[0].set(title="points, and where they meet", aspect="equal")
model.plot_dendrogram(ax=axes[1])
axes[1].set_title("the tree of merges")

# %%
# Irises
# ------
# Scikit-learn's bundled table of 150 flowers of three species. One species is apart, the other two overlap: asked for
# three clusters, the tree cuts off a single flower. Clusters that touch are not what this method finds.

flowers, species = load_iris(return_X_y=True)
flowers = (flowers - flowers.mean(axis=0)) / flowers.std(axis=0)
for k in (2, 3):
    labels = ct.ConvexClustering(n_clusters=k, n_lams=30).fit(flowers).labels_
    agreement = adjusted_rand_score(species, labels)
    print(
        f"{k} clusters of sizes {np.sort(np.bincount(labels))[::-1]}, agreement {agreement:.2f}"
    )

# %%
# Columns were scaled first, since distances count them by their size. The parameters: :doc:`/clustering`.
