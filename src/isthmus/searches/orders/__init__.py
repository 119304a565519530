"""Searches over orders of the variables."""
