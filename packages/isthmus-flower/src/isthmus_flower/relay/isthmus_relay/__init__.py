"""Carries frames; runs in Flower's processes and knows nothing of data, keys or statistics."""
