"""Metrics that compare an estimated graph with the true graph."""

from isthmus.metrics.edges import (
    EdgeMetrics,
    InterventionDistance,
    PAGMetrics,
    ancestor_aid,
    edge_metrics,
    oset_aid,
    pag_metrics,
    parent_aid,
    shd,
    shd_cpdag,
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
