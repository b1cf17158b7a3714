"""Other processes that a run uses: children, the ranks of an MPI job, and workers, which are either."""
