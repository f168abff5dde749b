"""`wavecast validate`: predictions compared with measurements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from wavecast.cli import streams
from wavecast.cli.types import PROCESSES, count
from wavecast.errors import UsageError

if TYPE_CHECKING:
    from wavecast.bench.accuracy.importers import Importer
    from wavecast.bench.accuracy.result import Validation

FORMATS = ("text", "json", "html")


@click.command(
    "validate",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast validate measured.csv

    wavecast validate *.parquet --format html -o accuracy.html

    wavecast validate a8w8_tuned_gemm.csv gfx90a68.HIP.fdb.txt
    """,
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write to this file instead of standard output.")  # fmt: skip
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--cases", is_flag=True, help="JSON: write every problem in addition to the scores.")
@click.option("--limit", type=count(1), metavar="N",
              help="Use about N problems of each file, always the same ones.")  # fmt: skip
@click.option("-j", "--jobs", type=PROCESSES, metavar="N",
              help="Number of processes; by default one per processor.")  # fmt: skip
@click.option("--write-docs", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the scores as Markdown (docs/accuracy.md).")  # fmt: skip
@click.option("--measure", is_flag=True,
              help="Measure on this machine's GPU; FILES are scripts with kernels.")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default="results",
              show_default=True, help="Folder for the times of --measure.")  # fmt: skip
def command(
    files: tuple[Path, ...],
    format_: str,
    output: Path | None,
    detail: str,
    cases: bool,
    limit: int | None,
    jobs: int | None,
    write_docs: Path | None,
    measure: bool,
    results: Path,
) -> int:
    """Predict what FILES measured, and score the predictions.

    FILES are Parquet, CSV or JSON lines in one of the formats of docs/validate.md, AITER's tuned
    CSV files, MIOpen find databases (.fdb.txt) and Tensile logic (.yaml).
    """
    if measure:
        return _measure(files, results)
    return score(files, format_, output, detail, cases, limit, jobs, write_docs)


def score(
    files: tuple[Path, ...],
    format_: str,
    output: Path | None,
    detail: str,
    cases: bool,
    limit: int | None,
    jobs: int | None,
    write_docs: Path | None,
    importers: tuple[Importer, ...] = (),
) -> int:
    """Write the validation of `files`, read by the registered importers and by `importers`.

    Returns the exit code. Raises UsageError without files, and as `bench.accuracy.validate`.
    """
    from wavecast.bench.accuracy.validate import ValidateOptions, validate

    if not files:
        raise UsageError("no files of measurements given")
    options = ValidateOptions(jobs=jobs, limit=limit, importers=importers)
    with streams.progress(lines=True) as update:
        validation = validate(files, options, update)
    if write_docs is not None:
        from wavecast.report import accuracy

        _write_text(write_docs, accuracy.document(validation))
    if output is None:
        _write(validation, format_, detail, cases, sys.stdout)
    else:
        with streams.writing(output) as stream:
            _write(validation, format_, detail, cases, stream)
    return 0


def _measure(files: tuple[Path, ...], results: Path) -> int:
    from wavecast.bench.accuracy.measure import measure
    from wavecast.report import measurements

    scripts = files or tuple(sorted(Path("examples").glob("*.py")))
    with streams.progress() as update:
        path, records = measure(scripts, results, update)
    measurements.render(records, streams.console())
    click.echo(f"stored in {path}")
    return 0


def _write_text(path: Path, text: str) -> None:
    with streams.writing(path) as stream:
        stream.write(text)


def _write(validation: Validation, format_: str, detail: str, cases: bool, stream: IO[str]) -> None:
    if format_ == "text":
        from wavecast.report import validation_terminal

        shown: Any = detail
        width = None if stream.isatty() else 150
        validation_terminal.render(validation, streams.console(width, stream), shown)
        return
    streams.as_document(stream)
    if format_ == "json":
        from wavecast.report import validation_json

        stream.write(validation_json.dumps(validation, cases=cases))
    else:
        from wavecast.report import validation_html

        stream.write(validation_html.render(validation))
    stream.flush()
