"""Read and write graphs, networks and local scores.

For each text format F, ``to_F`` and ``from_F`` convert to and from text, and ``write_F`` and
``read_F`` write and read files. Files whose name ends in ``.gz`` are compressed.
"""

from isthmus.io.bif import from_bif, read_bif, to_bif, write_bif
from isthmus.io.dot import from_dot, read_dot, to_dot, write_dot
from isthmus.io.edge_list import from_edge_list, read_edge_list, to_edge_list, write_edge_list
from isthmus.io.gml import from_gml, read_gml, to_gml, write_gml
from isthmus.io.graphml import from_graphml, read_graphml, to_graphml, write_graphml
from isthmus.io.hugin import from_hugin, read_hugin, to_hugin, write_hugin
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
from isthmus.io.model_string import from_model_string, to_model_string
from isthmus.io.networkx import from_networkx, to_networkx
from isthmus.io.pgmpy import from_pgmpy, to_pgmpy
from isthmus.io.tetrad import from_tetrad, read_tetrad, to_tetrad, write_tetrad
from isthmus.io.xdsl import from_xdsl, read_xdsl, to_xdsl, write_xdsl
from isthmus.io.xmlbif import from_xmlbif, read_xmlbif, to_xmlbif, write_xmlbif

__all__ = [
    "from_bif",
    "from_bnlearn_json",
    "from_dot",
    "from_edge_list",
    "from_gml",
    "from_graphml",
    "from_hugin",
    "from_json",
    "from_local_scores",
    "from_model_string",
    "from_networkx",
    "from_pgmpy",
    "from_tetrad",
    "from_xdsl",
    "from_xmlbif",
    "read_bif",
    "read_bnlearn_json",
    "read_dot",
    "read_edge_list",
    "read_gml",
    "read_graphml",
    "read_hugin",
    "read_json",
    "read_local_scores",
    "read_tetrad",
    "read_xdsl",
    "read_xmlbif",
    "to_bif",
    "to_dot",
    "to_edge_list",
    "to_gml",
    "to_graphml",
    "to_hugin",
    "to_json",
    "to_local_scores",
    "to_model_string",
    "to_networkx",
    "to_pgmpy",
    "to_tetrad",
    "to_xdsl",
    "to_xmlbif",
    "write_bif",
    "write_dot",
    "write_edge_list",
    "write_gml",
    "write_graphml",
    "write_hugin",
    "write_json",
    "write_local_scores",
    "write_tetrad",
    "write_xdsl",
    "write_xmlbif",
]
