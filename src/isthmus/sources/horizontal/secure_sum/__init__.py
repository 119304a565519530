"""The protocol of secure sums: it knows bytes, not data."""
