"""Searches that prove their graph optimal."""
