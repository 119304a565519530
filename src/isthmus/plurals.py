"""Numbers in sentences, and nouns with their numbers and articles."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an s in the plural: "1 study", "2 studies"."""
    if number == 1:
        return f"{number} {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in "aeou"
    return f"{number} {noun[:-1]}ies" if ends_in_ies else f"{number} {noun}s"


def rounded(value: float, digits: int = 2) -> str:
    """Return a number with at least so many significant digits, and no exponent below 10⁷."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text and abs(value) < 1e7 else text


def a_type(value: object) -> str:
    """Return the name of the type of a value with its article: "a dict", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" or name == "ndarray" else f"a {name}"
