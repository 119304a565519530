"""Write confusables.py of isthmus_joint.agreement from the table of Unicode.

Usage: python packaging/write_confusables.py confusables.txt
The table is at https://www.unicode.org/Public/security/latest/confusables.txt
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

from isthmus_joint.agreement.roster import without_marks

TARGET = (
    Path(__file__).parents[1] / "packages/isthmus-joint/src/isthmus_joint/agreement/confusables.py"
)
ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "DIGIT")
WIDTH = 85

HEAD = '''"""Characters, and the letters or digits that look the same (UTS #39, prototypes).

Generated from confusables.txt, version {version}, by packaging/write_confusables.py: all characters
whose prototype consists of Latin, Greek or Cyrillic letters and digits, except those that the
compatibility decomposition of Unicode maps already. © Unicode, Inc.; the data are used under
https://www.unicode.org/license.txt
"""

from __future__ import annotations

'''


def table(text: str) -> dict[str, str]:
    """Return the prototype of each character, as far as it is a text in a known alphabet."""
    prototypes = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if len(fields) < 2:
            continue
        source = chr(int(fields[0], 16))
        target = without_marks("".join(chr(int(code, 16)) for code in fields[1].split()))
        target = "".join(c for c in target if c.isalnum())
        known = all(unicodedata.name(c, "").split(" ")[0] in ALPHABETS for c in target)
        if known and target not in ("", source) and without_marks(source) == source:
            prototypes[source] = target
    return prototypes


def lines(text: str) -> str:
    """Return a text as a Python expression of several lines."""
    pieces = [text[i : i + WIDTH] for i in range(0, len(text), WIDTH)]
    return "(\n" + "".join(f'    "{piece}"\n' for piece in pieces) + ")"


def main(path: str) -> None:
    """Write the module."""
    text = Path(path).read_text(encoding="utf-8-sig")
    version = next(line.split()[-1] for line in text.splitlines() if "Version" in line)
    prototypes = table(text)
    single = {s: t for s, t in prototypes.items() if len(t) == 1}
    several = " ".join(s + t for s, t in prototypes.items() if len(t) > 1)
    TARGET.write_text(
        HEAD.format(version=version)
        + f"LETTERS = {lines(''.join(single))}\n"
        + f"SHAPES = {lines(''.join(single.values()))}\n"
        + f"SEVERAL = {lines(several)}\n\n"
        + "PROTOTYPES = dict(zip(map(ord, LETTERS), SHAPES, strict=True))\n"
        + "PROTOTYPES |= {ord(pair[0]): pair[1:] for pair in SEVERAL.split()}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1])
