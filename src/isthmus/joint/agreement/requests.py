"""Requests: what a coordinator may ask the parties of a study."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from isthmus.joint.agreement.study import Study


class Request(ABC):
    """A request to the parties of a study.

    An implementation is a frozen dataclass in `request_catalogue`. Studies and
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
