"""One organisation poses as two, by names that look alike."""

from __future__ import annotations

import itertools

import pytest

from isthmus_joint import Member
from isthmus_joint.agreement.roster import name_problems

ALIKE = [
    ("General Hospital", "Genera1 Hospital"),
    ("General Hospital", "GeneraI Hospital"),
    ("GENERAL HOSPITAL", "GeneraI Hospital"),
    ("Omega Clinic", "0mega Clinic"),
    ("Berne Inselspital", "Beme Inselspital"),
    ("Inselspital", "lnselspital"),
    ("Inselspital", "inselspital"),
    ("St Mary", "\u13da\u13a2 Mary"),  # Cherokee
    ("Sana Klinik", "\ua4e2\ua4ee\ua4e0\ua4ee Klinik"),  # Lisu
    ("SANA", "\ua4e2\ua4ee\ua4e0\ua4ee"),
    ("Coop", "\u1d04oop"),
    ("Roma", "Ro\u1e43a"),
    ("Nord", "N\u00f3rd"),
    ("Sud", "Su\u0323d"),
    ("hospital", "hospit\u0251l"),
    ("\u0412\u0435\u0440\u0430", "\u0432\u0435\u0440\u0430"),  # Cyrillic, in both cases
    ("\u0413\u041e\u0420", "\u0393\u039f\u03a1"),  # Cyrillic and Greek
    ("Clinic", "C|inic"),
]

ORDINARY = [
    "Nord",
    "Nord-Ost",
    "St Mary",
    "St Mark",
    "Ost",
    "West",
    "Clinic 1",
    "Clinic 2",
    "Clinic 11",
    "Clinic 7",
    "Charité",
    "Universitätsspital Zürich",
    "Universitätsspital Basel",
    "Hill",
    "Hull",
    "Hall",
    "Bern",
    "Beer",
    "Больница № 1",
    "Больница № 2",
    "Νοσοκομείο Αθηνών",
    "Νοσοκομείο Πατρών",
    "東京病院",
    "京都病院",
    "がん",
    "かん",
    "कमल",
    "कमला",
    "مستشفى القاهرة",
    "مستشفى الجيزة",
]


def problems(*names: str) -> list[str]:
    return name_problems([Member(f"site {i}", n, bytes(32)) for i, n in enumerate(names)])


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_are_refused(one: str, other: str) -> None:
    for pair in ((one, other), (other, one)):
        assert problems(*pair)


def test_the_generated_table_covers_what_people_misread() -> None:
    for group in ("0Oo", "1lI|", ("rn", "m")):
        for one, other in itertools.permutations(group, 2):
            assert problems(f"x{one}x", f"x{other}x"), (one, other)


@pytest.mark.parametrize("hidden", ["\u200b", "\u034f", "\u3164", "\ufe0f", "\u115f"])
def test_invisible_characters_are_refused(hidden: str) -> None:
    assert problems("Nord", f"No{hidden}rd")


def test_ordinary_names_are_told_apart() -> None:
    assert problems(*ORDINARY) == []
