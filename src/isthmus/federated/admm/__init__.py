"""Federated structure learning by ADMM over model parameters."""
