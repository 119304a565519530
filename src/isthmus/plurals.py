"""Numbers with their nouns, in the singular and in the plural."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an s in the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
