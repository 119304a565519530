"""Immutable graphs with named nodes, and what is known about them beforehand."""

from isthmus.graphs.dag import DAG
from isthmus.graphs.knowledge import BoundKnowledge, Knowledge
from isthmus.graphs.partial import CPDAG, PDAG
from isthmus.graphs.undirected import UndirectedGraph

__all__ = ["CPDAG", "DAG", "PDAG", "BoundKnowledge", "Knowledge", "UndirectedGraph"]
