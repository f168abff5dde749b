"""`wavecast diff`: two versions of a kernel, or one under two compilers; a search over releases."""

from __future__ import annotations

import click

from wavecast.api.diff import AssemblyRows, DiffOptions, diff
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="diff",
    function=diff,
    options=DiffOptions,
    show=Show(
        formats=("text", "json", "html"), output=True, view=AssemblyRows, width=200, highlight=True
    ),
    arguments=(
        click.Argument(
            ["words"],
            nargs=-1,
            required=True,
            metavar="A [B] [-- SCRIPT ARGUMENTS]",
            type=click.UNPROCESSED,
        ),
    ),
    text="""Compare two versions of kernels: registers, spills, LDS, waves, instruction mix,
    findings, predicted time, the responsible loop, and its assembly.

    A and B are scripts, HIP files, assembly or code objects. With --commit or --triton there is
    only A, at two commits or under two releases of Triton. Each release has an environment in the
    cache folder. No GPU is needed.
    """,
    examples=(
        "wavecast diff matmul.py matmul_new.py --arch gfx942,gfx1100",
        "wavecast diff matmul.py --commit main --fail-on spills,predicted_seconds",
        "wavecast diff matmul.py --commit v1.0 --commit v1.1 --arch gfx950 -- --batch 4",
        "wavecast diff a.hip b.hip --grid 64 --block 256 --arg n=16384 --arg x=f32[16384]",
        "wavecast diff matmul.py --triton 3.8.0 --triton 3.9.0",
        "wavecast diff matmul.py --bisect --kpi spills --from 3.6.0 --to 3.9.0",
    ),
).command()

__all__ = ["command"]
