"""Supports of branches: replicates, ultrafast bootstraps, tests of branches."""
