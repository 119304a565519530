"""Base class of samplers, and what they return.

A sampler is a frozen dataclass with the options; its method ``sample`` returns `Draws`. Time
limits, progress and Ctrl-C are the business of `isthmus.runs.Watch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import Capability, Objective
from isthmus.results.details import SamplerDetails
from isthmus.results.draws import check_numbers, check_positions
from isthmus.runs import Progress, Watch, drive

__all__ = ["Accepts", "Draws", "Progress", "Sampler", "Watch", "drive"]

ObjectiveT_contra = TypeVar("ObjectiveT_contra", bound=Objective, contravariant=True)
Accepts: TypeAlias = tuple[Capability[Any], ...]
_WORD = 64


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """Graphs drawn by a sampler: distinct graphs, and which of them each draw is.

    Attributes
    ----------
    parents
        Distinct graphs, of shape (graphs, nodes, words). Bit ``p`` of row ``v``, counted through
        its words of 64 bits, says whether node ``p`` is a parent of node ``v``.
    log_scores
        Logarithm of score times prior of each distinct graph, up to a constant.
    chains
        Position of the graph of each draw among the distinct graphs, of shape (chains, draws).
    log_weights
        Logarithm of the importance weight of each distinct graph, up to a constant; None if all
        draws count the same.
    edge_probabilities, path_probabilities
        Probabilities ``[from, to]`` of edges and of directed paths, if the sampler knows them
        better than its draws show them; otherwise None.
    chain_edges
        Edge probabilities by each chain, of shape (chains, nodes, nodes), if they are averages over
        more states than are kept as draws; otherwise None.
    independent
        Whether the draws are independent, not steps of a Markov chain.
    details
        Other results of the sampler: a record of `isthmus.results`.
    converged
        Whether the sampler did all the work it was asked for.
    conclusion
        Why the sampler came to its end, in one sentence.
    gap
        Always None: samplers prove no bound.
    """

    parents: NDArray[np.uint64]
    log_scores: NDArray[np.float64]
    chains: NDArray[np.int64]
    log_weights: NDArray[np.float64] | None = None
    edge_probabilities: NDArray[np.float64] | None = None
    path_probabilities: NDArray[np.float64] | None = None
    chain_edges: NDArray[np.float64] | None = None
    independent: bool = False
    details: Any = field(default_factory=SamplerDetails)
    converged: bool = True
    conclusion: str = ""
    gap: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.parents.ndim != 3 or self.parents.dtype != np.uint64:
            raise ArgumentError(
                "parents must be an array of unsigned 64-bit words of shape (graphs, nodes, "
                f"words); an array of {self.parents.dtype} of shape {self.parents.shape} was given."
            )
        graphs, nodes, words = self.parents.shape
        if words != -(-nodes // _WORD):
            raise ArgumentError(
                f"Parents of {nodes} nodes need {-(-nodes // _WORD)} words per node; {words} were "
                "given."
            )
        check_positions(self.chains, graphs)
        check_numbers({"log_scores": self.log_scores, "log_weights": self.log_weights}, (graphs,))
        check_numbers({"chain_edges": self.chain_edges}, (len(self.chains), nodes, nodes))

    @classmethod
    def from_sequence(
        cls,
        graphs: NDArray[np.uint64],
        log_scores: NDArray[np.float64],
        *,
        details: Any = None,
        **reported: Any,
    ) -> Draws:
        """Collect the distinct graphs of draws that are given one by one.

        Parameters
        ----------
        graphs
            Every draw, of shape (chains, draws, nodes, words), in the form of `parents`.
        log_scores
            Logarithm of score times prior of each draw, of shape (chains, draws).
        details
            Other results of the sampler.
        **reported
            Other attributes of `Draws`, such as ``edge_probabilities``.
        """
        chains, draws, nodes, words = graphs.shape
        rows = np.ascontiguousarray(graphs).reshape(chains * draws, nodes * words)
        # One string of bytes per graph: these are sorted much faster than rows of numbers.
        items = rows.astype(">u8").view(np.dtype((np.void, 8 * nodes * words)))
        _, first, inverse = np.unique(items.ravel(), return_index=True, return_inverse=True)
        return cls(
            rows[first].reshape(len(first), nodes, words),
            np.asarray(log_scores, np.float64).ravel()[first],
            inverse.reshape(chains, draws).astype(np.int64),
            details=SamplerDetails() if details is None else details,
            **reported,
        )


class Sampler(ABC, Generic[ObjectiveT_contra]):
    """Options of a sampler; implementations are frozen dataclasses.

    Attributes
    ----------
    accepts
        The capabilities of an objective that the sampler can work with; one of them is enough.
    bias
        A sentence for the notes of a posterior, if the draws do not follow it.
    chains
        Number of chains by default.
    """

    accepts: ClassVar[Accepts]
    bias: ClassVar[str] = ""
    chains: ClassVar[int] = 4

    @abstractmethod
    def sample(
        self,
        objective: ObjectiveT_contra,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        *,
        draws: int,
        chains: int,
    ) -> Draws:
        """Return the draws made until the end, or until it is time to stop.

        Parameters
        ----------
        objective
            The logarithm of score times prior, as a sum over families.
        knowledge
            Required and forbidden edges: every graph drawn agrees with them.
        rng
            The only source of randomness.
        watch
            Says when to stop, and hears of progress.
        draws
            Number of graphs to keep from each chain, after burn-in and thinning.
        chains
            Number of independent chains.
        """
