"""Sphinx builds the documentation site from these pages: `make docs`."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from wavecast.version import __version__

project = "Wavecast"
copyright = "the Wavecast developers"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "sphinx_copybutton"]
exclude_patterns = ["_build", "_static"]
html_theme = "furo"
html_title = f"Wavecast {release}"
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]

_MARKUP = re.compile(r"\*|_(?!\w)")
_PAGE = re.compile(r"^(?:docs/)?(?P<page>[\w./-]+)\.md$")


class PageLinks(SphinxTransform):
    """Makes links of the pages that texts name: `docs/run.md` in a page is a link to run.md.

    The pages are read in the repository too, where the name of the file is what a reader needs.
    A page that does not exist is a warning, and `make docs` fails on warnings.
    """

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:  # noqa: ARG002
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            match = _PAGE.match(text)
            if not match or not text.startswith("docs/"):
                continue
            link = addnodes.pending_xref(
                "",
                literal.deepcopy(),
                refdomain="std",
                reftype="doc",
                reftarget="/" + match["page"],
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)


def _escape(_app: Sphinx, _context: object, lines: list[str]) -> None:
    """Texts of commands are plain: an asterisk is a multiplication, and `rms_` ends a name."""
    lines[:] = [_MARKUP.sub(r"\\\g<0>", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Register the transform, and what makes texts of commands plain."""
    app.add_transform(PageLinks)
    for part in ("description", "options", "arguments", "epilog"):
        app.connect(f"sphinx-click-process-{part}", _escape)
