"""ADMM over a federation, and what sites could do without it."""
