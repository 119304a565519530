# `isthmus.lazy` imports each name when it is first used, so that a first `learn` is quick.

from isthmus.samplers.base import Draws, Progress, Sampler, Watch, drive
from isthmus.samplers.chains import ChainSampler, OrderMCMC, PartitionMCMC
from isthmus.samplers.exact_posterior import ExactPosterior
from isthmus.samplers.structure_mcmc import StructureMCMC

__all__ = [
    "ChainSampler",
    "Draws",
    "ExactPosterior",
    "OrderMCMC",
    "PartitionMCMC",
    "Progress",
    "Sampler",
    "StructureMCMC",
    "Watch",
    "drive",
]
