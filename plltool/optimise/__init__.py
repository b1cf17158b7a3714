"""Optimisation of branch lengths and model parameters on a fixed topology."""
