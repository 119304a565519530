"""Geometry of the curves of a Gaussian-process network, for the template that draws them."""

from __future__ import annotations

from dataclasses import dataclass

from isthmus.models import Curve

WIDTH, HEIGHT = 260.0, 170.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 10.0, 12.0, 34.0


@dataclass(frozen=True)
class CurveDrawing:
    """The effect of a parent on its child, as SVG paths within 260 by 170 units."""

    parent: str
    child: str
    zero: str
    band: str
    mean: str
    left: str
    right: str
    low: str
    high: str


def draw_curve(curve: Curve, parent: str, child: str) -> CurveDrawing:
    """Return the paths and the axis labels of an effect with its band."""
    left, right = float(curve.at.min()), float(curve.at.max())
    low, high = min(float(curve.lower.min()), 0.0), max(float(curve.upper.max()), 0.0)
    if high == low:
        high = low + 1.0
    if right == left:
        right = left + 1.0

    def point(x: float, y: float) -> str:
        across = LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        down = TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    def path(xs: list[float], ys: list[float]) -> str:
        return "M" + " L".join(point(x, y) for x, y in zip(xs, ys, strict=True))

    at = curve.at.tolist()
    return CurveDrawing(
        parent,
        child,
        zero=path([left, right], [0.0, 0.0]),
        band=path(at + at[::-1], curve.upper.tolist() + curve.lower.tolist()[::-1]) + "Z",
        mean=path(at, curve.mean.tolist()),
        left=f"{left:.3g}",
        right=f"{right:.3g}",
        low=f"{low:.3g}",
        high=f"{high:.3g}",
    )
