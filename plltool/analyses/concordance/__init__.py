"""Concordance of genes and sites with a tree; trees of many genes."""
