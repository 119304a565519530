"""Requests: what a coordinator may ask the parties of a study."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from isthmus.errors import FormatError, IsthmusError
from isthmus.joint.agreement.protocol import register_request_name
from isthmus.joint.agreement.study import Study
from isthmus.lazy import provided


class Request(ABC):
    """A request to the parties of a study.

    An implementation is a frozen dataclass that `register_request` makes known. Studies and
    policies allow requests by their names. How a request is answered is a matter of its protocol,
    which has a subclass of its own.

    Attributes
    ----------
    name
        Name in studies and policies, and the first key of its JSON form.
    protocol
        Name of the protocol that carries it.
    caution
        Advice for those who sign a study with this request; empty for none.
    """

    name: ClassVar[str]
    protocol: ClassVar[str]
    caution: ClassVar[str] = ""

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the answer is computed from."""

    @abstractmethod
    def violations(self, study: Study) -> list[str]:
        """Return a phrase for each rule of the study that this particular request breaks."""

    def window_violations(self, study: Study) -> list[str]:
        """Return a phrase if the request looks at data through a window that nobody signed."""
        return []

    @classmethod
    @abstractmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON. The first key is `name`."""

    @abstractmethod
    def __str__(self) -> str:
        """Describe in one phrase what is requested, for ledgers and disclosures."""

    def to_bytes(self) -> bytes:
        """Return the request as it is sent: JSON without spaces."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False).encode()


_REQUESTS: dict[str, type[Request]] = {}

R = TypeVar("R", bound=type[Request])


def register_request(request: R) -> R:
    """Make a request known by its name; use it as a decorator of the class."""
    _REQUESTS[request.name] = request
    register_request_name(request.protocol, request.name)
    return request


def registered_request(name: str) -> type[Request]:
    """Return the request of this name, which must be registered."""
    provided("protocols and requests of studies")
    return _REQUESTS[name]


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
