"""Which ψ a row has, for compiled kernels: one number for each family that `psi` has formulas of.

CLASSES is that of rows with several classes (`class_rows`), whose ψ is a function of more than one number.
"""

SQUARED, LOGISTIC, POISSON, HUBER, SQUARED_HINGE, CLASSES, QUANTILE = range(7)
