"""One side of a comparison: the kernels of a file, as it is, at a commit, or under a release of
Triton."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavecast.benchmarking.diff import environments
from wavecast.benchmarking.diff.capturing import Captured, capture_launches
from wavecast.benchmarking.diff.checkout import checked_out
from wavecast.errors import CaptureError, UsageError
from wavecast.pipeline import Selection, SourceOptions, explain_launches, explain_path
from wavecast.pipeline.explain.choosing import best
from wavecast.pipeline.explain.result import ConfigurationChoice, ExplainReport

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """The kernels of one side. `label` says which side, `root` is the folder its files lie in."""

    label: str
    report: ExplainReport
    root: Path


@dataclass(frozen=True, slots=True)
class Asked:
    """What both sides share: GPUs, the files that describe them, how inputs are treated."""

    selection: Selection
    options: SourceOptions
    files: Sequence[Path] = ()


def of_file(path: Path, request: Asked, progress: Progress, label: str = "") -> Side:
    """A file as it is. Raises WavecastError as `explain_path` does."""
    report = explain_path(path, request.selection, request.options, progress)
    return Side(label or str(path), report, path.resolve().parent)


def of_commit(path: Path, revision: str, request: Asked, progress: Progress) -> Side:
    """A file at a commit of the checkout it lies in.

    Raises InputError when the commit or the file in it is missing, or when the script's kernels
    come from the user's checkout all the same.
    """
    progress(f"checking out {revision}")
    with checked_out(path, revision) as tree:
        import_path = tree.import_path()
        if path.suffix == ".py" and import_path:
            progress(f"running {path.name} at {revision}")
            capture = capture_launches(
                tree.path,
                request.selection,
                request.files,
                request.options,
                import_path=import_path,
            )
            report = _explain(tree.path, capture, request, progress)
        else:
            report = explain_path(tree.path, request.selection, request.options, progress)
        tree.check_sources(_sources(report))
        return Side(tree.label, report, tree.path.parent)


def of_release(path: Path, release: str, request: Asked, progress: Progress) -> Side:
    """A script under a release of Triton, in a separate environment.

    Raises UsageError for a file that is not a script, InputError when the release cannot be had.
    """
    if path.suffix != ".py":
        raise UsageError(f"{path} is not a script: a release of Triton changes nothing about it")
    progress(f"preparing Triton {release}")
    python = environments.python_with(release)
    progress(f"running {path.name} under Triton {release}")
    try:
        capture = capture_launches(
            path, request.selection, request.files, request.options, python=python
        )
    except CaptureError as error:
        old = environments.release_key(release) < environments.oldest_supported()
        hint = "wavecast does not support releases as old as that" if old else error.hint
        raise CaptureError(f"under Triton {release} {error.message}", hint=hint) from None
    return Side(f"triton {release}", _explain(path, capture, request, progress),
                path.resolve().parent)  # fmt: skip


def _explain(path: Path, capture: Captured, request: Asked, progress: Progress) -> ExplainReport:
    explanations, failures = explain_launches(
        capture.launches, request.selection, request.options.given, progress
    )
    choices: tuple[ConfigurationChoice, ...] = ()
    if request.options.configs == "best":
        best_configs = best(explanations)
        explanations, choices = best_configs.explanations, best_configs.choices
    notes = (*request.selection.notes, *capture.notes)
    return ExplainReport(explanations, (*capture.failures, *failures), notes, (str(path),), choices)


def _sources(report: ExplainReport) -> set[str]:
    """Every file the code of a report was written in."""
    files = {explanation.code.source for explanation in report.explanations}
    locations = {
        id(i.location): i.location
        for explanation in report.explanations
        for i in (explanation.program.instructions if explanation.program else ())
        if i.location is not None
    }
    for location in locations.values():
        call_site = location
        while call_site is not None:
            files.add(call_site.file)
            call_site = call_site.inlined_at
    return files


__all__ = ["Asked", "Side", "of_commit", "of_file", "of_release"]
