"""Samplers: from an objective to draws from the posterior distribution over graphs."""

from isthmus.samplers.base import Draws, Progress, Run, Sampler, drive
from isthmus.samplers.chain_sampler import ChainSampler, OrderMCMC, PartitionMCMC
from isthmus.samplers.exact_posterior import ExactPosterior
from isthmus.samplers.structure_mcmc import StructureMCMC

__all__ = [
    "ChainSampler",
    "Draws",
    "ExactPosterior",
    "OrderMCMC",
    "PartitionMCMC",
    "Progress",
    "Run",
    "Sampler",
    "StructureMCMC",
    "drive",
]
