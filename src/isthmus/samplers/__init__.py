"""Samplers: from an objective to draws from the posterior distribution over graphs."""

from isthmus.samplers.base import Draws, Progress, Run, Sampler, drive
from isthmus.samplers.order_mcmc import OrderMCMC
from isthmus.samplers.partition_mcmc import PartitionMCMC

__all__ = ["Draws", "OrderMCMC", "PartitionMCMC", "Progress", "Run", "Sampler", "drive"]
