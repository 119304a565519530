"""Requests: what a coordinator may ask the parties of a study."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from isthmus_joint.agreement.study import Study


class Request(ABC):
    """A request to the parties of a study.

    An implementation is a frozen dataclass in `request_catalogue`. Studies and
    policies allow requests by their names. How a request is answered is a matter of its protocol,
    which has a subclass of its own.

    The JSON form follows from the fields: the first one has the name of the request as its key, and
    fields that have their default are left out.

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
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the answer is computed from: by default the first field."""
        names: tuple[str, ...] = getattr(self, _keys(type(self))[self.name])
        return names

    @abstractmethod
    def violations(self, study: Study) -> list[str]:
        """Return a phrase for each rule of the study that this particular request breaks."""

    def window_violations(self, study: Study) -> list[str]:
        """Return a phrase if the request looks at data through a window that nobody signed."""
        return []

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote. What else it reads has another JSON form."""
        hints, keys = get_type_hints(cls), _keys(cls)
        return cls(**{keys[key]: _read(hints[keys[key]], given) for key, given in plain.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON. The first key is `name`."""
        values: Any = self
        defaults = {f.name: f.default for f in fields(values)}
        given = {key: getattr(self, name) for key, name in _keys(type(self)).items()}
        return {
            key: _plain(value)
            for key, value in given.items()
            if key == self.name or value != defaults[key]
        }

    @abstractmethod
    def __str__(self) -> str:
        """Describe in one phrase what is requested, for ledgers and disclosures."""

    def to_bytes(self) -> bytes:
        """Return the request as it is sent: JSON without spaces."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False).encode()


def _keys(kind: Any) -> dict[str, str]:
    """Return the name of the field behind each key of the JSON form."""
    first, *others = (f.name for f in fields(kind))
    return {kind.name: first, **{name: name for name in others}}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(own) for name, own in asdict(value).items()}
    if not isinstance(value, tuple):
        return value
    return list(map(_plain, value)) if value and isinstance(value[0], tuple) else list(value)


def _read(hint: Any, given: Any) -> Any:
    """Return the value of a type that a JSON form stands for, if it is one."""
    if hasattr(hint, "from_dict"):
        return hint.from_dict(given)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        made: Any = hint
        return made(**{name: _read(hints[name], own) for name, own in given.items()})
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        single = isinstance(kind, type)  # there may be many of them
        return tuple(map(kind, given) if single else (_read(kind, item) for item in given))
    return (get_args(hint)[0] if isinstance(hint, UnionType) else hint)(given)
