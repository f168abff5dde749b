"""`wavecast explain`: kernels, or operations by their sizes."""

from __future__ import annotations

from pathlib import Path

import click

from wavecast.api.explain import MODES, ExplainOptions, explain, explain_options
from wavecast.api.machines import Detail
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="explain",
    function=explain,
    options=ExplainOptions,
    modes=MODES,
    choose=explain_options,
    show=Show(
        formats=("text", "brief", "json", "html", "sarif"),
        output=True,
        view=Detail,
        width=110,
        highlight=True,
    ),
    arguments=(
        click.Argument(["path"], type=click.Path(path_type=Path)),
        click.Argument(["script_args"], nargs=-1, type=click.UNPROCESSED),
    ),
    text="""Show the machine code of the kernels in PATH on each GPU, their predicted time, and what
    limits them.

    PATH is a Python script with Triton kernels, a HIP file, assembly, PTX, a cubin, or a code
    object, also in an offload bundle, a program, a shared library or an archive. A script runs, and
    its launches are recorded instead of computed. Arguments after -- go to the script.

    PATH can also be an operation with a --shape: attention, collective, context_attention, conv,
    elementwise, gemm, gemm_collective, moe, norm, reduction, softmax.

    docs/glossary.md explains the terms of the output.
    """,
    examples=(
        "wavecast explain matmul.py --arch gfx942,gfx950,gfx1100,sm_90",
        "wavecast explain train.py --arch mi300x -k attention -- --batch 4",
        "wavecast explain reduce.hip --arch gfx1100 --grid 1024 --block 256\n"
        "--arg input=f32[1048576] --arg output=f32[1024] --arg n=1048576",
        "wavecast explain gemm --shape 4096x4096x4096 --dtype fp8 --arch mi300x,mi355x",
        "wavecast explain libhipblaslt.so --list -k MT128x128 --arch gfx942",
    ),
).command()

__all__ = ["command"]
