"""The extract of a study: rows of a site that were frozen for it and checked once."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import FormatError, RefusedError, counted
from isthmus.tables.base import Source
from isthmus.tables.frame import Frame
from isthmus.tables.missing import KeepMissing
from isthmus_joint.agreement.policy import DataRules, Policy
from isthmus_joint.agreement.study import Study
from isthmus_joint.agreement.toml import Least, Reader, document, plain
from isthmus_joint.extracts.checks import broken_rules, candidates_of
from isthmus_joint.extracts.reading import (
    FrozenRows,
    StoredRows,
    freeze_rows,
    local_source,
    read_rows,
)
from isthmus_joint.federation.requests.expectation import AskExpectation, allows_holes
from isthmus_joint.records.journal import FolderLock
from isthmus_joint.records.ledger import FileLedger, LedgerIndex
from isthmus_joint.records.private_files import replace_private, sync_folder
from isthmus_joint.secure_sum.protocol import secure_sums

SIMULATED = "simulated"
"""Identity of an extract that nobody froze."""


@final
@dataclass(frozen=True, eq=False)
class Extract:
    """Rows of a site, frozen for one study. All its answers in this study are over these rows.

    Attributes
    ----------
    identity
        A random number that the ledger names.
    study
        SHA-256 of the study.
    values
        The rows, levels as codes, with NaN where a value may be missing; ``None`` for a simulation
        with a source that has none.
    persons
        The person of each row, as codes from zero; ``None`` if each row is a person of its own.
    checked
        The rules that the rows were checked against; ``None`` if the study has noise, or is a
        simulation.
    frozen
        What happened to the rows of the table; ``None`` after the extract was read from its folder.
    """

    identity: str
    study: bytes
    values: Floats | None
    persons: Integers | None
    checked: DataRules | None
    source: Source = field(repr=False)
    frozen: FrozenRows | None = None

    @classmethod
    def freeze(cls, study: Study, data: object, policy: Policy) -> Extract:
        """Freeze a table for a study.

        Parameters
        ----------
        study
            The study, which need not be signed yet.
        data
            The site's table or source.
        policy
            The policy of the site.

        Raises
        ------
        RefusedError
            The policy does not allow the study, or the rows break a rule of the policy. With
            noise, no rows are refused: a refusal could depend on one person.
        """
        policy.require(study)
        holes, rules = allows_holes(study), policy.persons
        frozen = freeze_rows(
            read_rows(data, study.schema, rules.column), study.schema, study.bounds, holes=holes
        )
        persons = None if rules.not_persons else frozen.persons
        if study.privacy is None:
            broken = violations(study, policy, frozen.values, persons)
            if broken:
                raise RefusedError(
                    f"This site cannot take part in {study.title!r}: {'; '.join(broken)}. The rows "
                    f"were not used.{frozen.remarks()}"
                )
        checked = policy.rules_on_data() if study.privacy is None else None
        return cls.of(study, frozen.values, persons, checked, secrets.token_hex(16), frozen)

    @classmethod
    def of(
        cls,
        study: Study,
        values: Floats,
        persons: Integers | None,
        checked: DataRules | None,
        identity: str,
        frozen: FrozenRows | None = None,
    ) -> Extract:
        """Return the extract of frozen rows."""
        source: Source = StoredRows(study.schema, values)
        if allows_holes(study):
            kept = KeepMissing()
            source = Frame(values, names=study.schema.names, schema=study.schema, missing=kept)
        return cls(identity, study.identity, values, persons, checked, source, frozen)

    @classmethod
    def simulated(cls, data: object, study: Study) -> Extract:
        """Return an extract for simulations: nothing is frozen or checked.

        Parameters
        ----------
        data
            A table, or any source.
        study
            The study of the simulation.
        """
        source = local_source(data, study.schema, holes=allows_holes(study))
        values: Floats | None = None
        if study.privacy is not None:
            rows = read_rows(source, study.schema, "")
            values = freeze_rows(rows, study.schema, study.bounds).values
        return cls(SIMULATED, study.identity, values, None, None, source)

    @property
    def is_simulated(self) -> bool:
        """Whether nobody froze the rows."""
        return self.identity == SIMULATED

    @cached_property
    def number_of_persons(self) -> int:
        """Number of persons, or of rows if these are not persons."""
        if self.persons is not None:
            return len(np.unique(self.persons))
        return 0 if self.values is None else len(self.values)

    def problems(self, study: Study, policy: Policy) -> list[str]:
        """Return a phrase for each reason why a study cannot be answered from this extract."""
        if self.is_simulated:
            return []
        problems = []
        if study.identity != self.study:
            problems.append("the extract was frozen for another study")
        if self.checked is not None and self.checked.is_weaker_than(policy):
            problems.append("the policy has become stricter since the extract was frozen")
        return problems


def violations(study: Study, policy: Policy, values: Floats, persons: Integers | None) -> list[str]:
    """Return a phrase for each rule on data that these rows break in a study of exact sums."""
    broken = broken_rules(candidates_of(study, values, persons), policy)
    most = secure_sums(study.protocol).rows
    if len(values) > most:
        broken.append(f"the site has more rows than the study states, {counted(most, 'row')}")
    others = sorted(study.requests - {AskExpectation.name})
    if allows_holes(study) and others:
        broken.append(f"values may be missing, for which there are no requests {others}")
    return broken


# --- The extracts in the private folder of a site: one folder for each study --------------------

FORMAT = "isthmus-extract/1"


@final
@dataclass(frozen=True)
class ExtractRecord:
    """What ``extract.toml`` says.

    Attributes
    ----------
    identity
        The number that the ledger names.
    checksum
        SHA-256 of the file with the rows.
    checked
        The rules that the rows were checked against; ``None`` with noise.
    """

    identity: str
    study: str
    frozen: datetime
    rows: Annotated[int, Least(0)]
    persons: Annotated[int, Least(0)]
    checksum: str
    checked: DataRules | None = None

    @classmethod
    def read(cls, folder: Path) -> ExtractRecord:
        """Read the file in the folder of an extract."""
        top = Reader.parse((folder / "extract.toml").read_bytes(), "extract", FORMAT)
        section = top.table("checked") if top.has("checked") else None
        rules = None if section is None else section.record(DataRules)
        if section is not None:
            section.reject_other_keys()
        make = top.record(cls, without=("checked",))
        top.finish()
        return replace(make(), checked=None if rules is None else rules())

    def write(self, folder: Path) -> None:
        """Write the file in one step."""
        keys = {"format": FORMAT, **plain(self, without=("checked",))}
        checked = {} if self.checked is None else {"checked": plain(self.checked)}
        replace_private(folder / "extract.toml", document(keys, {}, checked).encode())


@final
class ExtractStore:
    """The extracts of a site.

    Each is a folder that only the site's user can read: ``extract.toml``, ``rows.npy``, and
    ``persons.npy`` if a column identifies persons, with a number for each of them and no
    identifiers. It is deleted with the study.

    Parameters
    ----------
    home
        The private folder of the site.
    """

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._home = Path(home)

    def folder(self, study: Study) -> Path:
        """Return the folder of the extract of a study."""
        return self._home / f"extract-{study.identity.hex()[:16]}"

    def freeze(
        self, study: Study, data: object, policy: Policy, *, few_more_rows: bool = False
    ) -> Extract:
        """Freeze a table for a study, and keep it.

        Parameters
        ----------
        study, data, policy
            As for `Extract.freeze`.
        few_more_rows
            The data protection officer accepts that the number of rows differs from that of an
            earlier study by less than the minimum of the policy.

        Raises
        ------
        RefusedError
            As for `Extract.freeze`; or something was sent in this study before; or the number of
            rows is nearly that of an earlier study.
        """
        with FolderLock(self._home, "isthmus site freeze"):
            index = self._ledger_index()
            if study.identity.hex() in index.studies:
                raise RefusedError(
                    f"Something was sent in {study.title!r} before, from the table that was frozen "
                    "then. One study is about one table: draft another study for another table."
                )
            extract = Extract.freeze(study, data, policy)
            if study.privacy is None and not few_more_rows:
                _require_other_size(extract, policy, index)
            self._save(study, extract)
        return extract

    def read(self, study: Study) -> Extract:
        """Return the extract that was frozen for a study.

        Raises
        ------
        RefusedError
            There is none.
        """
        folder = self.folder(study)
        if not (folder / "extract.toml").exists():
            raise RefusedError(
                f"No table was frozen for {study.title!r}. Freeze one: isthmus site freeze HOME "
                "STUDY --data FILE."
            )
        record = ExtractRecord.read(folder)
        if record.study != study.identity.hex() or _checksum(folder) != record.checksum:
            raise FormatError(
                f"The extract in {folder} was changed. Freeze the table again if nothing was sent "
                "from it, and draft another study otherwise."
            )
        values = np.load(folder / "rows.npy", mmap_mode="r", allow_pickle=False)
        persons = folder / "persons.npy"
        owners = np.load(persons, allow_pickle=False) if persons.exists() else None
        return Extract.of(study, values, owners, record.checked, record.identity)

    def _ledger_index(self) -> LedgerIndex:
        index, path = LedgerIndex(), self._home / "ledger.jsonl"
        for entry in FileLedger(path).read() if path.exists() else ():
            index.add(entry)
        return index

    def _save(self, study: Study, extract: Extract) -> None:
        """Write the folder in one step."""
        assert extract.values is not None
        folder, beside = self.folder(study), self._home / ".extract-new"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        _save_array(beside / "rows.npy", extract.values)
        if extract.persons is not None:
            _save_array(beside / "persons.npy", extract.persons)
        ExtractRecord(
            extract.identity,
            study.identity.hex(),
            datetime.now(UTC).replace(microsecond=0),
            len(extract.values),
            extract.number_of_persons,
            _checksum(beside),
            extract.checked,
        ).write(beside)
        shutil.rmtree(folder, ignore_errors=True)  # nothing was sent from it
        beside.rename(folder)
        sync_folder(self._home)


def _require_other_size(extract: Extract, policy: Policy, index: LedgerIndex) -> None:
    """Raise `RefusedError` if an earlier study was about a few rows more or less.

    This is a question to the officer, against the plainest accident; it proves nothing.
    """
    assert extract.values is not None
    own, least = len(extract.values), policy.minimum_cohort
    if index.restored and own not in index.exact_rows.values():
        raise RefusedError(
            "The ledger was restored and does not know how many rows the tables of earlier studies "
            "had. If this is the table of an earlier study with a few rows more or less, the "
            "difference of the two results is about these few. Ask your data protection officer, "
            "and pass --few-more-rows if the officer accepts this."
        )
    near = [rows for rows in index.exact_rows.values() if 0 < abs(rows - own) < least]
    if near:
        few = counted(min(abs(rows - own) for rows in near), "row")
        raise RefusedError(
            f"The table has {counted(own, 'row')}, {few} more or less than that of an earlier "
            "study with exact sums. If it is the same table with a few rows more or less, the "
            "difference of the two results is about these few. Ask your data protection officer. "
            "If the officer accepts this, pass --few-more-rows; otherwise freeze the table of the "
            "earlier study."
        )


def _save_array(path: Path, values: NDArray[np.generic]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        np.save(file, values, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _checksum(folder: Path) -> str:
    with (folder / "rows.npy").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
