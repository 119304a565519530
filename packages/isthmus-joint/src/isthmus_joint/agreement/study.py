"""The study: what its parties agreed on, in one file whose hash is in every message and key."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple, final

from isthmus.errors import IsthmusError, StudyError, counted
from isthmus.graphs.knowledge import Lag
from isthmus.kernels import _native
from isthmus.statistics import CountPlan, Expansion, Kind, Schema, Variable
from isthmus_joint.agreement.identity import (
    AUTHOR,
    Identity,
    Key,
    Signature,
    Verifier,
    digest,
    key_bytes,
    key_text,
    signed_bytes,
)
from isthmus_joint.agreement.protocol import Protocol
from isthmus_joint.agreement.protocol_catalogue import protocol_named, request_names
from isthmus_joint.agreement.roster import Member, Roster, name_problems
from isthmus_joint.agreement.toml import Least, Reader, document, plain
from isthmus_joint.noise.accounting import DifferentialPrivacy

# --- The variables of a study: names, kinds, levels and bounds ----------------------------------

Bounds = Mapping[str, tuple[float, float]]
"""Lowest and highest possible value of each continuous variable."""


@final
class Variables(NamedTuple):
    """The variables of a study with their definitions."""

    schema: Schema
    bounds: Bounds


def require_bounds(schema: Schema, bounds: Bounds) -> None:
    """Raise `StudyError` unless each continuous variable has finite, ascending bounds."""
    missing = [n for n in schema.of_kind(Kind.CONTINUOUS) if n not in bounds]
    if missing:
        raise StudyError(
            f"The continuous variables {missing[:10]} have no bounds. State the lowest and the "
            "highest value that can occur, from what the variable means and not from data."
        )
    invalid = [
        n
        for n, (low, high) in bounds.items()
        if not (math.isfinite(low) and math.isfinite(high) and low < high)
    ]
    if invalid:
        raise StudyError(
            f"The bounds of {invalid[:10]} must be two finite numbers in ascending order."
        )


def read_variables(path: str | os.PathLike[str]) -> Variables:
    """Read variables from a file that holds only the ``[[variables]]`` of a study."""
    top = Reader.parse(Path(path).read_bytes(), "file of variables")
    schema, bounds = take_variables(top)
    top.finish()
    assert schema is not None
    return Variables(schema, bounds)


def take_variables(top: Reader) -> tuple[Schema | None, dict[str, tuple[float, float]]]:
    """Take the ``[[variables]]`` of a document."""
    variables: list[Variable] = []
    bounds: dict[str, tuple[float, float]] = {}
    for entry in top.tables("variables"):
        name, kind = entry.take("name", str), entry.convert("kind", Kind)
        try:
            if kind is Kind.CONTINUOUS:
                bounds[name] = entry.take("low", float), entry.take("high", float)
                variables.append(Variable(name, kind, lag=_take_lag(entry)))
            elif kind is Kind.DISCRETE:
                variables.append(Variable(name, kind, tuple(entry.take("levels", list))))
        except IsthmusError as error:
            top.problems.append(str(error).rstrip("."))
        entry.reject_other_keys()
    try:
        schema = Schema(tuple(variables))
        require_bounds(schema, bounds)
    except IsthmusError as error:
        top.problems.append(str(error).rstrip("."))
        return None, bounds
    return schema, bounds


def _take_lag(entry: Reader) -> Lag | None:
    """Take which variable this is at an earlier time step, and how many steps earlier."""
    variable, steps = entry.take("lag_of", str, ""), entry.take("lag", int, 0)
    return Lag(variable, steps) if variable or steps else None


def variable_entries(schema: Schema, bounds: Bounds) -> list[dict[str, object]]:
    """Return the ``[[variables]]`` of a study file."""
    entries: list[dict[str, object]] = []
    for v in schema.variables:
        entry: dict[str, object] = {"name": v.name, "kind": v.kind.value}
        if v.kind is Kind.DISCRETE:
            entry["levels"] = list(v.levels)
        elif v.name in bounds:
            low, high = bounds[v.name]
            entry |= {"low": float(low), "high": float(high)}
        if v.lag is not None:
            entry |= {"lag_of": v.lag.variable, "lag": v.lag.steps}
        entries.append(entry)
    return entries


# --- The hash of the code ------------------------------------------------------------------------
#
# The hash of the installed package, by which a study names the versions that may take part.

ANSWERING = {
    "isthmus": (
        *("arrays.py", "errors.py", "frames.py", "kernels", "neural", "objectives", "options.py"),
        *("searches/notears_penalties.py", "statistics", "tables"),
    ),
    "isthmus_joint": ("",),
}
"""The files and folders of each package that carry out the protocol and compute what leaves a site.
Others, such as searches, reports and commands, can change during a study; a test looks at what
runs."""


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the SHA-256 of the source files of the protocol and of what computes answers.

    It covers the Python files of `ANSWERING` as installed, with their paths within each package,
    and the C++ files that the core was compiled from. It does not depend on where the package is
    installed, nor on the compiler.
    """
    return hash_of_packages(package_folders(), _native.source_hash())


