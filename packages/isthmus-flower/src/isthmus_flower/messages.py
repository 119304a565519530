"""The form of a message in both parts of the app."""

from __future__ import annotations

from flwr.app import ConfigRecord, RecordDict

RECORD, DATA = "isthmus", "data"


def packed(data: bytes | None) -> RecordDict:
    """Return the content of a message; ``None`` says that a site does not answer."""
    return RecordDict({RECORD: ConfigRecord({} if data is None else {DATA: data})})


def unpacked(content: RecordDict) -> bytes | None:
    """Return what `packed` was given."""
    record = content.config_records.get(RECORD)
    data = None if record is None else record.get(DATA)
    return data if isinstance(data, bytes) else None
