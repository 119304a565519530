"""Nouns with their numbers and articles."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an s in the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def a_type(value: object) -> str:
    """Return the name of the type of a value with its article: "a dict", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" or name == "ndarray" else f"a {name}"
