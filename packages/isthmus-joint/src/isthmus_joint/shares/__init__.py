"""Two parties with different columns of the same people."""
