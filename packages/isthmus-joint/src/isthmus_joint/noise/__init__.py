"""Differential privacy: the budget of a study, its accounting, and noise."""
