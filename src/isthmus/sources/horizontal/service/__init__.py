"""Real processes: a site as a service, and Flower as the carrier."""
