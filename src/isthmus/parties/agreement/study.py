"""The study: what was agreed on, in one file whose hash is in every message and every key."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, final

from isthmus.errors import IsthmusError, StudyError
from isthmus.parties.agreement.roster import FEWEST, Member, Terms, default_threshold
from isthmus.parties.agreement.toml import Reader, document
from isthmus.parties.identity import (
    Identity,
    Verifier,
    digest,
    key_bytes,
    key_text,
)
from isthmus.sources.horizontal.requests.grid import Grid
from isthmus.sources.horizontal.requests.sums import Message
from isthmus.statistics import Kind, Plan, Schema, Variable

FORMAT = "isthmus-study/1"
AUTHOR = "author"


class Method(StrEnum):
    """How the sites work together."""

    SECURE_SUMS = "secure sums"
    ADMM = "admm"


@final
@dataclass(frozen=True)
class Study:
    """A study as it was signed.

    Read one with `read`, make one with `draft`.

    Attributes
    ----------
    text
        The file, byte by byte.
    title, purpose
        For people.
    author, coordinator
        Public keys of who wrote it and of who runs it.
    members
        The sites, with their organisations and public keys.
    grid
        Variables, their levels and bounds, and the most rows a site may have.
    method, messages, plan
        What may be asked: how, which statistics, which tables.
    rounds
        How many rounds may be opened.
    threshold, organisations
        How many sites and organisations must be in every sum.
    fixed_membership
        Whether all sums of the study must be over the same sites, so that nobody can subtract one
        from another.
    expires
        When the sites stop to answer.
    code
        Hashes of the versions of this package that may take part.
    """

    text: bytes = field(repr=False)
    title: str
    purpose: str
    author: bytes
    coordinator: bytes
    members: tuple[Member, ...]
    grid: Grid
    method: Method
    messages: frozenset[Message]
    plan: Plan | None
    rounds: int
    threshold: int
    organisations: int
    fixed_membership: bool
    expires: datetime
    code: tuple[str, ...]

    @cached_property
    def identity(self) -> bytes:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text).digest()

    @property
    def schema(self) -> Schema:
        """The variables."""
        return self.grid.schema

    @cached_property
    def terms(self) -> Terms:
        """What the protocol needs of it."""
        return Terms(
            self.identity, self.members, self.coordinator, self.threshold, self.organisations
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Study:
        """Read a study file."""
        return cls.parse(Path(path).read_bytes())

    @classmethod
    def parse(cls, data: bytes) -> Study:
        """Read the bytes of a study file; `StudyError` names all mistakes."""
        top = Reader.of(data, "study")
        if top.take("format", str) != FORMAT:
            top.wrong.append(f"format must be {FORMAT!r}")
        title, purpose = top.take("title", str), top.take("purpose", str)
        author, coordinator = (top.tried(k, key_bytes) for k in ("author", "coordinator"))
        members = _members(top)
        schema, bounds = _variables(top)
        rows, rounds = top.whole("rows", 1), top.whole("rounds", 1)
        threshold = top.take("threshold", int, max(default_threshold(len(members)), FEWEST))
        organisations = top.whole("organisations", FEWEST)
        fixed = top.take("fixed_membership", bool, default=True)
        expires = top.take("expires", datetime)
        if expires.tzinfo is None:
            top.wrong.append("expires needs a time zone, for instance 2027-01-31T00:00:00Z")
        method = top.tried("method", Method) or Method.SECURE_SUMS
        messages = _messages(top)
        plan = _plan(top)
        code = top.words("code")
        top.finish()
        assert schema is not None
        assert author is not None
        assert coordinator is not None
        grid = Grid(schema, bounds, rows, len(members))
        found = cls(
            data,
            title,
            purpose,
            author,
            coordinator,
            members,
            grid,
            method,
            messages,
            plan,
            rounds,
            threshold,
            organisations,
            fixed,
            expires,
            code,
        )
        _ = found.terms  # checks the roster
        return found

    @classmethod
    def draft(
        cls,
        title: str,
        *,
        purpose: str,
        author: bytes,
        coordinator: bytes,
        members: Sequence[Member],
        schema: Schema,
        bounds: Mapping[str, tuple[float, float]],
        method: Method = Method.SECURE_SUMS,
        messages: Iterable[Message] = (Message.MOMENTS,),
        plan: Plan | None = None,
        rows: int = 2**24,
        rounds: int = 10,
        threshold: int | None = None,
        organisations: int = FEWEST,
        fixed_membership: bool = True,
        expires: datetime | None = None,
        code: Sequence[str] | None = None,
    ) -> Study:
        """Write a study; parameters are the attributes of the class."""
        if expires is None:
            expires = datetime.now(UTC) + timedelta(days=90)
        top: dict[str, object] = {
            "format": FORMAT,
            "title": title,
            "purpose": purpose,
            "author": key_text(author),
            "coordinator": key_text(coordinator),
            "method": method.value,
            "messages": [m.value for m in messages],
            "rows": rows,
            "rounds": rounds,
            "threshold": threshold or max(default_threshold(len(members)), FEWEST),
            "organisations": organisations,
            "fixed_membership": fixed_membership,
            "expires": expires.astimezone(UTC).replace(microsecond=0),
            "code": list((code_hash(),) if code is None else code),
        }
        if plan is not None:
            top["plan"] = plan.to_dict()
        variables: list[dict[str, object]] = []
        for v in schema.variables:
            entry: dict[str, object] = {"name": v.name, "kind": v.kind.value}
            if v.kind is Kind.DISCRETE:
                entry["levels"] = list(v.levels)
            elif v.name in bounds:
                low, high = bounds[v.name]
                entry |= {"low": float(low), "high": float(high)}
            variables.append(entry)
        sites: list[dict[str, object]] = [
            {"name": m.name, "organisation": m.organisation, "key": key_text(m.key)}
            for m in members
        ]
        text = document(top, {"variables": variables, "sites": sites})
        return cls.parse(text.encode())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file as it is."""
        Path(path).write_bytes(self.text)

    def sign(self, identity: Identity, role: str = AUTHOR) -> Signature:
        """Sign as the author, or countersign as the site of this name."""
        return Signature(role, identity.public, identity.sign(_signed(self.identity, role)))

    def key_of(self, role: str) -> bytes:
        """The key that signs for the author or for a site."""
        return self.author if role == AUTHOR else self.members[self.terms.position(role)].key

    def require(self, signatures: Iterable[Signature], roles: Iterable[str]) -> None:
        """Raise `StudyError` unless all of these signed."""
        verifier = Verifier()
        wanted = {role: self.key_of(role) for role in roles}
        good = {
            s.role
            for s in signatures
            if wanted.get(s.role) == s.key
            and verifier.verify(s.key, s.value, _signed(self.identity, s.role))
        }
        lacking = [role for role in wanted if role not in good]
        if lacking:
            raise StudyError(
                f"The study {self.identity.hex()[:16]}… has no valid signature of {lacking[:10]}. "
                "A study is signed by its author and countersigned by the sites; whoever changes a "
                "byte of the file must have it signed anew."
            )


