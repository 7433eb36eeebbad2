"""What every engine must do, computed densely, node by node and edge by edge.

To check another engine, add it to ENGINES of `test_engines.py`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

import coterie as ct
from coterie.engines.base import RELAXATION, Mode
from coterie.engines.models import FAR
from coterie.problem.losses.base import penalised_columns
from problems import rows_of_node


class NaiveEngine:
    """z = (w, u) as two dense arrays, T by loops, the metric as one dense matrix."""

    def __init__(self, problem: ct.Problem, w: np.ndarray, u: np.ndarray, tau: np.ndarray, sigma: np.ndarray) -> None:
        self.problem, self.tau, self.sigma = problem, tau, sigma
        self.w, self.u = w, u
        self.w_hat, self.u_hat = w, u
        self.anchor, self.k = (w, u), 0
        self.losses = {}
        self.centre, self.models = None, {}
        for k, i in enumerate(problem.M):
            X, y = rows_of_node(problem.data.labelled, k)
            alone = ct.LocalDatasets.from_rows(X, y, np.zeros(len(y), dtype=int))
            self.losses[int(i)] = problem.loss.bind(alone.labelled)

    def dual_operator(self) -> None:
        """ŵ = argmin f + ⟨Dᵀu, ·⟩ by normal equations, û = prox(u + σDŵ)."""
        edges, c, rows = self.problem.graph.edges, self.problem.c, self.problem.data.labelled
        flow = self.problem.graph.D.T @ self.u
        w_hat, u_hat = np.empty_like(self.w), np.empty_like(self.u)
        for i in range(len(self.w)):
            X, y = rows_of_node(rows, i)
            w_hat[i] = np.linalg.solve(2 / len(y) * X.T @ X, 2 / len(y) * X.T @ y - flow[i])
        for e, (a, b) in enumerate(edges):
            moved = (self.u[e] + self.sigma[e] * (w_hat[a] - w_hat[b]))[None]
            u_hat[e] = self.problem.penalty.dual_step(moved, c[e : e + 1], self.sigma[e : e + 1])[0]
        self.w_hat, self.u_hat = w_hat, u_hat

    def dual_step(self) -> float:
        self.dual_operator()
        r = float(np.sqrt(((self.u_hat - self.u) ** 2 / self.sigma[:, None]).sum()))
        before = self.anchor[1]
        self.w, self.u = self.w_hat, self.u_hat + self.k / (self.k + 3) * (self.u_hat - before)
        self.anchor = self.anchor[0], self.u_hat
        self.k += 1
        return r

    def operator(self) -> None:
        edges, c = self.problem.graph.edges, self.problem.c
        w_hat, u_hat = np.empty_like(self.w), np.empty_like(self.u)
        for i in range(len(self.w)):
            flow = sum((self.u[e] if a == i else -self.u[e] for e, (a, b) in enumerate(edges) if i in (a, b)), 0.0)
            v = self.w[i] - self.tau[i] * flow
            if i in self.losses:
                v = self.primal_update(i, v)
            w_hat[i] = v
        for e, (a, b) in enumerate(edges):
            difference = (2 * w_hat[a] - self.w[a]) - (2 * w_hat[b] - self.w[b])
            moved = (self.u[e] + self.sigma[e] * difference)[None]
            u_hat[e] = self.problem.penalty.dual_step(moved, c[e : e + 1], self.sigma[e : e + 1])[0]
        self.w_hat, self.u_hat = w_hat, u_hat

    def primal_update(self, i: int, v: np.ndarray) -> np.ndarray:
        if not self.models:
            return self.losses[i].prox(v[None], self.tau[i : i + 1], v[None])[0]
        slope, H = self.models[i]
        inverse = np.linalg.inv(np.eye(len(v)) / self.tau[i] + H)
        return inverse @ (v / self.tau[i] + H @ self.centre[i] - slope)

    def model(self) -> None:
        """log(1 + e^z) − yz of every row has, around z₀, the largest curvature that it has on the way there.

        The models of other losses are their own: these are compared with the losses elsewhere.
        """
        before, self.centre, self.models = self.centre, self.w_hat, {}
        if not isinstance(self.problem.loss, ct.Logistic):
            at = {
                i: loss.model(self.centre[[i]], None if before is None else before[[i]])
                for i, loss in self.losses.items()
            }
            if all(found is not None and (found.everywhere or found.change <= FAR) for found in at.values()):
                self.models = {i: (found.slope[0], found.H[0]) for i, found in at.items()}
            return
        for k, i in enumerate(self.problem.M):
            X, y = rows_of_node(self.problem.data.labelled, k)
            z = X @ self.centre[i]
            nearest = 0 * z if before is None else np.maximum(np.abs(z) - np.abs(X @ (self.centre[i] - before[i])), 0)
            curvature = expit(nearest) * expit(-nearest) / len(y)
            ridge = self.problem.loss.ridge * penalised_columns(X.shape[1], self.problem.loss.unpenalised)
            slope = X.T @ (expit(z) - y) / len(y) + 2 * ridge * self.centre[i]
            self.models[int(i)] = slope, X.T @ np.diag(curvature) @ X + 2 * np.diag(ridge)

    def residual(self) -> float:
        """√⟨dz, M dz⟩ with M = [[T⁻¹, −Dᵀ], [−D, Σ⁻¹]], in which T is firmly non-expansive."""
        D = self.problem.graph.D.toarray()
        metric = np.block([[np.diag(1 / self.tau), -D.T], [-D, np.diag(1 / self.sigma)]])
        dz = np.vstack([self.w_hat - self.w, self.u_hat - self.u])
        return float(np.sqrt(max(np.trace(dz.T @ metric @ dz), 0.0)))

    def advance(self, n_iter: int, mode: Mode) -> float:
        self.model()
        for _ in range(n_iter):
            if mode is Mode.DUAL:
                r = self.dual_step()
                continue
            self.operator()
            r = self.residual()
            moved = []
            for z, z_hat, z_0 in zip((self.w, self.u), (self.w_hat, self.u_hat), self.anchor, strict=True):
                if mode is Mode.RELAXED:
                    moved.append(z + RELAXATION * (z_hat - z))
                else:
                    moved.append(((self.k + 1) * (2 * z_hat - z) + z_0) / (self.k + 2))
            self.w, self.u = moved
            self.k += 1
        return r

    def restart(self) -> tuple[float, float]:
        self.w, self.u = self.w_hat, self.u_hat
        (w_0, u_0), self.anchor, self.k = self.anchor, (self.w, self.u), 0
        primal = sum(sum((self.w[i] - w_0[i]) ** 2) / self.tau[i] for i in range(len(w_0))) ** 0.5
        dual = sum(sum((self.u[e] - u_0[e]) ** 2) / self.sigma[e] for e in range(len(u_0))) ** 0.5
        return primal, dual
