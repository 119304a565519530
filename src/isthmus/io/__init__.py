"""Read and write graphs, networks and local scores.

For each text format F, ``to_F`` and ``from_F`` convert to and from text, and ``write_F`` and
``read_F`` write and read files. Files whose name ends in ``.gz`` are compressed.
"""

from isthmus.io.bif import from_bif, read_bif, to_bif, write_bif
from isthmus.io.dot import from_dot, read_dot, to_dot, write_dot
from isthmus.io.edge_list import from_edge_list, read_edge_list, to_edge_list, write_edge_list
from isthmus.io.graphml import from_graphml, read_graphml, to_graphml, write_graphml
from isthmus.io.json_text import (
    from_bnlearn_json,
    from_json,
    read_bnlearn_json,
    read_json,
    to_json,
    write_json,
)
from isthmus.io.local_scores import (
    from_local_scores,
    read_local_scores,
    to_local_scores,
    write_local_scores,
)
from isthmus.io.networkx import from_networkx, to_networkx
from isthmus.io.pgmpy import from_pgmpy, to_pgmpy

__all__ = [
    "from_bif",
    "from_bnlearn_json",
    "from_dot",
    "from_edge_list",
    "from_graphml",
    "from_json",
    "from_local_scores",
    "from_networkx",
    "from_pgmpy",
    "read_bif",
    "read_bnlearn_json",
    "read_dot",
    "read_edge_list",
    "read_graphml",
    "read_json",
    "read_local_scores",
    "to_bif",
    "to_dot",
    "to_edge_list",
    "to_graphml",
    "to_json",
    "to_local_scores",
    "to_networkx",
    "to_pgmpy",
    "write_bif",
    "write_dot",
    "write_edge_list",
    "write_graphml",
    "write_json",
    "write_local_scores",
]
