"""Files that the ranks of an MPI job read together: each a share, and what it reads goes to whose node it is about."""
