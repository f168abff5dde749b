"""`wavecast gate`: kernels under guard against their committed baseline."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli import streams
from wavecast.cli.types import PROCESSES
from wavecast.errors import InputError
from wavecast.wording import count as number_of

if TYPE_CHECKING:
    from wavecast.bench.gate.guards import Guard
    from wavecast.bench.gate.verdict import GateVerdict

OUTPUT = click.Path(path_type=Path, dir_okay=False)


@click.command(
    "gate",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast gate --update

    wavecast gate

    wavecast gate 'rms_*' --arch gfx942 --junit gate.xml --sarif gate.sarif

    The settings are in [tool.wavecast.gate] of pyproject.toml: see docs/ci.md.
    """,
)
@click.argument("subjects", nargs=-1, metavar="[SUBJECT]...")
@click.option("--arch", default="", metavar="GPU[,GPU…]", help="Measure only for these GPUs.")
@click.option("--baseline", type=OUTPUT, help="The committed baseline.  "
              "[default: wavecast-baseline.json next to pyproject.toml]")  # fmt: skip
@click.option("--update", is_flag=True, help="Overwrite the baseline with these measurements.")
@click.option("--strict", is_flag=True, help="Also fail if the baseline lacks a subject.")
@click.option("--jobs", type=PROCESSES, default=None,
              help="Number of processes; by default chosen from the work.")  # fmt: skip
@click.option("--store", type=OUTPUT, help="Write the records to this store of measurements.")
@click.option("--label", default="", help="Name of the run in the store.")
@click.option("--run", "stored", default="", metavar="RUN",
              help="Judge this run of a store (wavecast bench) without measuring.")  # fmt: skip
@click.option("--summary", type=OUTPUT, help="Append Markdown to this file.  "
              "[default: $GITHUB_STEP_SUMMARY]")  # fmt: skip
@click.option("--junit", type=OUTPUT, help="Write a JUnit report.")
@click.option("--sarif", type=OUTPUT, help="Write a SARIF log.")
@click.option("--annotations/--no-annotations", default=None,
              help="GitHub annotations.  [default: when GITHUB_ACTIONS is set]")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json", "markdown", "html"]),
              default="text", show_default=True)  # fmt: skip
def command(
    subjects: tuple[str, ...],
    arch: str,
    baseline: Path | None,
    update: bool,
    strict: bool,
    jobs: int | None,
    store: Path | None,
    label: str,
    stored: str,
    summary: Path | None,
    junit: Path | None,
    sarif: Path | None,
    annotations: bool | None,
    form: str,
) -> int:
    """Measure the kernels of [tool.wavecast.gate] without a GPU, and compare them with the
    committed baseline.

    SUBJECTs are names or patterns; without any, all are measured. Exit codes: 0 nothing is worse
    than its threshold allows, 1 something is worse, wrong, failed or gone, 2 bad input.
    """
    from wavecast.bench.gate import baseline as files
    from wavecast.bench.gate import judge, settings
    from wavecast.bench.gate.session import Session, session
    from wavecast.bench.measure.environment import new_run

    chosen = settings.read(Path.cwd())
    guards = chosen.chosen(subjects)
    guards = _on(guards, arch) if arch else guards
    path = baseline or chosen.baseline
    known = files.Baseline() if update and not path.exists() else files.read(path)
    scope = judge.scope_of(guards) if subjects or arch else judge.everything
    if stored:
        found = Session(_stored(guards, store, stored))
    else:
        run = new_run(label) if store else None
        with streams.progress() as progress:
            found = session(
                guards, chosen.root, chosen.path, jobs=jobs, run=run, store=store, progress=progress
            )
    verdict = judge.judge(known, found.taken, scope, strict=strict or chosen.strict)
    placed = verdict.in_repository(_folder_in_repository(chosen.root))
    unwritten = _write(placed, summary, junit, sarif)
    if update:
        code = _update(path, judge.updated(known, found.taken, scope), verdict, found)
        if unwritten:
            raise unwritten[0]
        return code
    _show(verdict, form)
    if annotations if annotations is not None else bool(os.environ.get("GITHUB_ACTIONS")):
        for line in report_files().workflow_commands(placed):
            click.echo(line, err=form != "text")
    if unwritten:
        raise unwritten[0]
    return int(bool(verdict.broken))


