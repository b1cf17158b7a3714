"""Statistics of site likelihoods: resampling, tests of topologies."""
