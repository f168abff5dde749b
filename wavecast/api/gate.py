"""`wavecast.gate`: kernels under guard against their committed baseline."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.result import ShownResult
from wavecast.errors import InputError, UsageError, WavecastError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import FILE, PROCESSES, Flag, NameList
from wavecast.wording import count

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.benchmarking.gate.guards import Guard
    from wavecast.benchmarking.gate.session import Session
    from wavecast.benchmarking.gate.settings import GateSettings
    from wavecast.benchmarking.gate.verdict import GateVerdict


@dataclass(frozen=True, kw_only=True)
class GateOptions(Options):
    """Options of a gate."""

    NEEDS: ClassVar[Mapping[str, str]] = {"run": "store"}

    arch: tuple[str, ...] = option(
        (), "Measure only for these GPUs.", values=NameList(), metavar="GPU[,GPU…]"
    )
    baseline: Path | None = option(
        None,
        "The committed baseline.",
        values=FILE,
        default_text="wavecast-baseline.json next to pyproject.toml",
    )
    update: bool = option(False, "Overwrite the baseline with these measurements.")
    strict: bool = option(False, "Also fail if the baseline lacks a subject.")
    jobs: int | None = option(
        None, "Number of processes; by default chosen from the work.", values=PROCESSES
    )
    store: Path | None = option(
        None, "Write the records to this store of measurements.", values=FILE
    )
    label: str = option("", "Name of the run in the store.")
    run: str = option("", "Judge this run of a store (wavecast bench) without measuring.")
    summary: Path | None = option(
        None, "Append Markdown to this file.", values=FILE, default_text="$GITHUB_STEP_SUMMARY"
    )
    junit: Path | None = option(None, "Write a JUnit report.", values=FILE)
    sarif: Path | None = option(None, "Write a SARIF log.", values=FILE)
    annotations: bool | None = option(
        None,
        "GitHub annotations.  [default: when GITHUB_ACTIONS is set]",
        "--annotations/--no-annotations",
        values=Flag(),
    )

    @property
    def annotates(self) -> bool:
        """Whether what breaks the gate is annotated."""
        if self.annotations is None:
            return bool(os.environ.get("GITHUB_ACTIONS"))
        return self.annotations


@dataclass(frozen=True, slots=True)
class BaselineUpdate:
    """What a gate did to its baseline: the file, None where nothing was measured, and its number of
    `entries`, subjects × devices."""

    path: Path | None
    entries: int = 0
    interrupted: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class GateReport(ShownResult):
    """Kernels under guard, compared with their baseline, with files named from the repository;
    or the `update` of the baseline. `annotations` are workflow commands of GitHub, `unwritten` why
    reports could not be written. The document is `wavecast.gate/1`."""

    WIDTH = 200
    verdict: GateVerdict
    annotations: Sequence[str] = ()
    update: BaselineUpdate | None = None
    unwritten: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.bench import gate_files

        return gate_files.document(self.verdict)

    def render(self, console: Console) -> None:
        from wavecast.report.bench import gate

        if self.update is None:
            gate.render(self.verdict, console)
        for line in self.remarks():
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    def html(self) -> str:
        from wavecast.report.bench import gate
        from wavecast.report.kit import recorded_html

        return recorded_html.page(
            "wavecast gate", lambda console: gate.render(self.verdict, console)
        )

    def markdown(self) -> str:
        """The verdict for the summary of a build."""
        from wavecast.report.bench import gate

        return gate.markdown(self.verdict)

    def remarks(self) -> list[str]:
        if self.update is None:
            return [*self.annotations]
        from wavecast.report.bench import gate

        lines = [gate.line(judged) for judged in self.verdict.changed]
        path = self.update.path
        if path is None:
            return [*lines, "nothing was measured: the baseline stays as it is"]
        shown = path.relative_to(here) if path.is_relative_to(here := Path.cwd()) else path
        pairs = count(self.update.entries, "subject × device", "subjects × devices")
        return [*lines, f"{shown}: {pairs}, {count(len(self.verdict.changed), 'change')}"]

    def messages(self) -> list[str]:
        return [*self.unwritten]

    def exit_code(self) -> int:
        """1 where something is worse, wrong, failed or gone; 2 where a report was not written. Of
        an update, 1 where something is wrong or failed: it keeps its entry."""
        from wavecast.benchmarking.gate.verdict import Status

        if self.unwritten:
            return InputError.exit_code
        if self.update is None:
            return int(bool(self.verdict.broken))
        bad = self.verdict.of(Status.WRONG) or self.verdict.of(Status.FAILED)
        return int(bool(bad) or self.update.interrupted or self.update.path is None)

    def subject(self) -> str:
        from wavecast.report.bench import gate

        return gate.headline(self.verdict)


def gate(*subjects: str, progress: Progress = silent, **options: Any) -> GateReport:
    """Measure the kernels of `[tool.wavecast.gate]` without a GPU, and compare them with the
    committed baseline (`docs/ci.md`).

    `subjects` are names or patterns; without any, all are measured. `options` are those of the
    command line, by the names of `GateOptions`. The settings are those of the nearest
    pyproject.toml.

    Raises InputError and UsageError for settings or a baseline that are missing or wrong, and
    UnknownName for a subject, a GPU or a run; the stated reports say so then, too.
    """
    stated = GateOptions.of(options)
    try:
        return _judge(subjects, stated, progress)
    except WavecastError as error:
        _write_error(str(error), stated)
        raise


def _judge(subjects: Sequence[str], stated: GateOptions, progress: Progress) -> GateReport:
    """What `gate` returns, and raises."""
    from wavecast.benchmarking.gate import baseline as files
    from wavecast.benchmarking.gate import judge, settings
    from wavecast.report.bench import gate_files

    project = settings.read(Path.cwd())
    guards = _on(project.select(subjects), stated.arch)
    path = stated.baseline or project.baseline
    baseline = files.Baseline() if stated.update and not path.exists() else files.read(path)
    scope = judge.scope_of(guards) if subjects or stated.arch else judge.everything
    session = _measure(guards, project, stated, progress)
    strict = stated.strict or project.strict
    verdict = judge.judge(baseline, session.taken, scope, strict=strict)
    placed = verdict.in_repository(_folder_in_repository(project.root))
    unwritten = _write(placed, stated)
    update, annotations = None, []
    if stated.update and any(taken.records for taken in session.taken):
        new = judge.update_baseline(baseline, session.taken, scope)
        files.write(new, path)
        update = BaselineUpdate(path, len(new.entries), session.interrupted)
    elif stated.update:
        update = BaselineUpdate(None)
    elif stated.annotates:
        annotations = gate_files.workflow_commands(placed)
    return GateReport(placed, annotations, update, unwritten)


def _measure(
    guards: Sequence[Guard], project: GateSettings, options: GateOptions, progress: Progress
) -> Session:
    """What guards measure, or what a run of a store says about them."""
    from wavecast.benchmarking.environment import new_run
    from wavecast.benchmarking.gate.session import Session, session
    from wavecast.benchmarking.gate.stored import taken_from
    from wavecast.benchmarking.store.select import records_of, select_runs
    from wavecast.benchmarking.store.sqlite import open_store

    if options.run and options.store is not None:
        with open_store(options.store, create=False) as store:
            by_run = records_of(store, select_runs(store.runs(), options.run))
        records = [record for records in by_run.values() for record in records]
        return Session(taken_from(guards, records))
    return session(
        guards,
        project.root,
        project.path,
        jobs=options.jobs,
        run=new_run(options.label) if options.store else None,
        store=options.store,
        progress=progress,
    )


def _on(guards: Sequence[Guard], names: Sequence[str]) -> tuple[Guard, ...]:
    """The guards with only those of their devices that are named. Raises UsageError where none
    is."""
    from dataclasses import replace

    from wavecast import arch

    if not names:
        return tuple(guards)
    chosen = {arch.load(name).id for name in names}
    narrowed = [
        replace(guard, devices=tuple(device for device in guard.devices if device in chosen))
        for guard in guards
    ]
    if not any(guard.devices for guard in narrowed):
        every = ", ".join(sorted({device for guard in guards for device in guard.devices}))
        raise UsageError(f"the gate is not about {','.join(names)}", hint=f"it is about {every}")
    return tuple(guard for guard in narrowed if guard.devices)


def _folder_in_repository(root: Path) -> str:
    """The project's folder below the checkout of a CI job, "" where it is the checkout: reports
    of jobs name files from there."""
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        checkout = Path(os.environ.get(variable) or root).resolve()
        if root.resolve() != checkout and root.resolve().is_relative_to(checkout):
            return root.resolve().relative_to(checkout).as_posix()
    return ""


def _write(verdict: GateVerdict, options: GateOptions) -> list[str]:
    """Write every file that is stated; gives why some of them cannot be written."""
    from wavecast import json_objects
    from wavecast.report.bench import gate, gate_files

    return _write_reports(
        options,
        lambda: gate.markdown(verdict),
        lambda: gate_files.junit(verdict),
        lambda: json_objects.dumps(gate_files.sarif_log(verdict), indent=2),
    )


def _write_error(text: str, options: GateOptions) -> None:
    """Write to every file that is stated why the gate could not judge."""
    from wavecast import json_objects
    from wavecast.report.bench import gate_files

    _write_reports(
        options,
        lambda: f"### wavecast gate: not judged\n\n{text}\n",
        lambda: gate_files.junit_of_error(text),
        lambda: json_objects.dumps(gate_files.sarif_of_error(text, "pyproject.toml"), indent=2),
    )


def _write_reports(
    options: GateOptions,
    summary: Callable[[], str],
    junit: Callable[[], str],
    sarif: Callable[[], str],
) -> list[str]:
    """Write the texts to the files that are stated; gives why some of them cannot be written."""
    from wavecast.files import append_text, write_text

    variable = os.environ.get("GITHUB_STEP_SUMMARY")
    texts: list[tuple[Path | None, Callable[[Path, str], None], Callable[[], str]]] = [
        (options.summary or (Path(variable) if variable else None), append_text, summary),
        (options.junit, write_text, lambda: junit() + "\n"),
        (options.sarif, write_text, lambda: sarif() + "\n"),
    ]
    unwritten: list[str] = []
    for path, write, text in texts:
        try:
            if path is not None:
                write(path, text())
        except InputError as error:
            unwritten.append(str(error))
    return unwritten


__all__ = ["BaselineUpdate", "GateOptions", "GateReport", "gate"]