def _folder_in_repository(root: Path) -> str:
    """The project's folder below the checkout of a CI job, "" where it is the checkout: reports
    of jobs name files from there."""
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        checkout = Path(os.environ.get(variable) or root).resolve()
        if root.resolve() != checkout and root.resolve().is_relative_to(checkout):
            return root.resolve().relative_to(checkout).as_posix()
    return ""


def report_files() -> Any:
    """The module that writes verdicts for machines."""
    from wavecast.report import gate_files

    return gate_files


def _stored(guards: Sequence[Guard], store: Path | None, name: str) -> list[Any]:
    """What a run of a store says about the guards."""
    from wavecast.bench.gate.stored import taken_from
    from wavecast.bench.store.select import chosen, records_of
    from wavecast.bench.store.sqlite import open_store
    from wavecast.errors import UsageError

    if store is None:
        raise UsageError("--run is a run of a store", hint="--store .wavecast/bench.sqlite")
    with open_store(store, create=False) as opened:
        by_run = records_of(opened, chosen(opened.runs(), name))
    return taken_from(guards, [record for records in by_run.values() for record in records])


def _on(guards: Sequence[Guard], selectors: str) -> tuple[Guard, ...]:
    """The guards with only those of their devices that are asked for."""
    from dataclasses import replace

    from wavecast import arch
    from wavecast.errors import UsageError

    wanted = {arch.load(name.strip()).id for name in selectors.split(",") if name.strip()}
    found = [
        replace(guard, devices=tuple(one for one in guard.devices if one in wanted))
        for guard in guards
    ]
    if not any(guard.devices for guard in found):
        known = ", ".join(sorted({one for guard in guards for one in guard.devices}))
        raise UsageError(f"the gate is not about {selectors}", hint=f"it is about {known}")
    return tuple(guard for guard in found if guard.devices)


def _update(path: Path, new: Any, verdict: GateVerdict, found: Any) -> int:
    """Write the baseline, unless nothing was measured, and say what changed in it. What failed or
    is wrong keeps its entry and makes the exit code 1."""
    from wavecast.bench.gate import baseline as files
    from wavecast.bench.gate.verdict import Status
    from wavecast.report import gate

    changed = [one for one in verdict.judged if one.status is not Status.SAME]
    for one in changed:
        click.echo(gate.line(one))
    if not any(one.records for one in found.taken):
        click.echo("nothing was measured: the baseline stays as it is")
        return 1
    files.write(new, path)
    named = path.relative_to(here) if path.is_relative_to(here := Path.cwd()) else path
    pairs = number_of(len(new.entries), "subject × device", "subjects × devices")
    click.echo(f"{named}: {pairs}, {number_of(len(changed), 'change')}")
    bad = [one for one in changed if one.status in (Status.WRONG, Status.FAILED)]
    return int(bool(bad) or found.interrupted)


def _write(
    verdict: GateVerdict, summary: Path | None, junit: Path | None, sarif: Path | None
) -> list[InputError]:
    """Write every file that is asked for; gives the errors of those that cannot be written."""
    from wavecast.report import gate

    stated = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary is None and stated:
        summary = Path(stated)
    texts: list[tuple[Path | None, str, Callable[[], str]]] = [
        (summary, "a", lambda: gate.markdown(verdict)),
        (junit, "w", lambda: report_files().junit(verdict) + "\n"),
        (sarif, "w", lambda: _json(report_files().sarif_log(verdict), 2) + "\n"),
    ]
    found: list[InputError] = []
    for path, mode, text in texts:
        if path is None:
            continue
        try:
            with streams.writing(path, mode) as file:
                file.write(text())
        except InputError as error:
            found.append(error)
    return found


def _json(document: object, indent: int) -> str:
    return json.dumps(document, indent=indent, ensure_ascii=False)


def _show(verdict: GateVerdict, form: str) -> None:
    from wavecast.report import gate

    if form == "json":
        streams.as_document(sys.stdout)
        click.echo(_json(report_files().document(verdict), 1))
    elif form == "markdown":
        click.echo(gate.markdown(verdict), nl=False)
    elif form == "html":
        from wavecast.report.recorded_html import page

        click.echo(page("wavecast gate", lambda console: gate.render(verdict, console)))
    else:
        gate.render(verdict, streams.console(None if sys.stdout.isatty() else 200))
