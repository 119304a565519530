"""The result of a study as its sites get it: a file, and the coordinator's signature beside it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from isthmus.errors import StudyError
from isthmus.joint.agreement.identity import Identity, Verifier, digest
from isthmus.joint.agreement.signatures import Signature, read_signatures, write_signatures
from isthmus.joint.agreement.study import Study
from isthmus.joint.records.private_files import replace_private

COORDINATOR = "coordinator"


def sign_result(identity: Identity, study: bytes, result: bytes) -> bytes:
    """Return the coordinator's signature on a result of a study."""
    return identity.sign(_signed(study, result))


def is_signed(study: Study, result: bytes, signature: bytes) -> bool:
    """Return whether the coordinator of a study has signed a result."""
    key = study.coordinator
    return key is not None and Verifier().verify(key, signature, _signed(study.identity, result))


def _signed(study: bytes, result: bytes) -> bytes:
    return digest(b"isthmus result 1", study, hashlib.sha256(result).digest())


def result_path(folder: Path, study: Study) -> Path:
    """Return the file for the result of a study in the folder of a site."""
    return folder / f"result-{study.identity.hex()[:16]}.json"


def write_result(folder: Path, study: Study, result: bytes, signature: bytes) -> Path:
    """Write a result and the signature on it; an earlier result of the study is replaced."""
    assert study.coordinator is not None
    path = result_path(folder, study)
    beside = path.with_suffix(".new")
    write_signatures(beside, [Signature(COORDINATOR, study.coordinator, signature)])
    beside.replace(path.with_suffix(".signature"))
    replace_private(path, result)
    return path


def read_result(path: str | os.PathLike[str], study: Study) -> bytes:
    """Read a result, and check that the coordinator of the study has signed it.

    Raises
    ------
    StudyError
        The result was changed, or belongs to another study.
    """
    file = Path(path)
    result = file.read_bytes()
    signatures = read_signatures(file.with_suffix(".signature"))
    if not any(is_signed(study, result, s.value) for s in signatures):
        raise StudyError(
            f"The coordinator of the study has not signed {file}: it was changed, or it belongs to "
            "another study."
        )
    return result
