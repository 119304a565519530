"""Learning methods that run across parties and are not a source of statistics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.federated.admm.agreed import Agreed
    from isthmus.federated.admm.baselines import average, vote
    from isthmus.federated.admm.consensus import Client, LinearClient, NetworkClient
    from isthmus.federated.admm.learn import DynamicADMM, LinearADMM, PerceptronADMM, learn_admm
    from isthmus.federated.admm.requests import AskConsensus, AskNetworks, Step
    from isthmus.federated.admm.steps import ADMM, Centring, Stiffness

_HOMES = {
    "ADMM": "isthmus.federated.admm.steps",
    "Agreed": "isthmus.federated.admm.agreed",
    "AskConsensus": "isthmus.federated.admm.requests",
    "AskNetworks": "isthmus.federated.admm.requests",
    "Centring": "isthmus.federated.admm.steps",
    "Client": "isthmus.federated.admm.consensus",
    "DynamicADMM": "isthmus.federated.admm.learn",
    "LinearADMM": "isthmus.federated.admm.learn",
    "LinearClient": "isthmus.federated.admm.consensus",
    "NetworkClient": "isthmus.federated.admm.consensus",
    "PerceptronADMM": "isthmus.federated.admm.learn",
    "Step": "isthmus.federated.admm.requests",
    "Stiffness": "isthmus.federated.admm.steps",
    "average": "isthmus.federated.admm.baselines",
    "learn_admm": "isthmus.federated.admm.learn",
    "vote": "isthmus.federated.admm.baselines",
}

__all__ = [
    "ADMM",
    "Agreed",
    "AskConsensus",
    "AskNetworks",
    "Centring",
    "Client",
    "DynamicADMM",
    "LinearADMM",
    "LinearClient",
    "NetworkClient",
    "PerceptronADMM",
    "Step",
    "Stiffness",
    "average",
    "learn_admm",
    "vote",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
