"""Samplers: from an objective to draws from the posterior distribution over graphs."""

from isthmus.samplers.base import Draws, Progress, Run, Sampler, drive

__all__ = ["Draws", "Progress", "Run", "Sampler", "drive"]
