"""Requests for sums of statistics over the sites."""
