"""`wavecast model --search`: the best configurations of a served model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.cli import streams
from wavecast.errors import NothingAnalysed, UsageError

if TYPE_CHECKING:
    from wavecast.arch.systems import System
    from wavecast.systems.answer import Deployment
    from wavecast.systems.serving import Load


def run_search(
    name: str,
    deployments: Sequence[tuple[System, Deployment]],
    loads: Sequence[Load],
    *,
    dimensions: str,
    slo: str,
    state: Path | None,
    jobs: int | None,
    ray: str,
    format_: str,
    html: Path | None,
) -> int:
    """Search, print, and write a page. Raises NothingAnalysed where no configuration runs."""
    from wavecast.emulate.launch import available_processors
    from wavecast.report import systems_search as report
    from wavecast.tune.model_search import search
    from wavecast.tune.model_space import configurations, objectives
    from wavecast.tune.model_space import dimensions as parse

    asked, wanted = parse(dimensions), objectives(slo)
    if loads[0].rate:
        raise UsageError("--search has closed loops only: --rate is not searched")
    found = [one for load in loads for one in configurations(deployments, asked, load)]
    with streams.progress() as update:
        result = search(
            *(name, found, wanted),
            state=state,
            jobs=jobs or available_processors(),
            ray=ray,
            progress=update,
        )
    if html is not None:
        from wavecast.report import recorded_html

        title = f"{len(result.ranked)} configurations of {name}"
        page = recorded_html.page(title, lambda console: report.render(result, console, slo=slo))
        with streams.writing(html) as stream:
            stream.write(page)
    if format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(report.dumps(result, model=name, slo=slo))
    else:
        report.render(result, streams.console(highlight=False), slo=slo)
    if not result.frontier:
        raise NothingAnalysed("no configuration can run")
    return 0


__all__ = ["run_search"]
