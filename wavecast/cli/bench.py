"""`wavecast bench`: measure operators and functions over axes, on a GPU or without one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from wavecast.errors import NothingAnalysed, UsageError

STORE = ".wavecast/bench.sqlite"


def store_option(command: Callable[..., None]) -> Callable[..., None]:
    """`--store FILE`, of all verbs over measurements."""
    return click.option(
        "--store",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        default=lambda: os.environ.get("WAVECAST_STORE", STORE),
        show_default=STORE,
        help="The file that holds measurements.",
    )(command)


@click.command(
    "bench",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast bench rms_norm -a rows=1,64,8192 -a columns=4096 --arch gfx942,gfx1100

    wavecast bench matmul -a m=2^4..2^12 -a n=4096 -a k=4096 --arch mi300x --label main

    wavecast bench mykernels:attention -a tokens=1024:8192:1024 --arch gfx950 --execute
    """,
)
@click.argument("names", nargs=-1, required=True, metavar="OPERATOR|MODULE:FUNCTION...")
@click.option("-a", "--axis", "axes", multiple=True, metavar="NAME=VALUES",
              help="Values of an axis: 1,16,4096, FIRST:LAST:STEP, 2^4..2^12.")  # fmt: skip
@click.option("--arch", default="", help="GPUs to predict for, separated by commas.")
@click.option("--execute", is_flag=True,
              help="Run the machine code on the emulator: exact counts, the error.")  # fmt: skip
@click.option("--check", is_flag=True, help="And watch it for races, missing waits and more.")
@click.option("--label", default="", help="What to call the run: main, pr-17.")
@click.option("--no-store", is_flag=True, help="Keep nothing.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
@store_option
def command(
    names: tuple[str, ...],
    axes: tuple[str, ...],
    arch: str,
    execute: bool,
    check: bool,
    label: str,
    no_store: bool,
    form: str,
    path: Path,
) -> None:
    """Measure operators of the library, or Python functions, at all combinations of their axes.

    A function takes the axes by name and returns what is called. With --arch nothing needs a GPU:
    times are predicted, resources read off the code and, with --execute, instructions, bytes and
    bank conflicts counted while it runs on the emulator. Every record is kept at once; Ctrl-C keeps
    what was measured.
    """
    from rich.console import Console

    from wavecast import arch as known
    from wavecast.bench.measure.axes import parse, points
    from wavecast.bench.measure.environment import new_run
    from wavecast.bench.measure.session import offline_measure, session
    from wavecast.bench.measure.workload import workload
    from wavecast.bench.store.sqlite import open_store
    from wavecast.report import bench

    if not arch:
        raise UsageError("say which GPUs with --arch", hint="--arch gfx942,gfx1100")
    sys.path.insert(0, os.getcwd())
    devices = [known.load(name) for name in arch.split(",") if name]
    chosen = parse(axes)
    workloads = [workload(name, point) for name in names for point in points(chosen)]
    measure = offline_measure(execute=execute or check, check=check)
    store = None if no_store else open_store(path)
    errors = Console(stderr=True)
    with errors.status("") as status:
        outcome = session(new_run(label), workloads, devices, measure, store, status.update)
    if store is not None:
        store.close()
    if form == "json":
        click.echo("[" + ",\n".join(record.to_json() for record in outcome.records) + "]")
        for failed in outcome.failed:
            errors.print(f"failed: {failed.subject} on {failed.device}: {failed.why}")
    else:
        bench.render(outcome, Console(width=None if sys.stdout.isatty() else 200))
        if store is not None:
            click.echo(f"run {outcome.run.id} in {path}", err=True)
    if not outcome.records:
        raise NothingAnalysed("nothing was measured")
    if outcome.failed or any(record.refused for record in outcome.records):
        sys.exit(1)
