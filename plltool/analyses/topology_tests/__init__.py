"""Tests of tree topologies."""
