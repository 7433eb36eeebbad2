"""Which ψ a row has, for compiled kernels: one number for each family that `psi` has formulas of."""

SQUARED, LOGISTIC, POISSON = range(3)
