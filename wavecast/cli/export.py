"""`wavecast export`: a call of the kernel library for C and C++ programs."""

from __future__ import annotations

import click

from wavecast.api.export import ExportOptions, export
from wavecast.cli.verb import Verb

command = Verb(
    name="export",
    function=export,
    options=ExportOptions,
    arguments=(click.Argument(["operator"]),),
    text="""Compile one call of an OPERATOR of the kernel library ahead of time, for programs
    without Python: a C header, a launcher for the driver's API (HIP or CUDA), the machine code, and
    a manifest with predicted times.
    """,
    examples=(
        "wavecast export matmul --shape m=4096,n=4096,k=4096 --arch mi300x,mi355x -o libwc_matmul",
        "wavecast export softmax --shape rows=8192,columns=4096 --arch gfx942,sm_90\n"
        "-o build/softmax",
    ),
).command()

__all__ = ["command"]
