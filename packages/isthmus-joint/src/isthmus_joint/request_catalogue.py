"""The requests that parties can answer, by their names in studies and policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from isthmus.errors import FormatError, IsthmusError
from isthmus_joint.agreement.protocol_catalogue import register_request_name
from isthmus_joint.agreement.requests import Request
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.requests.base import SumRequest
from isthmus_joint.federation.requests.expectation import AskExpectation
from isthmus_joint.federation.requests.fixed_point import NUMBERS, FixedPointEncoding
from isthmus_joint.federation.requests.statistics import AskCounts, AskFeatures, AskMoments
from isthmus_joint.methods.admm import AskConsensus, AskNetworks
from isthmus_joint.shares import requests as two_parties

REQUESTS: tuple[type[Request], ...] = (
    AskCounts,
    AskMoments,
    AskFeatures,
    AskExpectation,
    AskConsensus,
    AskNetworks,
    two_parties.PrivateK2Request,
    two_parties.StructureOnlyRequest,
    two_parties.OwnTables,
    two_parties.IntersectionSize,
    two_parties.CrossMoments,
)
"""The requests of this package; each protocol lists the names of its own."""

R = TypeVar("R", bound=type[Request])

_requests: dict[str, type[Request]] = {request.name: request for request in REQUESTS}


def register_request(request: R) -> R:
    """Make a request of another package known by its name; use it as a decorator of the class."""
    _requests[request.name] = request
    register_request_name(request.protocol, request.name)
    return request


def registered_request(name: str) -> type[Request]:
    """Return the request of this name, which must be registered."""
    return _requests[name]


def read_request(data: bytes, study: Study) -> Request:
    """Read what `Request.to_bytes` wrote; `FormatError` for anything else."""
    try:
        plain: Any = json.loads(data)
        name = next(iter(plain)) if isinstance(plain, Mapping) else ""
        request = registered_request(name).from_dict(plain)
        if request.to_bytes() != data:
            raise FormatError("it is not in its canonical form")
        if request.protocol != study.protocol.name:
            raise FormatError("it belongs to another protocol")
        study.schema.indices(request.variables)
    except (
        ValueError,
        TypeError,
        OverflowError,
        KeyError,
        AttributeError,
        StopIteration,
        RecursionError,
        IsthmusError,
    ) as error:
        raise FormatError("This is not a request that fits the study.") from error
    return request


def read_sum_request(data: bytes, study: Study, grid: FixedPointEncoding) -> SumRequest[Any]:
    """Read a request that secure sums can answer; `FormatError` for anything else."""
    request = read_request(data, study)
    if not isinstance(request, SumRequest):
        raise FormatError(f"Secure sums cannot answer a request for {request.name}.")
    if request.violations(study):
        return request  # it will be refused; its size may be beyond computing
    try:
        size = request.size(grid)
    except (IsthmusError, ValueError, TypeError, OverflowError) as error:
        raise FormatError("This is not a request that fits the study.") from error
    if size > NUMBERS:
        raise FormatError(f"The request asks for {size} numbers; {NUMBERS} are allowed.")
    return request
