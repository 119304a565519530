"""Many sites with the same columns: secure sums of their statistics."""
