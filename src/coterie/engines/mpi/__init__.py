"""The engine for clusters: every rank of an MPI job holds a part of the network."""
