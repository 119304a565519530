"""Configuration of the documentation."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Isthmus"
author = "the Isthmus authors"
copyright = "the Isthmus authors"
release = installed_version("isthmus")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "public_names",
    "quick_pages",
    "readable_names",
    "accessible_markup",
    "executed",
    "benchmark_charts",
    "commands",
]
exclude_patterns = ["_build"]
# Names in the docstrings link to their pages.
default_role = "py:obj"
# Attributes of two classes may have the same name, and their lists are looked up like references.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# Long signatures have a line for each parameter; the list of contents has short names.
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_preprocess_types = True

# Formulas become MathML, which browsers draw themselves: no page loads anything from elsewhere.
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "Isthmus"
html_static_path = ["_static"]
html_favicon = LOGO = "_static/logo.svg"
# For programs that read: what the pages are about, and what to use when.
html_extra_path = ["llms.txt", "../src/isthmus/SKILL.md"]
html_js_files = ["header.js"]
html_css_files = ["header.css"]
templates_path = ["_templates"]
html_show_sourcelink = False
# The search finds names faster than an index of thousands of lines.
html_use_index = False
# Pages that belong to no section have no list of its pages.
html_sidebars: dict[str, list[str]] = {"gallery": [], "changelog": [], "contributing": []}
html_theme_options = {
    "logo": {"image_light": LOGO, "image_dark": LOGO, "text": "Isthmus"},
    "show_prev_next": True,
    "navbar_end": ["version", "theme-switcher", "navbar-icon-links"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    # The sidebar lists the names of the module that is open, not of all modules.
    "collapse_navigation": True,
}
