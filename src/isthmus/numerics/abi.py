"""The binary interface between compiled searches and local scores.

A compiled search must call a score that it knows nothing about, and must not be compiled
anew for each score. So a score is an address: a C function of seven 64-bit integers,

``status(data, child, parents, k, candidates, m, out)``

where ``data``, ``parents``, ``candidates`` and ``out`` are addresses. It writes
``out[0] = score(child | parents)`` and ``out[1 + j] = score(child | parents + candidates[j])``
for ``j < m`` as float64 and returns 0; anything else means that it failed and that the search
must stop. Built-in scores are compiled by ``numba.cfunc``; a score written in Python is wrapped
by ``ctypes`` (see ``isthmus.objectives.local``). Both look the same from here.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

SCORE_SIGNATURE = types.int64(*(types.int64,) * 7)


@intrinsic
def call_score(  # type: ignore[no-untyped-def]
    typing_context, address, data, child, parents, k, candidates, m, out
):
    """Call the score at ``address``; see the module's docstring."""
    signature = types.int64(*(types.int64,) * 8)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = ir.IntType(64)
        pointer = ir.PointerType(ir.FunctionType(word, [word] * 7))
        return builder.call(builder.inttoptr(args[0], pointer), list(args[1:]))

    return signature, generate


def _pointer_to(item: types.Type) -> Any:
    @intrinsic
    def convert(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            target = context.get_value_type(types.CPointer(item))
            return builder.inttoptr(args[0], target)

        return types.CPointer(item)(types.int64), generate

    return convert


_f8 = _pointer_to(types.float64)
_i8 = _pointer_to(types.int64)
_u1 = _pointer_to(types.uint8)
_u2 = _pointer_to(types.uint16)


@numba.njit(inline="always")
def floats_at(address, shape):  # type: ignore[no-untyped-def]
    """View the float64 values at ``address`` as an array of ``shape``."""
    return carray(_f8(address), shape)


@numba.njit(inline="always")
def ints_at(address, shape):  # type: ignore[no-untyped-def]
    """View the int64 values at ``address`` as an array of ``shape``."""
    return carray(_i8(address), shape)


@numba.njit(inline="always")
def bytes_at(address, shape):  # type: ignore[no-untyped-def]
    """View the uint8 values at ``address`` as an array of ``shape``."""
    return carray(_u1(address), shape)


@numba.njit(inline="always")
def shorts_at(address, shape):  # type: ignore[no-untyped-def]
    """View the uint16 values at ``address`` as an array of ``shape``."""
    return carray(_u2(address), shape)


@numba.njit(inline="always")
def evaluate(score, child, parents, k, candidates, m, out):  # type: ignore[no-untyped-def]
    """Score ``parents[:k]`` and its ``m`` extensions into ``out``; ``score`` is (address, data)."""
    return call_score(
        score[0],
        score[1],
        child,
        parents.ctypes.data,
        k,
        candidates.ctypes.data,
        m,
        out.ctypes.data,
    )


__all__ = [
    "SCORE_SIGNATURE",
    "bytes_at",
    "call_score",
    "evaluate",
    "floats_at",
    "ints_at",
    "shorts_at",
]
