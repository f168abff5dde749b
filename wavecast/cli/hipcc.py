"""`wavecast hipcc`: a compiler driver for makefiles of HIP programs."""

from __future__ import annotations

import click


@click.command(
    "hipcc",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    epilog="""Examples:

    make CC="wavecast hipcc"

    wavecast hipcc -O2 main.hip kernels.hip -o program

    wavecast run ./program
    """,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Compile and link HIP programs like hipcc, without ROCm.

    ARGUMENTS are those of hipcc: sources, objects, -c, -o, -I, -D, -l, -L, --offload-arch=GPU
    (default: gfx942) … The program runs with `wavecast run ./program`.
    """
    from wavecast.pipeline.execute.hip_driver import drive

    return drive(arguments)


__all__ = ["command"]
