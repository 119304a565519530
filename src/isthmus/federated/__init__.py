"""Methods that learn across parties in many rounds, and are not sources of statistics."""

from __future__ import annotations

from isthmus.federated.admm.baselines import average, vote
from isthmus.federated.admm.clients import Client, LinearClient, NetworkClient
from isthmus.federated.admm.learn import DynamicADMM, LinearADMM, PerceptronADMM, learn_admm
from isthmus.federated.admm.requests import AskConsensus, AskNetworks
from isthmus.federated.admm.result import ADMMResult
from isthmus.federated.admm.steps import ADMM, Centring, Stiffness

__all__ = [
    "ADMM",
    "ADMMResult",
    "AskConsensus",
    "AskNetworks",
    "Centring",
    "Client",
    "DynamicADMM",
    "LinearADMM",
    "LinearClient",
    "NetworkClient",
    "PerceptronADMM",
    "Stiffness",
    "average",
    "learn_admm",
    "vote",
]
