"""Learn Bayesian networks from data that cannot be brought together."""