@final
@dataclass(frozen=True)
class Signature:
    """A signature on a study.

    Attributes
    ----------
    role
        ``"author"``, or the name of the site.
    key
        The public key.
    value
        The signature.
    """

    role: str
    key: bytes
    value: bytes


def write_signatures(path: str | os.PathLike[str], signatures: Iterable[Signature]) -> None:
    """Write signatures next to a study."""
    entries: list[dict[str, object]] = [
        {"role": s.role, "key": key_text(s.key), "value": s.value.hex()} for s in signatures
    ]
    Path(path).write_text(
        document({"format": "isthmus-signatures/1"}, {"signatures": entries}), encoding="utf-8"
    )


def read_signatures(path: str | os.PathLike[str]) -> list[Signature]:
    """Read what `write_signatures` wrote."""
    top = Reader.of(Path(path).read_bytes(), "file of signatures")
    if top.take("format", str) != "isthmus-signatures/1":
        top.wrong.append("format must be 'isthmus-signatures/1'")
    found = []
    for entry in top.inner("signatures"):
        role = entry.take("role", str)
        key, value = entry.tried("key", key_bytes), entry.tried("value", bytes.fromhex)
        entry.close()
        if key is not None and value is not None:
            found.append(Signature(role, key, value))
    top.finish()
    return found


def read_variables(
    path: str | os.PathLike[str],
) -> tuple[Schema, dict[str, tuple[float, float]]]:
    """Variables and bounds from a file that has the ``[[variables]]`` of a study and no more."""
    top = Reader.of(Path(path).read_bytes(), "file of variables")
    schema, bounds = _variables(top)
    top.finish()
    assert schema is not None
    return schema, bounds


@lru_cache(maxsize=1)
def code_hash() -> str:
    """SHA-256 over the source of this package as it is installed."""
    root = Path(str(files("isthmus")))
    parts: list[bytes] = []
    for path in sorted(root.rglob("*.py")):
        parts += [path.relative_to(root).as_posix().encode(), path.read_bytes()]
    return "sha256:" + digest(*parts).hex()


def _signed(identity: bytes, role: str) -> bytes:
    return digest(b"isthmus study signature", identity, role.encode())


def _members(top: Reader) -> tuple[Member, ...]:
    found = []
    for entry in top.inner("sites"):
        name, behind = entry.take("name", str), entry.take("organisation", str)
        key = entry.tried("key", key_bytes)
        entry.close()
        if not name or name == AUTHOR:
            top.wrong.append(f"a site cannot be named {name!r}")
        if key is not None:
            found.append(Member(name, behind, key))
    return tuple(found)


def _variables(top: Reader) -> tuple[Schema | None, dict[str, tuple[float, float]]]:
    found: list[Variable] = []
    bounds: dict[str, tuple[float, float]] = {}
    for entry in top.inner("variables"):
        name, kind = entry.take("name", str), entry.tried("kind", Kind)
        try:
            if kind is Kind.CONTINUOUS:
                bounds[name] = entry.take("low", float), entry.take("high", float)
                found.append(Variable(name, kind))
            elif kind is Kind.DISCRETE:
                found.append(Variable(name, kind, tuple(entry.take("levels", list))))
        except IsthmusError as error:
            top.wrong.append(str(error).rstrip("."))
        entry.close()
    try:
        return Schema(tuple(found)), bounds
    except IsthmusError as error:
        top.wrong.append(str(error).rstrip("."))
        return None, bounds


def _messages(top: Reader) -> frozenset[Message]:
    found = set()
    for word in top.words("messages"):
        try:
            found.add(Message(word))
        except ValueError:
            top.wrong.append(f"messages: {word!r} is not one of {[m.value for m in Message]}")
    return frozenset(found)


def _plan(top: Reader) -> Plan | None:
    given: Any = top.left("plan")
    if given is None:
        return None
    try:
        return Plan.from_dict(given)
    except (IsthmusError, TypeError, AttributeError, tomllib.TOMLDecodeError) as error:
        top.wrong.append(f"plan: {error}")
        return None
