"""Unrooted binary trees as integer arrays, and the moves on them."""
