"""Which ψ a row has, for compiled kernels: one number for each family that `psi` has formulas of."""

SQUARED, LOGISTIC, POISSON, HUBER, SQUARED_HINGE = range(5)
