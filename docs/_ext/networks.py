"""Draw a network in a page: what an expression gives after the page's snippets so far.

```{network} solution
```
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from isthmus.plots import svg_graph
from isthmus.results import Solution

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Network(SphinxDirective):
    """The directive."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Run the snippets above, as a reader would, and draw."""
        path, line = self.get_source_info()
        above = "".join(Path(path).read_text(encoding="utf-8").splitlines(keepends=True)[:line])
        names: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for snippet in _SNIPPET.findall(above):
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(snippet, names)  # our own pages
            shown = eval(self.arguments[0], names)
        if isinstance(shown, Solution):
            graph = shown.cpdag if shown.equivalent else shown.dag
            picture = svg_graph(graph, strengths=shown.strengths())
        else:
            picture = svg_graph(shown)
        return [nodes.raw("", f'<div class="network">{picture}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and its looks."""
    app.add_directive("network", Network)
    app.add_css_file("network.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
