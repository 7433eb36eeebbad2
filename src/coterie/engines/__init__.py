"""Engines run the iterations; `coterie.solver` decides which and how many."""
