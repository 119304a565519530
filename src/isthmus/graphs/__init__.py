"""Immutable graphs with named nodes, and background knowledge about their edges."""

from isthmus.graphs.dag import DAG
from isthmus.graphs.knowledge import BoundKnowledge, Knowledge
from isthmus.graphs.orientation import UndirectedGraph
from isthmus.graphs.pag import PAG
from isthmus.graphs.partial import CPDAG, PDAG

__all__ = ["CPDAG", "DAG", "PAG", "PDAG", "BoundKnowledge", "Knowledge", "UndirectedGraph"]
