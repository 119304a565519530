"""Two ways to compile: what Python calls, and what only other kernels call."""

from __future__ import annotations

from functools import partial

import numba

kernel = partial(numba.njit, cache=True)
"""For functions called from Python; the compiled code is kept on disk."""

inner = partial(numba.njit, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For functions called from kernels only: no wrapper, which halves the time to compile."""
