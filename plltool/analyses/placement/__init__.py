"""Placement of further sequences on a tree."""
