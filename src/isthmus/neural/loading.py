"""Import JAX, in one place for all networks."""

from __future__ import annotations

from functools import cache

from isthmus import interrupts
from isthmus.errors import MissingExtraError


def load_jax(feature: str) -> None:
    """Import JAX and start its backend; raise `MissingExtraError` if it is not installed.

    Ctrl-C is held back meanwhile, which takes about a second in the first call of a process.

    Parameters
    ----------
    feature
        Feature that needs JAX, for the error message.
    """
    with interrupts.held_back():
        try:
            import jax  # noqa: F401 - imported to see whether it is installed
        except ImportError:
            raise MissingExtraError("jax", "neural", feature) from None
        _compile()


@cache
def _compile() -> None:
    """Compile a first function, which imports more of JAX."""
    import jax.numpy as jnp

    jnp.zeros(1)
