"""Tests of conditional independence, one per file."""
