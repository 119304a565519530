# `isthmus.lazy` imports each name when it is first used, so that a first `learn` is quick.

from isthmus.samplers.chains import (
    ChainSampler,
    Draws,
    ExactPosterior,
    OrderMCMC,
    PartitionMCMC,
    Sampler,
)
from isthmus.samplers.structure_mcmc import StructureMCMC

__all__ = [
    "ChainSampler",
    "Draws",
    "ExactPosterior",
    "OrderMCMC",
    "PartitionMCMC",
    "Sampler",
    "StructureMCMC",
]
