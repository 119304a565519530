"""Five papers as they were printed, one file each, for comparison and teaching.

Each function has the options and defaults of its paper and nothing else. The methods that we
recommend in their place are in the rest of the library; the documentation has a page for each
paper that says which, and why.
"""

from isthmus.published.giudice_2023 import gp_posterior
from isthmus.published.ng_zhang_2022 import average, notears_admm, vote
from isthmus.published.weighted_graph import WeightedGraph
from isthmus.published.wright_yang_2004 import SimulatedK2, k2_score, private_k2, stirling_score
from isthmus.published.zheng_2018 import notears
from isthmus.published.zheng_2023 import LearnedOrder, rbnets

__all__ = [
    "LearnedOrder",
    "SimulatedK2",
    "WeightedGraph",
    "average",
    "gp_posterior",
    "k2_score",
    "notears",
    "notears_admm",
    "private_k2",
    "rbnets",
    "stirling_score",
    "vote",
]
