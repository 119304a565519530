"""Learn Bayesian networks from one table, or from data that must stay where they are."""

from __future__ import annotations

from typing import Any

from isthmus.lazy import lazy_names, provide

# The public names and their modules are in __init__.pyi; each is imported when it is first used.
_imported, _names, __all__ = lazy_names(__name__)

# Lower layers do not know these modules, and load them when they need what is named here.
provide("drawings for notebooks", "isthmus.plots.notebook")
provide(
    "protocols and requests of studies",
    "isthmus.joint.secure_sum.protocol",
    "isthmus.joint.federation.requests.statistics",
    "isthmus.joint.federation.requests.expectation",
    "isthmus.joint.methods.admm.requests",
    "isthmus.joint.shares.requests",
)
provide("statistics of solutions in files", "isthmus.compose.evidence")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("isthmus")
    return _imported(name)


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
