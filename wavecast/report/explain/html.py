"""A report as one HTML file that needs nothing else: no network, no fonts, no frameworks.

A content security policy in the page allows its own script by digest and nothing from outside, so
whatever a kernel is called or its source holds, nothing but that script runs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from wavecast import rules
from wavecast.perfmodel.prediction import FIDELITIES
from wavecast.report.explain import (
    accesses,
    finding_words,
    listing,
    prediction,
    pressure_plot,
    roofline_plot,
    source,
    summary,
    words,
)
from wavecast.report.explain.instruction_times import instruction_times
from wavecast.report.kit import pages
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.pipeline.explain.result import ExplainReport
    from wavecast.report.explain.listing import Listing
    from wavecast.report.explain.summary import KernelGroup


def render(report: ExplainReport) -> str:
    """The whole page."""
    groups = summary.groups(report)
    listings = [listing.build(group.explanations) for group in groups]
    script = pages.asset("theme.js") + pages.asset("app.js")
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            version=__version__,
            groups=list(zip(groups, listings, strict=True)),
            style=Markup(pages.asset("style.css")),  # our own file
            script=Markup(script),  # our own file
            script_digest=pages.digest(script),
            island=_island(groups, listings),
        )
    )


def fragment(report: ExplainReport) -> str:
    """A part of a page for notebooks: comparison, headlines and findings, without script."""
    return (
        environment()
        .get_template("fragment.html.j2")
        .render(
            report=report,
            groups=[(group, None) for group in summary.groups(report)],
            style=Markup(pages.asset("fragment.css")),  # our own file
        )
    )


@cache
def environment() -> jinja2.Environment:
    """The templates of `pages`, which may call what tells about kernels."""
    templates = pages.environment().overlay()
    templates.globals = {
        **pages.environment().globals,
        "accesses": accesses,
        "instruction_times": instruction_times,
        "rule_text": _rule_text,
        "fidelities": FIDELITIES,
        "prediction": prediction,
        "pressure_plot": pressure_plot,
        "roofline_plot": roofline_plot,
        "finding_words": finding_words,
        "source": source,
        "summary": summary,
        "words": words,
    }
    return templates


def _island(groups: tuple[KernelGroup, ...], listings: list[Listing]) -> Markup:
    """What the script needs, as JSON that cannot end its script element."""
    kernels = [
        {
            "targets": [
                {**target, "pressure": _pressure(explanation)}
                for explanation, target in zip(
                    group.explanations, kernel_listing.targets, strict=True
                )
            ]
        }
        for group, kernel_listing in zip(groups, listings, strict=True)
    ]
    return pages.island({"kernels": kernels})


def _rule_text(name: str) -> str:
    """What a rule looks for, "" for the finding of a rule that failed."""
    return rules.rule(name).explanation if name in rules.RULES else ""


def _pressure(explanation: Any) -> list[list[int]]:
    curve = explanation.analysis.pressure
    if curve is None:
        return []
    return [list(curve.vgpr), list(curve.agpr), list(curve.sgpr)]
