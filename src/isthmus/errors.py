"""Every error and warning the library raises, in one place.

A message says what was given, to whom, what is allowed, and how to go on.
"""

from __future__ import annotations


class IsthmusError(Exception):
    """Base of everything the library raises on purpose."""


class ArgumentError(IsthmusError, TypeError, ValueError):
    """An argument is not one that is allowed; the message says what to write instead."""


class DataError(IsthmusError, ValueError):
    """The data cannot be used as they are."""


class MissingValuesError(DataError):
    """Cells are empty; the message names the columns and says how to go on."""


class SchemaError(DataError):
    """Names, kinds or levels do not fit what was asked of them."""


class UnplannedError(IsthmusError, LookupError):
    """A table was asked for that the plan does not contain."""


class MismatchError(IsthmusError, TypeError):
    """A score, a search and a source do not fit together; the message names what would."""


class GraphError(IsthmusError, ValueError):
    """A graph is not what it claims to be: a cycle, an unknown node, no consistent extension."""


class KnowledgeError(GraphError):
    """Background knowledge contradicts itself or names unknown nodes."""


class FormatError(IsthmusError, ValueError):
    """A file or a text is not in the format it should be in."""


class MissingExtraError(IsthmusError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package!r}, which is not installed. "
            f"Install it with: pip install 'isthmus[{extra}]'"
        )


class FederationError(IsthmusError, RuntimeError):
    """A joint computation of several parties failed. No data of a single party were revealed."""


class RefusedError(FederationError):
    """A site refuses to answer. The message names the rule that does not allow it."""


class AbortedError(FederationError):
    """Too few parties were left, or one broke the protocol. No result was computed.

    Attributes
    ----------
    silent
        Names of the sites that did not answer.
    """

    def __init__(self, message: str, *, silent: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.silent = silent


class StudyError(FederationError, ValueError):
    """A study, a policy or a signature on them cannot be used."""


class LedgerError(FederationError):
    """A ledger or a journal was changed, or cannot be written."""


class IsthmusWarning(UserWarning):
    """Base of the library's warnings."""


class ModelWarning(IsthmusWarning):
    """A fitted network is simpler than the model that its graph was learned with."""


class DataWarning(IsthmusWarning):
    """The data can be used, but something in them deserves a look."""
