"""
Counts and classes
==================

Not every label is a number with symmetric noise. Shops count sales; clinics ask who comes back. A *loss* says what
kind of labels there are, and everything else stays the same: graph, λ, clusters, certificate. All data here are
synthetic.
"""

# %%
# Counts
# ------
# Eighty shops along two roads count how many umbrellas they sell on rainy days. A count has a rate exp(z), with z
# linear in the features. Days differ in the number of opening hours, which is an *exposure*: its logarithm is an
# offset.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import coterie as ct

rng = np.random.default_rng(0)
shops = np.repeat(np.arange(80), 5)  # five days each
east = shops >= 40
rain = rng.uniform(0, 2, 400)
hours = rng.choice([4, 8, 12], 400)
sales = rng.poisson(hours * np.exp(np.where(east, -2.0 + 1.5 * rain, -1.0 + 0.2 * rain)))
road = ct.EmpiricalGraph.from_edges([(k, k + 1) for k in range(79)])

# %%
# The roads meet between the shops 39 and 40. At this level, a problem is stated from its parts: a column of ones is
# the intercept, and the group penalty lets it change where the effect of rain does.

X = np.c_[rain, np.ones(400)]
data = ct.LocalDatasets.from_rows(X, sales, shops, n_nodes=80, offset=np.log(hours))
loss = ct.Poisson(ridge=1e-3, unpenalised=(1,))
counts = ct.solve(ct.Problem(road, data, loss, ct.GroupTotalVariation(), lam=5.0))
print(counts)
print(f"first road: rate × {np.exp(counts.w[0, 0]):.2f} for each unit of rain")
print(f"second road: rate × {np.exp(counts.w[-1, 0]):.2f}")

# %%
# The two roads are drawn towards each other a little: that is what λ costs. Squared error on the same counts would be
# pulled about by the few busy days, because large counts vary more.

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.step(range(80), counts.w[:, 0], where="mid", label="learnt")
truth = np.where(np.arange(80) >= 40, 1.5, 0.2)
ax.step(range(80), truth, "--", where="mid", color="black", label="truth")
ax.set(xlabel="shop, along the road", ylabel="effect of rain on the log rate")
ax.legend()

# %%
# Classes
# -------
# Sixty clinics in three regions ask which patients come back within a month. ``NetworkedLogisticRegression`` takes
# labels of any two names. One clinic in four has not reported yet.

clinics = [f"clinic {k}" for k in range(60)]
region = np.arange(60) // 20
edges = pd.DataFrame(
    [
        (clinics[i], clinics[j])
        for i in range(60)
        for j in range(i)
        if region[i] == region[j] and rng.random() < 0.4
    ]
    + [("clinic 5", "clinic 25"), ("clinic 30", "clinic 50")],
    columns=["from", "to"],
)
who = rng.integers(0, 60, 800)
patients = pd.DataFrame({"clinic": np.array(clinics)[who]})
patients["age"], patients["stay"] = rng.normal(60, 12, 800), rng.gamma(2, 2, 800)
age_effect, stay_effect = np.array([[0.1, -0.1, 0.0], [0.0, 0.3, 0.6]])[:, region[who]]
z = age_effect * (patients.age - 60) + stay_effect * (patients.stay - 4)
comes_back = rng.random(800) < 1 / (1 + np.exp(-z))
back = pd.Series(np.where(comes_back, "back", "not back"), name="patient")
reported = rng.random(60) < 0.75
label = back.where(reported[who], None)

model = ct.NetworkedLogisticRegressionCV(edges, n_lams=8, cv=3, random_state=0)
model.fit(patients, label, groups="clinic")
print(f"λ = {model.lam_:.2g}, certified gap {model.gap_:.0e}")
print(f"{model.held_out_.measure} of held-out labels: {model.held_out_.error:.3f}")

# %%
# Probabilities for patients of clinics that have not reported, and how often the likelier class is right:

unseen = ~reported[who]
likely = model.predict(patients[unseen])
print(f"right in {np.mean(likely == back[unseen]):.0%} of {unseen.sum()} cases")
print(
    f"always the more frequent class: {back[unseen].value_counts(normalize=True).max():.0%}"
)
print(model.predict_proba(patients[unseen].head(3)).round(2), model.classes_)

# %%
# The models of the clusters, as a heat map: what the prediction changes by when a column changes by one standard
# deviation.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ct.plot.coefficients(model, ax=ax)

# %%
# From a table, counts have an estimator too, ``ct.NetworkedPoissonRegressionCV`` with ``exposure="hours"``; so have
# outliers (``ct.NetworkedHuberRegressionCV``) and quantiles (``ct.NetworkedQuantileRegressionCV``): :doc:`/estimators`.
# A loss of your own is a function of about ten lines: :doc:`/how-to/add-a-loss`.
