"""Cohorts: the frozen rows that a site answers from, and the check that is made once."""
