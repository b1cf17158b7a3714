"""Sampling trees and parameters from their posterior distribution by Markov chains."""
