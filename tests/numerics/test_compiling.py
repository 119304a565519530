"""Users are told once that kernels are being compiled, and only then."""

from __future__ import annotations

import numba

from isthmus.numerics.compiling import while_compiling


def test_tells_once_when_something_is_compiled() -> None:
    @numba.njit
    def one(x):  # type: ignore[no-untyped-def]
        return x + 1

    @numba.njit
    def two(x):  # type: ignore[no-untyped-def]
        return one(x) + one(1.5)

    told: list[int] = []
    with while_compiling(lambda: told.append(1)):
        assert two(1) == 4.5
    assert told == [1]
    with while_compiling(lambda: told.append(2)):
        two(1)
    assert told == [1]
    # whoever listened is gone
    assert two(1.5) == 5.0
    assert told == [1]
