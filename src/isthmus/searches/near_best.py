"""All graphs that score nearly as much as the best one, each once."""

from __future__ import annotations

import heapq

from isthmus.searches.exact import Choice, Component


def enumerate_near_best(
    part: Component, values: dict[int, float], floor: float, most: int
) -> list[Choice]:
    """List the best graphs of one component.

    A graph is taken apart sink by sink, always the sink with the highest number, so that each
    graph comes once. ``values`` are the best scores of sets of nodes, at least of those that a
    graph above the floor is made of.

    Parameters
    ----------
    part
        The component.
    values
        Best score of each set of nodes, as a mask.
    floor
        Graphs that score less are left out.
    most
        How many to give.
    """
    kept: list[tuple[float, int, tuple[int, ...]]] = []
    m = len(part.nodes)
    chosen = [0] * m
    tick = 0
    floor -= 1e-9 * max(1.0, abs(floor))

    def visit(left: int, barred: int, sure: float) -> None:
        nonlocal tick, floor
        if not left:
            tick += 1
            heapq.heappush(kept, (sure, -tick, tuple(chosen)))
            if len(kept) > most:
                heapq.heappop(kept)
            if len(kept) == most:
                # As good as the last one is not better: there can be millions of them.
                floor = max(floor, kept[0][0] + 1e-12 * max(1.0, abs(kept[0][0])))
            return
        steps = []
        for x in range(m):
            if not left >> x & 1 or barred >> x & 1:
                continue
            rest = left ^ (1 << x)
            value = values.get(rest) if rest else 0.0
            if value is not None:
                steps += [
                    (sure + s + value, x, mask, s, line)
                    for mask, s, line in part.lists[x]
                    if not mask & ~rest and sure + s + value >= floor
                ]
        steps.sort(key=lambda step: -step[0])
        for hope, x, mask, s, line in steps:
            if hope < floor:
                break
            rest = left ^ (1 << x)
            chosen[x] = line
            # A node above x that is left must have been no sink: a later one must be its child.
            above = rest >> (x + 1) << (x + 1)
            visit(rest, (barred | above) & ~mask & rest, sure + s)

    visit((1 << m) - 1, 0, 0.0)
    kept.sort(key=lambda one: (-one[0], -one[1]))
    return [(score, dict(zip(part.nodes, lines, strict=True))) for score, _, lines in kept]


def combine(first: list[Choice], second: list[Choice], most: int, slack: float) -> list[Choice]:
    """Put the graphs of two parts together, best first.

    Parameters
    ----------
    first, second
        The best graphs of either part, best first.
    most
        How many to give.
    slack
        Graphs that score so much less than the best one are left out: where either list ends so
        far below its best graph, the next ones may be missing.
    """
    pairs = [
        (score + more, i, j)
        for i, (score, _) in enumerate(first)
        # The pairs before this one are as good: more than ``most`` of them are not needed.
        for j, (more, _) in enumerate(second[: most // (i + 1)])
    ]
    pairs.sort(key=lambda pair: -pair[0])
    return [
        (score, {**first[i][1], **second[j][1]})
        for score, i, j in pairs[:most]
        if score >= pairs[0][0] - slack
    ]
