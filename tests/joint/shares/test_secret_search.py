"""`learn` with two parties: what fits the study, what a solution has, and how a run ends."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import AbortedError, MismatchError
from isthmus.watch import Ending
from isthmus_joint.shares.two_party import TwoParty
from isthmus_joint.transport.certificates import fingerprint, own_certificate

COLUMNS = {"bank": ("income", "debt"), "shop": ("visits",)}
ORDER = ("income", "debt", "visits")
PARENTS = {"income": [], "debt": ["income"], "visits": ["debt"]}
TABLE = {
    "person": [f"p{i:03}" for i in range(80)],
    "income": ["low", "high"] * 40,
    "debt": ["low"] * 30 + ["high"] * 50,
}


@pytest.fixture
def party(tmp_path: Path) -> Callable[..., TwoParty]:
    """Makes the bank's side of a study; its engine answers after three steps, or never."""

    def make(*requests: str, steps: int = 3, **outcome: Any) -> TwoParty:
        parties: list[object] = []
        for i, (name, columns) in enumerate(COLUMNS.items()):
            home = tmp_path / name
            new = ["party", "new", home, "--name", name, "--organisation", name, "--address"]
            assert main([*map(str, new), f"127.0.0.1:{9300 + 10 * i}"]) == 0
            levels = 'kind = "discrete"\nlevels = ["low", "high"]\n'
            variables = tmp_path / f"{name}.toml"
            variables.write_text(
                "".join(f'[[variables]]\nname = "{c}"\n{levels}\n' for c in columns)
            )
            parties += ["--party", home / "card.toml", variables]
        draft = ["party", "draft", tmp_path / "bank", tmp_path / "study", "--title", "T"]
        more = ["--purpose", "p", "--identifier", "person", *requests, *parties]
        more += ["--people", "100", "100"]
        assert main([*map(str, draft), *map(str, more)]) == 0
        assert main(["party", "policy", str(tmp_path / "bank"), str(tmp_path / "study")]) == 0
        source = TwoParty(tmp_path / "bank", tmp_path / "study", TABLE)

        def computation(request: Any) -> Generator[str, None, dict[str, Any]]:
            ended.append(False)
            try:
                for i in range(steps):
                    yield f"{request.name}, decision {i}"
            except GeneratorExit:
                ended[-1] = True
                raise
            return {"parents": PARENTS} | outcome

        ended: list[bool] = []
        source.ended = ended  # type: ignore[attr-defined]
        source._computation = computation  # type: ignore[method-assign]
        return source

    return make


def test_a_solution_like_every_other(party: Callable[..., TwoParty], tmp_path: Path) -> None:
    tables = [
        {"variable": "debt", "parents": ["income"], "counts": [[30, 10], [10, 30]]},
        {"variable": "income", "parents": [], "counts": None},
    ]
    source = party("--tables", tables=tables)
    search = ist.PrivateK2(order=ORDER, max_parents=2)
    found = ist.learn(source, search=search, seed=3)
    assert found.dag == ist.DAG(ORDER, [("income", "debt"), ("debt", "visits")])
    assert found.status.ending is Ending.CONVERGED
    assert not found.equivalent  # K2 is not
    assert found.provenance.seed == 3
    assert "search=PrivateK2(" in found.provenance.code
    assert found.details.tables["debt"].probabilities(0).tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert "Withheld, for small cells or people with equal values: income." in found.notes
    assert "Nobody knows the scores" in str(found)
    found.save(tmp_path / "network.isthmus")
    assert ist.Solution.load(tmp_path / "network.isthmus").dag == found.dag


def test_the_study_says_which_search(party: Callable[..., TwoParty]) -> None:
    source = party("--request", "structure only", "--score", "BDeu")
    found = ist.learn(source)
    assert found.choice.startswith("Search StructureOnly")
    assert found.status.ending is Ending.OPTIMAL
    assert found.equivalent
    with pytest.raises(MismatchError, match=r"the study allows .*Use search=StructureOnly\("):
        ist.learn(source, search=ist.PrivateK2())


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": ist.PrivateK2(order=ORDER[::-1])}, "order is .* in the study"),
        ({"search": ist.PrivateK2(max_parents=3)}, "max_parents is 2 in the study"),
        ({"search": ist.Boss()}, r"Use learn\(data, search=PrivateK2\(.*which the study allows"),
        ({"search": ist.ADMM()}, "only a Federation whose study allows ADMM"),
        ({"score": ist.K2()}, "score=.* has no effect with PrivateK2"),
        ({"knowledge": ist.Knowledge(forbidden=[("income", "debt")])}, "without other knowledge"),
    ],
)
def test_what_the_study_is_not_for(
    party: Callable[..., TwoParty], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(MismatchError, match=message):
        ist.learn(party(), **options)


def test_a_time_limit_ends_the_run_without_a_graph(party: Callable[..., TwoParty]) -> None:
    source = party(steps=10**9)
    with pytest.raises(AbortedError, match="again at both parties") as error:
        ist.learn(source, time_limit=0.05)
    assert error.value.reason == "time limit"
    assert source.ended[-1]  # type: ignore[attr-defined]


def test_ctrl_c_ends_the_run_without_a_graph(party: Callable[..., TwoParty]) -> None:
    source = party(steps=10**9)

    def interrupt(state: ist.watch.Progress) -> None:
        assert "private k2, decision" in state.text
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ist.learn(source, progress=interrupt)
    assert source.ended[-1]  # type: ignore[attr-defined]


def test_a_second_certificate_on_a_card_is_not_trusted(
    party: Callable[..., TwoParty], tmp_path: Path
) -> None:
    """z07: the engines trust every certificate in the file; the study names the first one."""
    party()
    card = tmp_path / "study" / "cards" / "001.toml"
    text, thief = card.read_text(), own_certificate("thief")[0].decode()
    end = "-----END CERTIFICATE-----\\n"
    assert end in text
    card.write_text(text.replace(end, end + thief.replace("\n", "\\n")))
    source = TwoParty(tmp_path / "bank", tmp_path / "study", TABLE)
    assert source._cards["shop"].certificate.count("BEGIN") == 2
    trusted = source._credentials().trusted.read_text()
    assert trusted.count("BEGIN") == 1
    assert fingerprint(trusted) == source._other.certificate
