"""Tables from the ledger of `orders.py`."""

# ruff: noqa: E501

from __future__ import annotations

import statistics
from typing import Any

from data import SAMPLED, UCI

Runs = list[dict[str, Any]]
COLUMNS = (
    "A*", "pyagrum HC", "HC", "XGES", "BOSS from data", "ASOBS from data", "OBS", "BOSS", "ASOBS",
    "RBNets", "RBNets improved",
)  # fmt: skip
SEEDED = COLUMNS[4:]
ORDER = (
    "shuttle", "adult", "voting", "segment", "horse colic", "water*", "alarm*", "sponge",
    "hailfinder*", "hepar2*", "ozone", "insurance", "pathfinder*", "gas sensor", "semeion",
    "madelon", "isolet", "parkinson", "androgen",
)  # fmt: skip
CATEGORIES = (
    ("very positive (K > 10)", 10.0, float("inf")),
    ("strongly positive (6 < K < 10)", 6.0, 10.0),
    ("positive (2 < K < 6)", 2.0, 6.0),
    ("neutral (-2 < K < 2)", -2.0, 2.0),
    ("negative (-6 < K < -2)", -6.0, -2.0),
    ("strongly negative (-10 < K < -6)", -10.0, -6.0),
    ("very negative (K < -10)", float("-inf"), -10.0),
)
ABOUT = """# Searches over orders: the tables of the RBNets paper on the data at hand

    python benchmarks/orders/orders.py run --peers PYTHON
    python benchmarks/orders/orders.py render

CPU seconds of one thread on a busy machine with two cores; budgets are CPU seconds, too, and the same for all searches: OBS,
BOSS, ASOBS and RBNets, both ways, have the seconds of the column "budget" over a table; "from data" has those and the seconds of the listing.
OBS, BOSS, ASOBS and the improved RBNets restart until their time is over; RBNets as published ends after 300 episodes, if it gets that far.
HC, XGES and pyagrum's hill climbing end by themselves. Compiling is not counted, but for the network of RBNets, which is compiled again for each
number of variables: about one of its seconds. The BIC of each graph (nats, higher is better) is computed by a function that knows no search. Each data set's parent sets
are listed once, in at most the seconds of the column "listing", and given to all searches over tables. A table
that is "not complete" lacks sets, and searches over it cannot find graphs that need them; "ASOBS from data" looks for such sets.
"""


def runs_of(runs: Runs, table: str) -> dict[tuple[str, str], Runs]:
    found: dict[tuple[str, str], Runs] = {}
    for one in runs:
        kind, name, method, _ = one["key"]
        if kind == table:
            found.setdefault((name, method), []).append(one)
    return found


def cell(mine: Runs, best: float) -> str:
    scored = [one for one in mine if "bic" in one]
    scored = [one for one in scored if one["key"][2] != "A*" or one.get("ending") == "optimal"]
    if not scored:
        return "–" if not mine else "no"
    mean = statistics.mean(one["bic"] for one in scored)
    gap = best - mean
    return "**0**" if gap < 0.005 else f"{gap:.1f}" if gap < 1000 else f"{gap:.0f}"


def seconds(mine: Runs) -> str:
    scored = [one["seconds"] for one in mine if "bic" in one]
    if not scored:
        return "–"
    value = statistics.median(scored)
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def table2(runs: Runs) -> str:
    found = runs_of(runs, "2")
    names = [n for n in ORDER if any(name == n for name, _ in found)]
    text = (
        "\n## Table 2: BIC\n\nThe best BIC of all, and how much less each search reached (bold 0: as good): means over "
        "the seeds in the last column, one for HC, XGES, pyagrum and A*, which draw nothing. A* is exact; it had a listing of all sets of its own (`orders.py exact`), "
        "12 s for it and 12 s to solve: no means that it came to no proof.\n\n| data | variables | rows | best BIC | "
        + " | ".join(COLUMNS) + " | seeds |\n" + "| --- " * (len(COLUMNS) + 5) + "|\n"
    )  # fmt: skip
    for name in names:
        mine = {m: found.get((name, m), []) for m in COLUMNS}
        every = [one for group in mine.values() for one in group if "bic" in one]
        best = max(one["bic"] for one in every)
        cells = " | ".join(cell(mine[m], best) for m in COLUMNS)
        first = next(one for one in every if "d" in one)
        seeds = min(len(mine[m]) for m in SEEDED)
        text += f"| {name} | {first['d']} | {first['n']} | {best:.1f} | {cells} | {seeds} |\n"
    shown = [c for c in COLUMNS if c not in ("OBS", "BOSS", "ASOBS", "RBNets improved")]
    text += (
        "\n## Table 2: seconds\n\nWith the listing, add its seconds to those of A* and of the searches over tables. "
        "The budget is what OBS, BOSS, ASOBS and the improved RBNets took.\n\n| data | sets listed | complete "
        "| listing | budget | " + " | ".join(shown) + " | episodes |\n" + "| --- " * (len(shown) + 6) + "|\n"
    )  # fmt: skip
    for name in names:
        mine = {m: found.get((name, m), []) for m in COLUMNS}
        first = mine["OBS"][0]
        walked = [one["episodes"] for one in mine["RBNets"] if "episodes" in one]
        text += (
            f"| {name} | {first['sets']:,} | {'yes' if first['complete'] else 'no'} "
            f"| {first['pops']:.2f} | {first['budget']:.0f} | "
            + " | ".join(seconds(mine[m]) for m in shown)
            + f" | {min(walked, default='–')} |\n"
        )
    return text


