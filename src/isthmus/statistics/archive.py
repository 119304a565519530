"""The file format of statistics: one ``.npz`` of plain arrays and a JSON header; never a pickle."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError, IsthmusError

FilePath: TypeAlias = str | os.PathLike[str]

HEADER = "header"

_FEW_COLUMNS = 2_000
"""Up to this size, checking the eigenvalues of a Gram matrix takes less than a second."""

# What zipfile, NumPy and json raise for damaged bytes: a flipped bit can turn into any of these.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,  # includes RecursionError and NotImplementedError
    SyntaxError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def write(
    path: FilePath, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, compress: bool
) -> None:
    """Write a header and arrays under exactly this name."""
    text = json.dumps(header, ensure_ascii=False, allow_nan=False)
    packed = {HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    # Not np.savez: only new versions of it can be told to refuse pickles.
    with zipfile.ZipFile(path, "w", method, allowZip64=True) as archive:
        for name, values in packed.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: the same content, the same bytes
            entry.compress_type = method
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)


def read(path: FilePath, expected: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of a file.

    Parameters
    ----------
    expected
        The format that the header must name.

    Raises
    ------
    FormatError
        If the file is damaged, or not of this format. A file that does not exist or may not be
        read raises the `OSError` of the operating system.
    """
    with Path(path).open("rb") as file:
        try:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise FormatError(f"{path} is a single array, not a file of {expected!r}.")
            with loaded as archive:
                arrays = {name: np.asarray(archive[name]) for name in archive.files}
        except FormatError:
            raise
        except _DAMAGE as error:
            raise FormatError(
                f"{path} cannot be read as a file of statistics ({_reason(error)}). Give a file "
                "that Moments.save or Counts.save wrote, or write it again if it is damaged."
            ) from error
    header = _header(path, arrays)
    if header.get("format") != expected:
        raise FormatError(
            f"{path} has the format {header.get('format')!r}; {expected!r} is needed here. "
            "Moments.load reads moments and Counts.load reads counts; "
            "a newer file needs a newer version of isthmus."
        )
    return header, arrays


@contextmanager
def damage_reported(path: FilePath) -> Iterator[None]:
    """Turn errors raised while the content of a file is interpreted into a `FormatError`."""
    try:
        yield
    except (*_DAMAGE, IsthmusError) as error:
        raise FormatError(
            f"{path} is damaged: {_reason(error)}. Write the file again from its source."
        ) from error


def whole_number(value: object, name: str) -> int:
    """Return an integer of at least 1 from a header."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FormatError(f"{name} is {value!r}; an integer of at least 1 is needed")
    return value


def optional_text(value: object, name: str) -> str | None:
    """Return a string or None from a header."""
    if value is not None and not isinstance(value, str):
        raise FormatError(f"{name} is {value!r}; text or null is needed")
    return value


def real(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array of floats or integers from a file."""
    if values.dtype.kind not in "fiu":
        raise FormatError(f"{name} has the type {values.dtype}; real numbers are needed")
    return values


def require_gram(gram: NDArray[np.float64], sums: NDArray[np.float64], n: int) -> None:
    """Raise an error unless a matrix can be the Gram matrix of `n` rows with these sums."""
    if not np.array_equal(gram, gram.T):
        raise FormatError("gram is not symmetric")
    scatter = gram - np.outer(sums, sums / n)
    squares = gram.diagonal()
    # Rounding leaves a little of the larger terms that cancel here.
    if (squares < 0).any() or (scatter.diagonal() < -1e-9 * squares).any():
        raise FormatError("gram has a negative sum of squares")
    spread = np.sqrt(squares)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    cosines = gram * scale[:, None] * scale
    if (np.abs(gram[spread == 0]) > 0).any() or np.abs(cosines).max(initial=0.0) > 1 + 1e-9:
        raise FormatError("gram has a product of two columns above what their squares allow")
    if len(gram) <= _FEW_COLUMNS:
        try:
            np.linalg.cholesky(cosines + 1e-7 * np.eye(len(gram)))
        except np.linalg.LinAlgError:
            raise FormatError("gram has a negative eigenvalue") from None


def require_arrays(arrays: Iterable[str], expected: Iterable[str]) -> None:
    """Raise an error unless a file contains exactly the expected arrays."""
    there, needed = set(arrays), set(expected)
    if there != needed:
        raise FormatError(f"it holds the arrays {sorted(there)}; {sorted(needed)} are needed")


def _header(path: FilePath, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    try:
        raw = arrays.pop(HEADER)
        if raw.dtype != np.uint8:
            raise FormatError(f"its type is {raw.dtype}, not uint8")
        header = json.loads(raw.tobytes().decode())
    except _DAMAGE as error:
        raise FormatError(
            f"{path} has no readable header ({_reason(error)}): isthmus did not write this file."
        ) from error
    if not isinstance(header, dict):
        raise FormatError(
            f"{path} has a header that is not a JSON object: isthmus did not write this file."
        )
    return header


def _reason(error: BaseException) -> str:
    """Return the message of an error without its full stop, or its type if it has none."""
    text = str(error).strip().removesuffix(".")
    if isinstance(error, KeyError):
        return f"{text} is missing"
    return text or type(error).__name__
