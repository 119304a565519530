"""Greedy searches over graphs and equivalence classes."""
