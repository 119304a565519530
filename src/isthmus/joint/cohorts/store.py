"""The cohorts of a site: one folder each, and who is in them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError, RefusedError
from isthmus.joint.agreement.persons import Persons
from isthmus.joint.agreement.policy import DataRules, Policy
from isthmus.joint.agreement.protocol_catalogue import known_event
from isthmus.joint.agreement.study import Study
from isthmus.joint.agreement.toml import Least, Reader, document, plain
from isthmus.joint.agreement.variables import Variables
from isthmus.joint.cohorts.cohort import Cohort
from isthmus.joint.cohorts.row_hashes import Words
from isthmus.joint.cohorts.successor import successor
from isthmus.joint.records.journal import FolderLock
from isthmus.joint.records.ledger import FileLedger
from isthmus.joint.records.private_files import replace_private, sync_folder
from isthmus.plurals import counted
from isthmus.sources.tables.persons import person_hashes

FORMAT = "isthmus-cohort/1"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY = 32


@final
@dataclass(frozen=True)
class CohortRecord:
    """What ``cohort.toml`` says about a cohort.

    Attributes
    ----------
    identity
        The number that ledgers name.
    retired
        Whether its rows were deleted.
    checksum
        SHA-256 of the file with the rows.
    certificate
        What was checked; ``None`` for studies with noise.
    studies
        SHA-256 of each study that it is open to. The first one defines the variables.
    origin
        Identity of the cohort that it is a successor of, directly or not; its own if of none.
    """

    name: str
    identity: str
    frozen: datetime
    rows: Annotated[int, Least(0)]
    persons: Annotated[int, Least(0)]
    retired: bool
    checksum: str
    studies: tuple[str, ...]
    origin: str
    certificate: DataRules | None = None

    @classmethod
    def read(cls, folder: Path) -> CohortRecord:
        """Read the file in the folder of a cohort."""
        top = Reader.parse((folder / "cohort.toml").read_bytes(), "cohort", FORMAT)
        section = top.table("checked") if top.has("checked") else None
        rules = None if section is None else section.record(DataRules)
        if section is not None:
            section.reject_other_keys()
        make = top.record(cls, without=("certificate",), name=folder.name)
        top.finish()
        return replace(make(), certificate=None if rules is None else rules())

    def write(self, folder: Path) -> None:
        """Write the file in one step."""
        keys = {"format": FORMAT, **plain(self, without=("name", "certificate"))}
        checked = {} if self.certificate is None else {"checked": plain(self.certificate)}
        replace_private(folder / "cohort.toml", document(keys, {}, checked).encode())


@final
class CohortStore:
    """The cohorts in the private folder of a site.

    Each cohort is a folder that only the site's user can read: ``cohort.toml``, ``rows.npy``,
    ``persons.npy`` and the studies that it is open to. Of a retired cohort only ``cohort.toml`` and
    ``persons.npy`` are left, with keyed hashes of identifiers, so that nobody is frozen twice.

    Parameters
    ----------
    home
        The private folder of the site.
    """

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._home = Path(home)
        self._folder = self._home / "cohorts"

    def records(self) -> list[CohortRecord]:
        """Return all cohorts, the earliest first.

        A cohort with a successor is retired, also if a crash has kept its rows from being deleted.
        """
        files = self._folder.glob("*/cohort.toml") if self._folder.is_dir() else ()
        records = [CohortRecord.read(f.parent) for f in files if not f.parent.name.startswith(".")]
        last: dict[str, int] = {}  # a successor has fewer persons
        for r in records:
            last[r.origin] = min(r.persons, last.get(r.origin, r.persons))
        records = [replace(r, retired=r.retired or r.persons > last[r.origin]) for r in records]
        return sorted(records, key=lambda record: (record.frozen, record.name))

    # --- freezing ----------------------------------------------------------------------------

    def freeze(
        self,
        study: Study,
        data: object,
        policy: Policy,
        *,
        name: str = "",
        other_persons: bool = False,
    ) -> tuple[str, Cohort]:
        """Freeze a table for a study, and return the name of the cohort and the cohort.

        Parameters
        ----------
        study, data, policy
            As for `Cohort.freeze`.
        name
            Name of the cohort; by default a number.
        other_persons
            States that nobody in the table is in an earlier cohort, where the policy names no
            column that could tell.
        """
        name = name or self._next_name()
        if not NAME.fullmatch(name) or (self._folder / name).exists():
            raise FormatError(
                f"{name!r} cannot be the name of a new cohort. Use letters, digits, '-', '_' and "
                f"'.', and none of {[r.name for r in self.records()]}."
            )
        with FolderLock(self._home, "isthmus site freeze"):
            known = None
            if study.privacy is None and not policy.persons.not_persons:
                known = self._known(policy.persons, other_persons=other_persons)
            cohort = Cohort.freeze(study, data, policy, key=self._key(), known=known)
            self._save(name, cohort)
        return name, cohort

    def _known(self, persons: Persons, *, other_persons: bool) -> Words:
        """Return the persons of all cohorts for exact sums.

        Raises
        ------
        RefusedError
            There is a cohort whose persons cannot be compared with those of a new one.
        """
        words, unknown = [np.zeros(0, dtype=np.uint64)], []
        for record in self.records():
            if record.certificate is None or record.certificate.persons.not_persons:
                continue
            if persons.column and record.certificate.persons == persons:
                words.append(_load(self._folder / record.name / "persons.npy"))
            else:
                unknown.append(record.name)
        if unknown and not other_persons:
            raise RefusedError(
                f"The persons of the cohorts {unknown[:10]} cannot be compared with those of a new "
                "one, because no common column identifies them. Retire these cohorts if nothing "
                "was sent from them, use one of them for this study, or state with "
                "--other-persons that nobody in the table is in any of them."
            )
        return np.concatenate(words)

    def open(self, study: Study, policy: Policy, *, name: str = "") -> tuple[str, Cohort]:
        """Open a cohort for a further study, and return its name and the cohort.

        Parameters
        ----------
        study, policy
            The study, and the policy of the site.
        name
            Name of the cohort; by default the last one with the sites and variables of the study.
        """
        with FolderLock(self._home, "isthmus site freeze"):
            reasons = []
            for record in reversed([r for r in self.records() if not r.retired]):
                if name and record.name != name:
                    continue
                try:
                    cohort = self._read(record).opened(study, policy)
                except RefusedError as error:
                    reasons.append(f"{record.name}: {error}")
                    continue
                self._add_study(record, cohort, study)
                return record.name, cohort
        raise RefusedError(
            f"No cohort can be opened for {study.title!r}. {' '.join(reasons) or 'There is none.'} "
            "Freeze a table with --data FILE."
        )

    def cohort_of(self, study: Study) -> Cohort:
        """Return the cohort that was frozen or opened for a study.

        Raises
        ------
        RefusedError
            There is none.
        """
        identity = study.identity.hex()
        for record in reversed(self.records()):
            if identity in record.studies and not record.retired:
                return self._read(record)
        raise RefusedError(
            f"No cohort is open to {study.title!r}. Freeze the table of the site for it: isthmus "
            "site freeze HOME STUDY --data FILE."
        )

    # --- retiring ----------------------------------------------------------------------------

    def retire(
        self, name: str, policy: Policy, without: Iterable[str] | None = None
    ) -> tuple[CohortRecord, str, Cohort | None]:
        """Delete the rows of a cohort, and make a successor of it if some persons are named.

        Parameters
        ----------
        name
            Name of the cohort.
        policy
            The policy of the site.
        without
            Identifiers of persons who are not in the successor; ``None`` for no successor.

        Returns
        -------
        record
            What is left of the cohort.
        name, successor
            The successor, if there is one.
        """
        with FolderLock(self._home, "isthmus site retire"):
            for unfinished in self.records():  # of a run that was killed
                if unfinished.retired and (self._folder / unfinished.name / "rows.npy").exists():
                    self._delete_rows(unfinished)
            known = {r.name: r for r in self.records() if not r.retired}
            if name not in known:
                raise FormatError(f"There is no cohort {name!r}; there are {list(known)}.")
            record, new, made = known[name], "", None
            if without is not None:
                leaving, was_sent = person_hashes(without, self._key()), self.was_sent(record)
                made = successor(self._read(record), leaving, policy, was_sent=was_sent)
                new = self._next_name()
                self._save(new, made)
            return self._delete_rows(record), new, made

    def _delete_rows(self, record: CohortRecord) -> CohortRecord:
        """Delete the rows of a cohort, and return what is left of it."""
        folder = self._folder / record.name
        if self.was_sent(record) and record.certificate is not None:
            record = replace(record, retired=True, studies=())
            record.write(folder)
            for file in (folder / "rows.npy", *folder.glob("study-*.toml")):
                file.unlink(missing_ok=True)
        else:
            shutil.rmtree(folder)
        sync_folder(self._folder)
        return record

    def was_sent(self, record: CohortRecord) -> bool:
        """Return whether something was sent from a cohort, or from one that it succeeds.

        The rows of a successor are those of a cohort whose sums are known, so that everybody who
        leaves it later must leave in a group as well.
        """
        return any(
            entry.get("cohort") == record.origin and known_event(entry["event"]).sends_statistic
            for entry in FileLedger(self._home / "ledger.jsonl").read()
        )

    # --- files -------------------------------------------------------------------------------

    def _next_name(self) -> str:
        taken = {r.name for r in self.records()}
        return next(str(k) for k in range(1, len(taken) + 2) if str(k) not in taken)

    def _key(self) -> bytes:
        """Return the key of the hashes of identifiers, which stays the same."""
        path = self._folder / "key"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            replace_private(path, secrets.token_bytes(KEY))
        return path.read_bytes()

    def _save(self, name: str, cohort: Cohort) -> None:
        """Write the folder of a cohort in one step."""
        assert cohort.values is not None
        beside = self._folder / ".new"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        _save_array(beside / "rows.npy", cohort.values)
        if cohort.persons is not None:
            _save_array(beside / "persons.npy", cohort.persons)
        for study in cohort.studies:
            replace_private(beside / _study_file(study.identity.hex()), study.text)
        CohortRecord(
            name,
            cohort.identity,
            datetime.now(UTC).replace(microsecond=0),
            len(cohort.values),
            cohort.number_of_persons,
            retired=False,
            checksum=_checksum(beside / "rows.npy"),
            certificate=cohort.certificate,
            studies=tuple(s.identity.hex() for s in cohort.studies),
            origin=cohort.origin or cohort.identity,
        ).write(beside)
        beside.rename(self._folder / name)
        sync_folder(self._folder)

    def _add_study(self, record: CohortRecord, cohort: Cohort, study: Study) -> None:
        folder, identity = self._folder / record.name, study.identity.hex()
        replace_private(folder / _study_file(identity), study.text)
        others = tuple(s for s in record.studies if s != identity)
        # The first study defines the variables, so that it stays the first.
        studies = record.studies if identity in record.studies else (*others, identity)
        replace(record, studies=studies, certificate=cohort.certificate).write(folder)

    def _read(self, record: CohortRecord) -> Cohort:
        folder = self._folder / record.name
        if _checksum(folder / "rows.npy") != record.checksum:
            raise FormatError(
                f"The rows of the cohort {record.name!r} were changed. Restore the folder "
                f"{folder} from a backup, or retire the cohort."
            )
        values = np.load(folder / "rows.npy", mmap_mode="r", allow_pickle=False)
        persons = folder / "persons.npy"
        studies = tuple(Study.read(folder / _study_file(identity)) for identity in record.studies)
        if tuple(s.identity.hex() for s in studies) != record.studies:
            raise FormatError(
                f"The studies of the cohort {record.name!r} were changed. Restore the folder "
                f"{folder} from a backup, or retire the cohort."
            )
        first = studies[0]
        return Cohort(
            record.identity,
            Variables(first.schema, first.bounds, first.resolutions),
            frozenset(m.key for m in first.members),
            values,
            _load(persons) if persons.exists() else None,
            record.certificate,
            studies,
            origin=record.origin,
        )


def described(record: CohortRecord, *, was_sent: bool) -> Iterator[str]:
    """Yield lines about a cohort, for people."""
    state = "retired" if record.retired else "open"
    kind = "sums with noise" if record.certificate is None else "exact sums"
    size = f"{counted(record.rows, 'row')} of {counted(record.persons, 'person')}"
    yield f"{record.name}: {state}, for {kind}, {size}, frozen {record.frozen:%Y-%m-%d}"
    used = "something was sent from it" if was_sent else "nothing was sent from it"
    yield f"  {used}; open to {counted(len(record.studies), 'study')}; in the ledger as " + (
        record.identity
    )


def _study_file(identity: str) -> str:
    return f"study-{identity}.toml"


def _load(path: Path) -> NDArray[Any]:
    found: NDArray[Any] = np.load(path, allow_pickle=False)
    return found


def _save_array(path: Path, values: NDArray[Any]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        np.save(file, values, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
