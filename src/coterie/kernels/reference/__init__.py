"""The kernels in NumPy: one form for each compiled function that others call, of the same name and arguments.

They need no compiler, so that small problems are solved at once; and they are what the compiled forms are tested
against. Registers and other arguments that only tell the compiler something are accepted, and not used. No NumPy form
imports Numba.
"""
