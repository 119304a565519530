"""Studies: what the parties sign."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.consortium import NAMES, Consortium

from isthmus.errors import StudyError
from isthmus_joint import Identity, Study, read_signatures, write_signatures
from isthmus_joint.agreement.toml import Reader, document


def test_a_study_is_what_its_bytes_are(four: Consortium) -> None:
    path = four.folder / "study.toml"
    four.study.write(path)
    again = Study.read(path)
    assert again == four.study
    assert again.identity == four.study.identity
    write_signatures(four.folder / "study.sig", four.signatures)
    again.require(read_signatures(four.folder / "study.sig"), ["author", *NAMES])


def test_a_flipped_byte_needs_new_signatures(four: Consortium) -> None:
    text = four.study.text
    at = text.index(b"learn")
    other = Study.parse(text[:at] + b"L" + text[at + 1 :])
    assert other.identity != four.study.identity
    with pytest.raises(StudyError, match="author"):
        other.require(four.signatures, ["author"])
    four.study = other
    with pytest.raises(StudyError, match="signature"):
        four.controller("north")


@pytest.mark.parametrize("role", ["author", "south"])
def test_signatures_cannot_be_swapped(four: Consortium, role: str) -> None:
    others = [s for s in four.signatures if s.role != role]
    forged = replace(others[0], role=role)
    with pytest.raises(StudyError, match=role):
        four.study.require([*others, forged], ["author", *NAMES])
    by_stranger = four.study.sign(Identity.generate(), role)
    with pytest.raises(StudyError, match=role):
        four.study.require([*others, by_stranger], ["author", *NAMES])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'format = "isthmus-study/4"', b'format = "x"', "format"),
        (b"rounds = 10\n", b"", "rounds is missing"),
        (b"rounds = 10\n", b'rounds = "ten"\n', "rounds is a str"),
        (b"rounds = 10\n", b"rounds = 0\n", "at least 1"),
        (b"rounds = 10\n", b"rounds = 10\nwhatever = 1\n", "whatever is not a known key"),
        (b"organisations = 3", b"organisations = 2", "organisations"),
        (b'"moments"', b'"everything"', "requests"),
        (b"high = 120.0\n", b"", "high is missing"),
        (b"high = 120.0\n", b"high = -1.0\n", "ascending"),
        (b"high = 120.0\n", b"high = inf\n", "finite"),
        (b'kind = "continuous"', b'kind = "odd"', "kind"),
        (b"levels =", b"stairs =", "levels is missing"),
        (b"threshold = 3", b"threshold = 2", "threshold"),
        (b'name = "dose"', b'name = "age"', "unique"),
        (b'name = "north"', b'name = "east"', "same name"),
        (b"ed25519:", b"rsa:", "not a public key"),
        (b"[[sites]]", b"[[villages]]", "sites is missing"),
        (b"title =", b"title", "not TOML"),
        (b'sets = [["ill", "ward"]]', b'sets = "all"', "plan"),
    ],
)
def test_mistakes_in_a_study_are_named(
    four: Consortium, old: bytes, new: bytes, message: str
) -> None:
    assert old in four.study.text
    with pytest.raises(StudyError, match=message):
        Study.parse(four.study.text.replace(old, new))


def test_all_mistakes_are_named_at_once(four: Consortium) -> None:
    text = four.study.text.replace(b"rounds = 10\n", b"").replace(b"title =", b"name =")
    with pytest.raises(StudyError, match=r"title.*rounds.*name"):
        Study.parse(text)


def test_expiry_needs_a_zone(four: Consortium) -> None:
    at = four.study.text.index(b"expires = ") + len(b"expires = 2027-01-01T00:00:00")
    with pytest.raises(StudyError, match="time zone"):
        Study.parse(four.study.text[:at] + four.study.text[at + 1 :])


@pytest.mark.long
@settings(max_examples=60)
@given(st.text(max_size=20), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_what_is_written_is_read(text: str, number: float, truth: bool) -> None:
    made = document({"a b": text, "n": number, "t": truth}, {"x": [{"k": [text, 1, number]}]})
    top = Reader.parse(made.encode(errors="surrogatepass"), "test")
    assert (top.take("a b", str), top.take("n", float), top.take("t", bool)) == (
        text,
        number,
        truth,
    )


def test_a_format_of_the_future_is_refused(four: Consortium) -> None:
    text = four.study.text.replace(b"isthmus-study/4", b"isthmus-study/5")
    with pytest.raises(StudyError, match="format must be 'isthmus-study/4'"):
        Study.parse(text)
