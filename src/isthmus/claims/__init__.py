"""Challenges of answers before they are stated: the next larger model, at the table's own n."""
