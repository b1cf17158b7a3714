"""Samples from the posterior distribution of trees and parameters."""
