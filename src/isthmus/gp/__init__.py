"""Marginal likelihoods of Gaussian-process regressions, from rows or from moments."""
