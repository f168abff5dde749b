"""`wavecast run`: a script whose Triton launches are executed on the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(
    "run",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast run test_matmul.py --arch gfx942

    wavecast run train.py --arch gfx1100 --threads 8 -- --steps 10
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU",
              help="An AMD GPU by name (mi300x) or target (gfx942).")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), default=None,
              help="Host threads to run workgroups on (default: all).")  # fmt: skip
@click.option("-k", "--kernels", default="", metavar="REGEX",
              help="Execute only kernels whose name matches; others do nothing.")  # fmt: skip
def command(
    path: Path, script_args: tuple[str, ...], arch: str, threads: int | None, kernels: str
) -> int:
    """Run the Python script PATH with its Triton kernels executed, no GPU needed.

    Kernels are compiled for the GPU and their machine code runs on this machine's processor;
    tensors live in its memory, also those the script asks `cuda` for. The script's output, its
    checks and its exit code are its own. Times it measures with triton.testing are those of the
    emulator, not of a GPU. Arguments after -- go to the script.
    """
    from wavecast.errors import InputError
    from wavecast.integrations.triton import run_script

    if not path.is_file():
        raise InputError(f"no such script: {path}")
    ended = run_script(path, script_args, arch, threads=threads, kernels=kernels)
    if ended.traceback:
        sys.stderr.write(ended.traceback)
    elif not ended.executed:
        click.echo("wavecast: the script launched no Triton kernel", err=True)
    return ended.code
