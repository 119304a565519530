"""Searches that optimise edge weights."""
