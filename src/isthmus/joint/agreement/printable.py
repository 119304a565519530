"""Text that others wrote, for the terminal of somebody who has to trust what it shows."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text as one line: a space for white space, � for whatever controls a terminal.

    A line break could forge a line of our own, and an escape sequence could hide one.
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
