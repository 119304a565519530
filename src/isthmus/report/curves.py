"""The effects in a Gaussian-process network as drawings."""

from __future__ import annotations

from html import escape

from isthmus.models import Curve, GPNetwork

_WIDTH, _HEIGHT = 260.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 10.0, 12.0, 34.0


def gp_parameters(network: GPNetwork, name: str) -> str:
    """Return the mean, the noise and the curve of each parent of a variable as HTML."""
    parents = network.dag.parents(name)
    terms = "".join(f" + effect of {escape(p)}" for p in parents)
    equation = (
        f"<p>{escape(name)} = {network.means[name]:.4g}{terms}, standard deviation of the noise "
        f"{network.noises[name]:.4g}</p>"
    )
    return equation + "".join(draw_curve(network.curve(p, name), p, name) for p in parents)


def draw_curve(curve: Curve, parent: str, child: str) -> str:
    """Return the effect of a parent on its child with its band as an ``svg`` element."""
    left, right = float(curve.at.min()), float(curve.at.max())
    low, high = min(float(curve.lower.min()), 0.0), max(float(curve.upper.max()), 0.0)
    if high == low:
        high = low + 1.0
    if right == left:
        right = left + 1.0

    def point(x: float, y: float) -> str:
        across = _LEFT + (x - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT)
        down = _TOP + (high - y) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)
        return f"{across:.1f},{down:.1f}"

    def path(xs: list[float], ys: list[float]) -> str:
        return "M" + " L".join(point(x, y) for x, y in zip(xs, ys, strict=True))

    at = curve.at.tolist()
    band = path(at + at[::-1], curve.upper.tolist() + curve.lower.tolist()[::-1])
    label = f"Effect of {escape(parent)} on {escape(child)}"
    floor = _HEIGHT - _BOTTOM
    return (
        f'<svg class="curve" role="img" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}">'
        f"<title>{label}, with a band that holds it with a probability of 95 %</title>"
        f'<path class="zero" d="{path([left, right], [0.0, 0.0])}"/>'
        f'<path class="band" d="{band}Z"/>'
        f'<path class="mean" d="{path(at, curve.mean.tolist())}"/>'
        f'<text x="{_LEFT:g}" y="{floor + 14:g}">{left:.3g}</text>'
        f'<text x="{_WIDTH - _RIGHT:g}" y="{floor + 14:g}" text-anchor="end">{right:.3g}</text>'
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:g}" y="{_HEIGHT - 6:g}" text-anchor="middle">'
        f"{escape(parent)}</text>"
        f'<text x="{_LEFT - 6:g}" y="{_TOP + 4:g}" text-anchor="end">{high:.3g}</text>'
        f'<text x="{_LEFT - 6:g}" y="{floor:g}" text-anchor="end">{low:.3g}</text></svg>'
    )
