"""Put pictures beside the pages, not into them: browsers then load what is about to be seen."""

from __future__ import annotations

import re
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

SIZE = re.compile(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"')


def show_svg(env: BuildEnvironment, svg: str, alt: str) -> nodes.Node:
    """Write a picture of Matplotlib to a file, and return what shows it."""
    name = f"{sha256(svg.encode()).hexdigest()[:16]}.svg"
    folder = Path(env.app.outdir, "_images")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(svg, encoding="utf-8")
    size = SIZE.search(svg)
    if size is None:
        raise ValueError("The picture does not say how large it is.")
    width, height = (round(float(points) * 4 / 3) for points in size.groups())
    up = "../" * env.docname.count("/")
    image = (
        f'<div class="plot"><img alt="{escape(alt)}" src="{up}_images/{name}" '
        f'width="{width}" height="{height}" loading="lazy"></div>'
    )
    return nodes.raw("", image, format="html")
