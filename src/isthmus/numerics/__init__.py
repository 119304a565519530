"""Compiled and array kernels: pure functions on arrays."""
