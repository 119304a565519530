"""Nouns with their numbers and articles."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an s in the plural: "1 study", "2 studies"."""
    if number == 1:
        return f"{number} {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in "aeou"
    return f"{number} {noun[:-1]}ies" if ends_in_ies else f"{number} {noun}s"


def a_type(value: object) -> str:
    """Return the name of the type of a value with its article: "a dict", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" or name == "ndarray" else f"a {name}"
