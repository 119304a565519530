"""Searches by tests of conditional independence, and hybrids that begin with a score."""
