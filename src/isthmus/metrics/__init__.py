"""Metrics that compare an estimated graph with the true graph."""

from isthmus.metrics.edges import EdgeMetrics, PAGMetrics, edge_metrics, pag_metrics
from isthmus.metrics.hamming import shd, shd_cpdag
from isthmus.metrics.intervention import (
    InterventionDistance,
    ancestor_aid,
    oset_aid,
    parent_aid,
    sid,
)

__all__ = [
    "EdgeMetrics",
    "InterventionDistance",
    "PAGMetrics",
    "ancestor_aid",
    "edge_metrics",
    "oset_aid",
    "pag_metrics",
    "parent_aid",
    "shd",
    "shd_cpdag",
    "sid",
]