DEPENDENCIES = (
    *("cryptography", "duckdb", "flwr", "ibis-framework", "jax", "jaxlib", "narwhals", "numpy"),
    *("pandas", "polars", "pyarrow", "pyspark", "scipy"),
)
"""Distributions that compute or carry what leaves a site."""


@lru_cache(maxsize=1)
def dependency_hash() -> str:
    """Return the SHA-256 of the installed versions of dependencies and of their lists of files.

    The lists contain a hash of every file as it was installed.
    """
    parts = [sys.version.encode()]
    for name in DEPENDENCIES:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        parts += [name.encode(), found.version.encode(), (found.read_text("RECORD") or "").encode()]
    return digest(*parts).hex()


def package_folders() -> dict[str, Path]:
    """Return the folders of the source files of both packages."""
    specs = {name: find_spec(name) for name in ANSWERING}
    origins = {
        name: spec.origin for name, spec in specs.items() if spec is not None and spec.origin
    }
    if origins.keys() != ANSWERING.keys():
        raise StudyError(
            "The source files of the package cannot be found, so no study can name its version. "
            "Install it from a wheel or from source."
        )
    return {name: Path(origin).parent for name, origin in origins.items()}


def answers(package: str, path: Path) -> bool:
    """Return whether a file of a package is part of what answers."""
    if path.parts[0] == "commands":
        return False
    return any(path.is_relative_to(each) for each in ANSWERING[package])


def hash_of_packages(roots: Mapping[str, Path], core: str) -> str:
    """Return the SHA-256 of the Python files that answer, and of the compiled core's hash."""
    parts: list[bytes] = []
    for package, root in sorted(roots.items()):
        found = [
            (path.relative_to(root).as_posix(), path)
            for path in root.rglob("*.py*")  # stubs, too: they say which names are imported
            if path.suffix in {".py", ".pyi"} and answers(package, path.relative_to(root))
        ]
        if not found:
            raise StudyError(f"There are no source files in {root}, so they have no hash.")
        for name, path in sorted(found):
            parts += [f"{package}/{name}".encode(), path.read_bytes()]
    return "sha256:" + digest(*parts, core.encode()).hex()


# --- The study: what its parties agreed on -------------------------------------------------------

FORMAT = "isthmus-study/4"

EPSILON = 1.0
"""Budget of a study that states none: a strong promise, and enough for some thousand rows of ten
variables; see ``benchmarks/results/privacy-whitening.md``."""

Limits = Mapping[str, Mapping[str, float]]
"""Bounds on the parameters of requests: by request, then by parameter."""


