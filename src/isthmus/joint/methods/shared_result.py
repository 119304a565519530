"""The result of a study as JSON, for the sites that took part in it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from isthmus.joint.agreement.study import Study
from isthmus.joint.methods.admm.result import ADMMResult
from isthmus.results.solution import Solution

FORMAT = "isthmus-result/1"


def shared_result(
    solution: Solution | ADMMResult, study: Study, sites: Sequence[str] | None
) -> bytes:
    """Return what every site gets: the graph, how it was learned, and what was released.

    It follows from the sums that the sites formed together, and contains no sum itself.

    Parameters
    ----------
    solution
        The learned solution.
    study
        The study.
    sites
        Names of the sites whose numbers are in the sums.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "study": study.identity.hex(),
        "title": study.title,
        "sites": list(sites or ()),
        "nodes": list(solution.dag.nodes),
        "edges": [list(edge) for edge in solution.dag.edges],
        "notes": list(solution.notes),
        "disclosure": [[e.site, e.what, e.form, e.size] for e in solution.disclosure.entries],
    }
    if isinstance(solution, ADMMResult):
        content["weights"] = [[a, b, w] for (a, b), w in solution.edge_weights.items()]
        content["rounds"] = solution.rounds
    else:
        content["score"] = solution.score if math.isfinite(solution.score) else None
        content["choice"] = solution.choice
        content["equivalent"] = solution.equivalent
        content["status"] = str(solution.status)
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode()
