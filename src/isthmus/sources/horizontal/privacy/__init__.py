"""Statistics with noise for differential privacy: integers at the sites, estimates from sums."""
