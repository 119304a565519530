"""Secure sums: frames in, frames out. Nothing here knows data or files of a study."""
