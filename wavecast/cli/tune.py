"""`wavecast tune`: configurations of autotuned kernels, searched by prediction."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli import engine_tables, streams
from wavecast.cli.types import PROCESSES, RegexParam, count
from wavecast.errors import InputError, UsageError

if TYPE_CHECKING:
    from wavecast.tune.run import TuneResult


class TuneCommand(click.Command):
    """`wavecast tune`, which has other options with --table."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        own = args[: args.index("--")] if "--" in args else args
        if any(one.partition("=")[0] == "--table" for one in own):
            return engine_tables.command.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    "tune",
    cls=TuneCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast tune matmul.py --arch gfx942,mi355x --output table.json

    wavecast tune matmul.py --space wide --budget 300 --jobs 8 -o table.json

    wavecast tune model.py -k attention --budget 10m -o table.json --resume -- --batch 4

    wavecast tune --table experts --shape 128x768x2048x8 -o .   (see wavecast tune --table --help)
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="AMD GPUs by name (mi300x) or target (gfx942).")  # fmt: skip
@click.option("--arch-file", multiple=True, type=click.Path(path_type=Path),
              help="TOML that adds a device or overrides facts of one.")  # fmt: skip
@click.option(
    "-k", "--kernels", default="", type=RegexParam(), help="Tune only kernels whose name matches."
)
@click.option("--space", type=click.Choice(["own", "wide"]), default="own", show_default=True,
              help="own: the autotuner's configurations; wide: also their neighbours.")  # fmt: skip
@click.option("--budget", default="300", show_default=True, metavar="N|TIME",
              help="Configurations or time (90s, 10m, 1h) per call and target.")  # fmt: skip
@click.option("--search", "search_", default="evolution", show_default=True, metavar="NAME",
              help="Strategy for a wide space: exhaustive, random or evolution.")  # fmt: skip
@click.option("--seed", type=count(0, (1 << 63) - 1), default=0, show_default=True,
              help="Seed of the search. Equal seeds try equal configurations.")  # fmt: skip
@click.option("--simulate", type=count(), default=6, show_default=True, metavar="N",
              help="Simulate the best N from executed samples.")  # fmt: skip
@click.option("-j", "--jobs", type=PROCESSES, metavar="N",
              help="Number of processes. [default: one per processor]")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the table to this file, as JSON that programs load.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue an interrupted run from its journal.")
@click.option("--ray", default="", metavar="ADDRESS",
              help="Search on a Ray cluster: HOST:PORT, auto, or local.")  # fmt: skip
@click.option(
    "-f", "--format", "format_", type=click.Choice(["text", "json"]), default="text",
    show_default=True,
)  # fmt: skip
@click.option("--top", type=count(1), default=10, show_default=True, metavar="N",
              help="Number of configurations to show per kernel.")  # fmt: skip
@click.option("--show-output", is_flag=True,
              help="Print the script's output to stderr. Its numbers are wrong.")  # fmt: skip
def command(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    arch_file: tuple[Path, ...],
    kernels: str,
    space: str,
    budget: str,
    search_: str,
    seed: int,
    simulate: int,
    jobs: int | None,
    output: Path | None,
    resume: bool,
    ray: str,
    format_: str,
    top: int,
    show_output: bool,
) -> int:
    """Tune the autotuned kernels of the script PATH without a GPU.

    The script runs on CPU tensors. Every configuration is compiled and its time predicted; the best
    ones are simulated from executed samples. docs/tune.md describes how programs use the table.
    Arguments after -- go to the script.
    """
    from wavecast.emulate.launch import available_processors
    from wavecast.pipeline import select
    from wavecast.tune.budget import SearchBudget
    from wavecast.tune.run import tune
    from wavecast.tune.script import TuneScript
    from wavecast.tune.settings import TuneSettings

    if resume and output is None:
        raise UsageError(
            "--resume needs the output file of the interrupted run", hint="give --output"
        )
    selection = select(arch.split(","), arch_file)
    settings = TuneSettings(
        devices=(),
        device_files=tuple(str(file.absolute()) for file in arch_file),
        journal=str(output) + ".journal" if output else "",
        space=space,
        search=search_,
        budget=SearchBudget.parse(budget),
        simulate=simulate,
        jobs=jobs or available_processors(),
        seed=seed,
    )
    if output is not None:
        _check_writable(output)
    script = TuneScript(path, script_args, kernels, quiet=not show_output)
    with streams.progress() as update:
        tuned = tune(script, selection, settings, update, resume=resume, ray=ray)
    document = json.dumps(tuned.table.to_json(), indent=1, ensure_ascii=False) + "\n"
    if output is not None:
        with streams.writing(output) as stream:
            stream.write(document)
    _show(tuned, document, format_, top)
    return 0 if any(entry.best for entry in tuned.table.entries) else 2


def _check_writable(output: Path) -> None:
    """Check before the search, which may take hours. Raises InputError."""
    import os

    if output.is_dir():
        raise InputError(f"cannot write {output}: it is a folder")
    folder = output.absolute().parent
    if not folder.is_dir():
        raise InputError(f"cannot write {output}: there is no folder {folder}")
    if not os.access(output if output.exists() else folder, os.W_OK):
        raise InputError(f"cannot write {output}: permission denied")


def _show(tuned: TuneResult, document: str, format_: str, top: int) -> None:
    if format_ == "json":
        streams.as_document(sys.stdout)
        sys.stdout.write(document)
        return
    from wavecast.report import tuning

    width = None if sys.stdout.isatty() else 200
    tuning.render(tuned, streams.console(width), top=top)
