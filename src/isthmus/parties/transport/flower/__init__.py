"""Messages carried by Flower."""