def counts(runs: Runs, table: str, title: str, note: str) -> str:
    found = runs_of(runs, table)
    names = sorted({name for name, _ in found})
    rivals = [m for m in COLUMNS if m not in ("A*", "RBNets", "RBNets improved")]
    text = f"\n## Table {table}: {title}\n\n{note}\n"
    for ours in ("RBNets", "RBNets improved"):
        text += (
            f"\n{ours} against\n\n| ΔBIC | "
            + " | ".join(rivals)
            + " |\n"
            + "| --- " * (len(rivals) + 1)
            + "|\n"
        )
        tally: dict[str, list[float]] = {m: [] for m in rivals}
        for name in names:
            mine = [one["bic"] for one in found.get((name, ours), []) if "bic" in one]
            for m in rivals:
                theirs = [one["bic"] for one in found.get((name, m), []) if "bic" in one]
                if mine and theirs:
                    tally[m].append(statistics.mean(mine) - statistics.mean(theirs))
        for label, low, high in CATEGORIES:
            row = [sum(low <= k < high for k in tally[m]) for m in rivals]
            text += f"| {label} | " + " | ".join(map(str, row)) + " |\n"
        text += "| data sets | " + " | ".join(str(len(tally[m])) for m in rivals) + " |\n"
    return text


def short(runs: Runs, table: str) -> str:
    """Say what the small budgets were."""
    mine = [one for one in runs if one["key"][0] == table and one["key"][2] in SEEDED]
    (seconds,) = {one["budget"] for one in mine}
    seeds = 1 + min(max(o["key"][3] for o in mine if o["key"][2] == m) for m in SEEDED)
    return f"{seconds} seconds for every search over tables, 1 for the listing; seeds: {seeds}."


def policies(runs: Runs) -> str:
    """What of the improved agent's result is due to the network."""
    text = (
        "\n## What the gain of the improved RBNets is due to\n\nBIC less than the best of all, first seed: "
        "the start by OBS, the best walk of the network, the last policy, and the result after climbing. The published "
        "one has the best walk and the last policy only.\n\n| data | warm start | best walk | last policy | result "
        "| published: best walk | last policy |\n" + "| --- " * 7 + "|\n"
    )
    found = runs_of(runs, "2")
    for name in ORDER:
        mine = [one for one in found.get((name, "RBNets improved"), []) if "best_walk" in one]
        plain = [one for one in found.get((name, "RBNets"), []) if "best_walk" in one]
        every = [
            one["bic"] for (n, _), g in found.items() if n == name for one in g if "bic" in one
        ]
        if not mine or not plain:
            continue
        best = max(every)

        def gap(one: dict[str, Any], key: str, best: float = best) -> str:
            value = one.get(key)
            if value is None or value < -1e14 or value == float("-inf"):
                return "–"
            return f"{best - value:.1f}"

        a, b = mine[0], plain[0]
        text += (
            f"| {name} | {gap(a, 'warm_start')} | {gap(a, 'best_walk')} | {gap(a, 'policy')} "
            f"| {gap(a, 'bic')} | {gap(b, 'best_walk')} | {gap(b, 'policy')} |\n"
        )
    return text


def large(runs: Runs) -> str:
    text = (
        "\n## Five hundred variables and more, beside pyagrum\n\n"
        "    python benchmarks/orders/large.py --names isolet --budget 10 --peers PYTHON\n"
        "    python benchmarks/orders/large.py --names madelon --methods BOSS ASOBS --budget 2 --sets 300 --peers PYTHON\n\n"
        "Ours from data, parent sets included, stopped at the budget (what is begun is finished); pyagrum's hill climbing to "
        "its own end.\n\n| data | search | budget | seconds | BIC | edges |\n"
        + "| --- " * 6
        + "|\n"
    )
    text += "| isolet | pyagrum HC | – | > 200 | stopped by us, no graph | – |\n"
    for one in runs:
        budget = f"{one['budget']:.0f}" if "budget" in one else "–"
        text += (
            f"| {one['name']} | {one['method']} | {budget} | {one['seconds']:.1f} "
            f"| {one['bic']:.1f} | {one['edges']} |\n"
        )
    return text


def render(runs: Runs, many: Runs) -> str:
    for one in runs:
        one.setdefault("pops", one.get("listing", 0.0))
    text = ABOUT + table2(runs) + policies(runs)
    text += counts(
        runs, "3", "random halves of UCI data sets",
        "Each data set with up to 128 variables is split at random into two (the paper also splits larger ones). "
        + short(runs, "3"),
    )  # fmt: skip
    text += counts(
        runs, "4", f"{', '.join(SAMPLED)}",
        "The first 200, 500, 1000, 2000, 3000 and 5000 rows of one sample of each. " + short(runs, "4"),
    )  # fmt: skip
    return text + large(many) + f"\nNot at hand: wikipedia. UCI sets: {', '.join(UCI)}.\n"
