"""Show what the snippets of a page give: printed output, networks, plots, and a notebook.

The Python snippets of a page run from top to bottom, once for each build, as a reader would run
them. Directives show the state after the snippets above them:

```{output}
```

```{network} solution
```

```{plot} axes
:alt: Five nodes; treatment and age point to the outcome
```

```{notebook}
```

The last one links to the page as an executed notebook.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from pictures import show_svg
from sphinx.util.docutils import SphinxDirective

from isthmus.plots import svg_graph
from isthmus.results import Solution

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(r"^(```|:::+)\{.*?^\1[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_RUNS: dict[str, PageRun] = {}


@dataclass
class PageRun:
    """The snippets of a page that ran so far, with what they printed."""

    path: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: list[str] = field(default_factory=list)
    pictures: dict[int, str] = field(default_factory=dict)
    folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)

    def run_to(self, line: int) -> None:
        """Run the snippets that end above this line and have not run yet."""
        text = Path(self.path).read_text(encoding="utf-8")
        above = "".join(text.splitlines(keepends=True)[:line])
        snippets = _SNIPPET.findall(above)
        with contextlib.chdir(self.folder.name):
            for snippet in snippets[len(self.printed) :]:
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(compile(snippet, self.path, "exec"), self.names)  # our own pages
                self.printed.append(output.getvalue())

    def value(self, expression: str) -> Any:
        """Evaluate an expression with the names of the snippets."""
        with contextlib.chdir(self.folder.name):
            return eval(expression, self.names)

    def cells(self) -> Iterator[dict[str, Any]]:
        """The page as cells of a notebook."""
        text = Path(self.path).read_text(encoding="utf-8")
        self.run_to(len(text.splitlines()))
        for i, part in enumerate(_SNIPPET.split(text)):
            if i % 2 == 0:
                prose = _DIRECTIVE.sub("", part).strip()
                if prose:
                    yield {"cell_type": "markdown", "metadata": {}, "source": prose}
                continue
            number = i // 2
            outputs: list[dict[str, Any]] = []
            if self.printed[number]:
                text = self.printed[number]
                outputs.append({"output_type": "stream", "name": "stdout", "text": text})
            if number in self.pictures:
                data = {"image/svg+xml": self.pictures[number]}
                outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
            yield {
                "cell_type": "code",
                "execution_count": number + 1,
                "metadata": {},
                "source": part.rstrip("\n"),
                "outputs": outputs,
            }


class Executed(SphinxDirective):
    """A directive that needs the state of the page's snippets."""

    final_argument_whitespace = True

    def page_run(self) -> PageRun:
        """Return the state after the snippets above this directive."""
        path, line = self.get_source_info()
        run = _RUNS.setdefault(path, PageRun(path))
        run.run_to(line)
        return run


class Output(Executed):
    """What the last snippet printed."""

    def run(self) -> list[nodes.Node]:
        """Show it as a literal block."""
        printed = self.page_run().printed[-1].rstrip("\n")
        if not printed:
            raise self.error("The snippet above printed nothing.")
        block = nodes.literal_block(printed, printed, classes=["output"])
        block["language"] = "none"
        return [block]


class Network(Executed):
    """The drawing of a graph, a result or a fitted network."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        run = self.page_run()
        shown = run.value(self.arguments[0])
        if isinstance(shown, Solution):
            graph = shown.cpdag if shown.equivalent else shown.dag
            picture = svg_graph(graph, strengths=shown.strengths())
        else:
            picture = svg_graph(shown)
        run.pictures[len(run.printed) - 1] = picture
        return [nodes.raw("", f'<div class="network">{picture}</div>', format="html")]


class Plot(Executed):
    """A figure of Matplotlib."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Save it as an SVG and show it."""
        run = self.page_run()
        shown = run.value(self.arguments[0])
        file = io.StringIO()
        getattr(shown, "figure", shown).savefig(
            file, format="svg", bbox_inches="tight", metadata={"Date": None}
        )
        run.pictures[len(run.printed) - 1] = file.getvalue()
        if "alt" not in self.options:
            raise self.error("A plot needs the option :alt:, for readers who cannot see it.")
        return [show_svg(self.env, file.getvalue(), self.options["alt"])]


class Notebook(SphinxDirective):
    """A link to the page as an executed notebook."""

    def run(self) -> list[nodes.Node]:
        """Link to the file that is written at the end of the build."""
        up = "../" * self.env.docname.count("/")
        address = f"{up}_notebooks/{self.env.docname}.ipynb"
        pages = self.env.metadata[self.env.docname]
        pages["notebook"] = "yes"
        link = f'<p class="notebook"><a href="{address}" download>Download as a notebook</a></p>'
        return [nodes.raw("", link, format="html")]


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the notebooks that pages link to."""
    if exception is not None or app.builder.format != "html":
        return
    for name, metadata in app.env.metadata.items():
        if "notebook" not in metadata:
            continue
        path = str(app.env.doc2path(name))
        run = _RUNS.setdefault(path, PageRun(path))
        notebook = {
            "cells": list(run.cells()),
            "metadata": {
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 4,
        }
        target = Path(app.outdir) / "_notebooks" / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and their looks."""
    app.add_directive("output", Output)
    app.add_directive("network", Network)
    app.add_directive("plot", Plot)
    app.add_directive("notebook", Notebook)
    app.add_css_file("network.css")
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
