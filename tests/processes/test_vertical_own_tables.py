"""A run of the real engine: each party gets its own tables, and a listener sees only TLS."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.processes.companies import COLUMNS, Companies, table
from tests.processes.test_vertical_traffic import require_only_tls, run_over_proxies


def test_own_tables_and_the_traffic_of_a_run(companies: Callable[..., Companies]) -> None:
    world = companies(bank=range(1200), shop=range(200, 1200), draft=["--tables", "--parents", "1"])
    require_only_tls(world, run_over_proxies(world))
    common = {k: np.array(v[200:]) for k, v in table(range(1200)).items() if k != "person"}
    parents = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}
    for name, columns in COLUMNS.items():
        saved: dict[str, Any] = json.loads((world.state(name) / "tables.json").read_text())
        assert [t["variable"] for t in saved["tables"]] == list(columns)
        assert saved["levels"]["c"] == [0, 1, 2]
        for each in saved["tables"]:
            assert each["parents"] == parents[each["variable"]]
            members = [*each["parents"], each["variable"]]
            shape = [len(saved["levels"][m]) for m in members]
            codes = np.ravel_multi_index([common[m] for m in members], shape)
            expected = np.bincount(codes, minlength=np.prod(shape)).reshape(shape)
            np.testing.assert_array_equal(each["counts"], expected)
        revealed = [what for what in world.revealed(name) if "the table of" in what]
        assert len(revealed) == 1  # c is the only variable with a parent of the other party
        assert revealed[0].startswith("the table of c and its parents b, to shop alone")
        assert "bank: the table of c and its parents b, to shop alone" in world.log(name)
        # What only one party learned is in no journal: those are compared when a run is resumed.
        assert not [r for r in world.journal(name) if "table" in r.get("decision", "")]
