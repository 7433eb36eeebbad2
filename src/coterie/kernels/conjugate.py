"""The steps of conjugate gradients on node vectors."""

from __future__ import annotations

from coterie.kernels.compiling import fastmath, jit


@fastmath
def inner(a, b):
    """⟨a, b⟩. (A threaded BLAS would wake its threads for each of these short sums, at many times the cost.)"""
    total = 0.0
    x, y = a.ravel(), b.ravel()
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@jit
def descend(alpha, p, Ap, inverse, x, r, z):
    """One step of preconditioned conjugate gradients: x ← x + αp, r ← r − αAp, z ← r · inverse."""
    X, R, Z, P, AP, J = x.ravel(), r.ravel(), z.ravel(), p.ravel(), Ap.ravel(), inverse.ravel()
    for i in range(len(X)):
        X[i] += alpha * P[i]
        R[i] -= alpha * AP[i]
        Z[i] = J[i] * R[i]


@jit
def turn(beta, z, p):
    """The next direction: p ← z + βp."""
    P, Z = p.ravel(), z.ravel()
    for i in range(len(P)):
        P[i] = Z[i] + beta * P[i]
