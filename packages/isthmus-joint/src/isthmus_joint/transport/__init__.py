"""Transports: they carry messages between the parties, and need not be trusted."""
