"""
A cluster
=========

Three things that people want of many machines: many models at once, folds at the same time, and one network that is
too large for one place. Each is shown here in a form that runs on a laptop.
"""

# %%
# Many models: a job array
# ------------------------
# Models for different targets, years or λ have nothing to do with each other. Let the scheduler run one ``coterie
# fit`` for each. With Slurm, and a file ``targets.txt`` with one column per line:
#
# .. code-block:: bash
#
#    #!/bin/bash
#    #SBATCH --array=1-12 --cpus-per-task=4 --mem=8G
#    target=$(sed -n "${SLURM_ARRAY_TASK_ID}p" targets.txt)
#    coterie fit rows.parquet --node station --target "$target" --graph edges.csv \
#        --out "models/$target"
#
# A job that the scheduler ends (SIGTERM) writes the best certified model that it has. Exit code 3 says that the gap
# asked for was not reached; :doc:`/cli` lists all codes. Threads are as many as the job has cores;
# ``NUMBA_NUM_THREADS`` is respected.

# %%
# Folds at the same time
# ----------------------
# ``n_jobs`` solves folds in processes of their own. The result is the same.

import matplotlib.pyplot as plt
import numpy as np

import coterie as ct
from coterie.datasets import stochastic_block_model

network = stochastic_block_model((30, 30), p_in=0.3, p_out=0.01, labelled=40, noise=0.5)
data = network.data
chosen = [
    ct.NetworkedLinearRegressionCV(
        network.graph, n_lams=6, cv=2, n_jobs=n_jobs, random_state=0
    )
    .fit(data.X, data.y, groups=data.nodes)
    .lam_
    for n_jobs in (1, 2)
]
print(f"λ with one process {chosen[0]:.6g}, with two {chosen[1]:.6g}")

# %%
# One network in parts
# --------------------
# A large network is cut into parts: each holds its nodes, rows and inner edges, and only boundary weights travel. How
# much that is depends on the cut. Here is a network of 200 points in the plane, in stripes and at random:

from coterie.federation.simulate import simulate

rng = np.random.default_rng(0)
places = rng.uniform(0, 1, (200, 2))
graph = ct.knn_graph(places, k=5, metric="euclidean")
nodes = np.repeat(np.arange(200), 3)
X = rng.standard_normal((600, 2))
y = np.where(places[nodes, 0] < 0.5, X @ [2, 1], X @ [-1, 1]) + 0.3 * rng.normal(size=600)
problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=200), lam=0.05)

cuts = {"stripes": (4 * places[:, 0]).astype(int), "at random": rng.integers(0, 4, 200)}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, part_of) in zip(axes, cuts.items()):
    crossing = part_of[graph.edges[:, 0]] != part_of[graph.edges[:, 1]]
    ax.scatter(*places.T, c=part_of, cmap="cividis", s=12, zorder=2)
    for i, j in graph.edges[crossing]:
        ax.plot(*places[[i, j]].T, color="#d55e00", linewidth=0.7, zorder=1)
    ax.set(
        title=f"{name}: {crossing.sum()} of {graph.n_edges} edges are cut", aspect="equal"
    )
    ax.set_axis_off()

# %%
# Four parts that exchange boundary weights find the optimum of the whole, with a certificate:

run = simulate(problem, cuts["stripes"])
print(f"in four parts: {run.outcome.rounds} rounds, gap {run.outcome.gap:.1e}")
print(f"to the server: {run.to_server:,} bytes")
print(f"in one place: {ct.solve(problem)}")

# %%
# Real ranks
# ----------
# Those parts were in one process, and a server stood between them. On a cluster every part is a process of its own, a
# *rank* of an MPI job, and talks to its neighbours alone. METIS makes the cut. The program of every rank:

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

PROGRAM = """
import numpy as np
from mpi4py import MPI

import coterie as ct

rows = np.load("network.npz")
graph = ct.EmpiricalGraph.from_edges(rows["edges"], weights=rows["weights"])
data = ct.LocalDatasets.from_rows(rows["X"], rows["y"], rows["nodes"], n_nodes=graph.n_nodes)
solution = ct.solve(ct.Problem(graph, data, lam=0.05), engine="mpi")
if MPI.COMM_WORLD.rank == 0:
    print(f"{MPI.COMM_WORLD.size} ranks: {solution.status.name}, gap {solution.gap:.1e}")
    print(f"objective {solution.objective:.6f}")
"""

# %%
# ``mpiexec`` starts it, here twice on this machine. Both come with ``pip install '.[mpi]'``. Where they are missing,
# the block says so and starts nothing.

path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
mpiexec = shutil.which("mpiexec", path=path)
if mpiexec is None or find_spec("mpi4py") is None:
    print("mpi4py is not installed here: no ranks were started")
else:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(
            Path(folder, "network.npz"),
            edges=graph.edges,
            weights=graph.weights,
            X=X,
            y=y,
            nodes=nodes,
        )
        Path(folder, "program.py").write_text(PROGRAM, encoding="utf-8")
        command = [mpiexec, "-n", "2", sys.executable, "program.py"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=120, check=True
        )
        print(done.stdout)

# %%
# The objective in one process, to compare: the same, within the gap.

print(f"objective {ct.solve(problem).objective:.6f}")

# %%
# From files it is ``mpiexec -n 4 coterie fit … --engine mpi``. :doc:`/cluster` has what a rank holds, how many of them
# pay (a network of 200 nodes gains nothing), and checkpoints.
#
# How a cut is made and what each part keeps: :doc:`/how-it-works/partition`. If one machine has a GPU, try that
# first: ten million nodes and a hundred million edges fit on one card (:doc:`/gpu`).
