"""The transport between machines, based on Flower."""
