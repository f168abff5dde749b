"""The passes of kernels as one HTML file: source and IR next to each other, a stepper, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.report.kit import pages, units
from wavecast.report.lab import passes
from wavecast.report.lab.alternatives import percent
from wavecast.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wavecast.lab.passes import PassReport


def render(reports: Sequence[PassReport], notes: Sequence[str]) -> str:
    """The whole page."""
    script = pages.asset("theme.js") + pages.asset("passes.js")
    return (
        pages.environment()
        .get_template("passes.html.j2")
        .render(
            reports=reports,
            notes=notes,
            shown=passes,
            units=units,
            percent=percent,
            version=__version__,
            style=Markup(pages.asset("style.css")),  # our own files
            own_style=Markup(pages.asset("passes.css")),
            script=Markup(script),
            script_digest=pages.digest(script),
            island=pages.island([_data(report) for report in reports]),
        )
    )


def _data(report: PassReport) -> dict[str, object]:
    """What the script shows of a kernel."""
    return {
        "steps": [
            {
                "stage": step.stage,
                "name": step.name,
                "title": step.title,
                "text": step.text.split("\n"),
                "lines": list(step.lines),
                "figures": dict(step.figures),
                "changed": {
                    change.line: {"added": dict(change.added), "removed": dict(change.removed)}
                    for change in step.changes
                },
                "summary": passes.summary(step),
            }
            for step in report.steps
        ],
        "source": [[line, text] for line, text in report.source.items()],
    }


__all__ = ["render"]