@final
@dataclass(frozen=True)
class Study:
    """A study, exactly as it was signed.

    Read one with `read`, and write one with `draft`.

    Attributes
    ----------
    text
        The bytes of the file.
    title, purpose
        For people.
    author, coordinator
        Public keys of the author and of the coordinator, if the protocol has one.
    members
        The parties, with their organisations and public keys.
    schema
        The variables.
    bounds
        Lowest and highest possible value of each continuous variable.
    protocol
        How the parties compute together.
    requests
        Names of the requests that the coordinator may send.
    plan
        The tables of counts that may be requested; ``None`` for no counts.
    rounds
        How many rounds may be opened.
    expires
        When the parties stop answering.
    code
        Hashes of the versions of this package that may take part.
    features
        The basis functions that may be requested, with the centre and scale of each variable;
        ``None`` for no features. They follow from public bounds or from an earlier sum, and never
        from what a coordinator asks.
    limits
        Bounds on the parameters of requests, where they differ from the default ones.
    privacy
        Differential privacy: the budget, and what the noise is computed from; ``None`` for none.
    within_sites
        Whether each site subtracts its own means, so that sites of different levels cause no
        edges. For moments of secure sums, and by default there; with noise, the means have it, too.
    """

    text: bytes = field(repr=False)
    title: str
    purpose: str
    author: Key
    coordinator: bytes | None
    members: tuple[Member, ...]
    schema: Schema
    bounds: Mapping[str, tuple[float, float]]
    protocol: Protocol
    requests: frozenset[str]
    plan: CountPlan | None
    rounds: Annotated[int, Least(1)]
    expires: datetime
    code: tuple[str, ...]
    features: Expansion | None = None
    limits: Limits = field(default_factory=dict)
    privacy: DifferentialPrivacy | None = None
    within_sites: bool = False

    @cached_property
    def identity(self) -> bytes:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text).digest()

    @cached_property
    def roster(self) -> Roster:
        """The parties and their keys."""
        return Roster(self.identity, self.members, self.coordinator)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Study:
        """Read a study file."""
        return cls.parse(Path(path).read_bytes())

    @classmethod
    def parse(cls, data: bytes) -> Study:
        """Read the bytes of a study file.

        Raises
        ------
        StudyError
            The message names all mistakes in the file.
        """
        top = Reader.parse(data, "study", FORMAT)
        protocol = _protocol(top.table("protocol"))
        coordinated = protocol is None or protocol.has_coordinator
        requests = top.strings("requests", request_names(protocol.name) if protocol else None)
        expires = top.take("expires", datetime)
        if expires.tzinfo is None:
            top.problems.append("expires needs a time zone, for instance 2027-01-31T00:00:00Z")
        schema, bounds = take_variables(top)
        members = tuple(top.records("sites", Member))
        names = [m.name for m in members if m.name in ("", AUTHOR)]
        top.problems += [f"a site cannot be named {name!r}" for name in names]
        privacy = DifferentialPrivacy.take(top)
        adds_up = protocol is not None and protocol.results_add_up
        make = top.record(
            cls,
            text=data,
            coordinator=top.convert("coordinator", key_bytes) if coordinated else None,
            members=members,
            schema=schema,
            bounds=bounds,
            protocol=protocol,
            requests=frozenset(requests),
            plan=top.read("plan", CountPlan.from_dict),
            expires=expires,
            features=top.read("features", Expansion.from_dict),
            limits=top.read("limits", _limits) or {},
            privacy=privacy,
            within_sites=adds_up and top.take("within_sites", bool, default=True),
        )
        top.finish()
        study = make()
        _require_parties(study)
        return study

    @classmethod
    def draft(
        cls,
        title: str,
        *,
        purpose: str,
        author: bytes,
        coordinator: bytes | None = None,
        members: Sequence[Member],
        schema: Schema,
        bounds: Mapping[str, tuple[float, float]],
        protocol: Protocol,
        requests: Iterable[str],
        plan: CountPlan | None = None,
        rounds: int = 10,
        expires: datetime | None = None,
        code: Sequence[str] | None = None,
        features: Expansion | None = None,
        limits: Limits | None = None,
        privacy: DifferentialPrivacy | None = None,
        within_sites: bool = True,
        exact: bool = False,
    ) -> Study:
        """Write a study. The parameters are the attributes of the class.

        By default the study expires after 90 days, names the installed version of this package, and
        its sums have noise for differential privacy with ε = 1; pass `privacy` for another budget,
        or ``exact=True`` for none: exact sums protect no person from an analyst. Neither noise nor
        `within_sites` is for two parties.
        """
        protocol = protocol.fitted(members)
        if exact and privacy is not None:
            raise StudyError("A study is exact or has a budget. Pass exact=True or privacy.")
        if protocol.results_add_up and not exact and privacy is None:
            privacy = DifferentialPrivacy(EPSILON)
        if expires is None:
            expires = datetime.now(UTC) + timedelta(days=90)
        keys: dict[str, object] = {
            "format": FORMAT,
            "title": title,
            "purpose": purpose,
            "author": key_text(author),
            **({} if coordinator is None else {"coordinator": key_text(coordinator)}),
            "requests": list(requests),
            "rounds": rounds,
            "expires": expires.astimezone(UTC).replace(microsecond=0),
            "code": list((code_hash(),) if code is None else code),
        }
        if plan is not None:
            keys["plan"] = plan.to_dict()
        if features is not None:
            keys["features"] = features.to_dict()
        if limits:
            keys["limits"] = limits
        tables: dict[str, Mapping[str, object]] = {
            "protocol": {"name": protocol.name, **protocol.to_dict()}
        }
        if privacy is not None:
            tables["privacy"] = protocol.fitted_privacy(privacy, members).to_dict()
        if protocol.results_add_up:
            keys["within_sites"] = within_sites
        variables, sites = variable_entries(schema, bounds), [plain(m) for m in members]
        text = document(keys, {"variables": variables, "sites": sites}, tables)
        return cls.parse(text.encode())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, byte for byte."""
        Path(path).write_bytes(self.text)

    def sign(self, identity: Identity, role: str = AUTHOR) -> Signature:
        """Sign as the author, or countersign as the site of this name."""
        return Signature(role, identity.public, identity.sign(signed_bytes(self.identity, role)))

    def key_of(self, role: str) -> bytes:
        """Return the public key of the author or of a site."""
        return self.author if role == AUTHOR else self.members[self.roster.position(role)].key

    def name_of(self, identity: Identity) -> str:
        """Return the name under which an identity takes part, or raise `StudyError`."""
        for member in self.members:
            if member.key == identity.public:
                return member.name
        raise StudyError("This identity is not in the roster of the study.")

    def state_folder(self, home: Path) -> Path:
        """Return the folder in which a coordinator or a party keeps the state of a run."""
        return home / f"study-{self.identity.hex()[:16]}"

    def require(
        self,
        signatures: Iterable[Signature],
        roles: Iterable[str],
        verifier: Verifier | None = None,
    ) -> None:
        """Raise `StudyError` unless all of these roles have signed.

        Sites in one process may share a verifier, which checks each signature once.
        """
        verifier = Verifier() if verifier is None else verifier
        required = {role: self.key_of(role) for role in roles}
        valid = {
            s.role
            for s in signatures
            if required.get(s.role) == s.key
            and verifier.verify(s.key, s.value, signed_bytes(self.identity, s.role))
        }
        missing = [role for role in required if role not in valid]
        if missing:
            raise StudyError(
                f"The study {self.identity.hex()[:16]}… has no valid signature of {missing[:10]}. "
                "A study is signed by its author and countersigned by the sites. After any change "
                "to the file, the author drafts it again, and all of them sign."
            )


def _require_parties(study: Study) -> None:
    """Raise `StudyError` unless the protocol protects these parties."""
    problems = []
    least, parties = study.protocol.minimum_parties, len(study.roster)
    organisations = len(study.roster.organisations(study.roster.everyone))
    for number, name in ((parties, "site"), (organisations, "organisation")):
        if number < least:
            problems.append(
                f"the study has {counted(number, name)}; the protocol {study.protocol.name!r} "
                f"needs at least {least}"
            )
    if study.author == study.coordinator:
        problems.append("the author and the coordinator must have different keys")
    problems += name_problems(study.members)
    problems += study.protocol.problems(study.roster)
    problems += study.protocol.variable_problems(study.schema.names)
    if study.privacy is not None:
        problems += study.privacy.variable_problems(study.schema.of_kind(Kind.CONTINUOUS))
        problems += study.protocol.privacy_problems(study.privacy, study.requests)
    if problems:
        raise StudyError("The study cannot be used: " + "; ".join(problems) + ".")


def _protocol(section: Reader) -> Protocol | None:
    """Read the protocol with its own section."""
    kind = section.convert("name", protocol_named)
    if kind is None:
        return None
    protocol = kind.read(section)
    section.reject_other_keys()
    return protocol


def _limits(given: Any) -> Limits:
    return {
        str(name): {str(key): float(value) for key, value in bounds.items()}
        for name, bounds in given.items()
    }
