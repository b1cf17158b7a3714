"""Substitution models: spec strings, eigensystems and mixture components."""
