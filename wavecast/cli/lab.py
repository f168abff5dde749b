"""`wavecast lab`: the compiler's passes and decisions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from wavecast.api.lab_compilers import LabCompilersOptions, compilers
from wavecast.api.lab_passes import LabPassesOptions, passes
from wavecast.api.lab_reduce import LabReduceOptions, reduce
from wavecast.api.lab_schedule import LabScheduleOptions, schedule
from wavecast.api.lab_tune import LabTuneOptions, tune
from wavecast.api.tune import TopRows
from wavecast.cli import streams
from wavecast.cli.groups import CommandGroup
from wavecast.cli.verb import Show, Verb

_PATH = click.Argument(["path"], type=click.Path(path_type=Path))
_SOURCE = (_PATH, click.Argument(["script_args"], nargs=-1, type=click.UNPROCESSED))
_PAGE = Show(formats=("text", "json", "html"), output=True, width=200, highlight=True)


@click.group("lab", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show what compiler passes do to a kernel, and try other decisions of the compiler."""


VERBS = (
    Verb(
        name="tune",
        function=tune,
        options=LabTuneOptions,
        show=Show(view=TopRows, width=200, highlight=True),
        arguments=_SOURCE,
        text="""Try other decisions of Triton and LLVM for the kernels of PATH: a script, or a HIP
        file whose launch is stated; for assembly and code objects other orders, waits and
        priorities.

        Every alternative is compiled and its time predicted from its code. The fastest ones are
        executed on the emulator next to the original: one whose results differ, or that fails
        checks, is not advised. docs/lab.md has the list of decisions. Exit codes: 0; 2 if nothing
        could be compared; 3 if no kernel was launched.
        """,
        examples=(
            "wavecast lab tune matmul.py --arch gfx942,gfx950",
            "wavecast lab tune attention.py -k fwd --jobs 8 -o settings.json",
            "wavecast lab tune attention.py -o settings.json --resume -- --batch 4",
            "wavecast lab tune saxpy.hip --grid 4096 --block 256 --args launch.toml",
            "wavecast lab tune gemm.co --grid 64 --block 256 --args launch.toml -o best.json",
        ),
    ),
    Verb(
        name="passes",
        function=passes,
        options=LabPassesOptions,
        show=_PAGE,
        arguments=_SOURCE,
        text="""Show what each pass of Triton and LLVM does to the kernels of PATH: a script of
        Triton kernels, a HIP file, or LLVM IR (NAME.ll), which the newest llc compiles.

        TTGIR after every pass of Triton, machine IR after the passes of LLVM's code generator that
        decide most, and the assembly: what changed by source line, registers live at once, reads
        that moved past matrix instructions, waits. Kernels are also compiled without some passes,
        to tell what these bring. Exit codes: 0; 2 if no kernel could be shown.
        """,
        examples=(
            "wavecast lab passes matmul.py --arch gfx942",
            "wavecast lab passes attention.py -k fwd --format html -o passes.html",
            "wavecast lab passes reduction.hip --arch gfx1100 -- -DBLOCK=256",
        ),
    ),
    Verb(
        name="schedule",
        function=schedule,
        options=LabScheduleOptions,
        show=_PAGE,
        arguments=_SOURCE,
        text="""Search another order for the loops of the kernels of PATH: a script, or a HIP file,
        assembly or a code object whose launch is stated.

        Registers stay as the compiler allocated them; waits, no-ops and hints are regenerated. The
        new code is assembled, executed on the emulator next to the compiler's, and checked: an
        order whose results differ is discarded. Times are predictions. Exit codes: 0; 1 if an order
        was discarded; 2 if no kernel could be launched; 3 if none has a loop to search.
        """,
        examples=(
            "wavecast lab schedule matmul.py --arch gfx942,gfx1100",
            "wavecast lab schedule attention.py -k fwd --work 40 --assembly scheduled",
            "wavecast lab schedule gemm.hip --args gemm.toml --groups patches",
            "wavecast lab schedule kernel.s --grid 64 --block 256 --arg x=f32[16384] --arg n=16384",
        ),
    ),
    Verb(
        name="compilers",
        function=compilers,
        options=LabCompilersOptions,
        show=Show(formats=("text", "json", "markdown"), output=True, width=200, highlight=True),
        arguments=_SOURCE,
        text="""Compile the LLVM IR of the kernels of the script PATH with every code generator of
        this machine: Triton's, every llc and clang in PATH and of ROCm, and the clang of ziglang;
        and with those of --triton and --compiler.

        With --bisect, Triton's core LLVM, every llc and the releases of --triton compile it with
        the first pass, the first two, and so on: what each pass changes, and which one makes the
        figure differ. Exit codes: 0; 2 if no kernel could be compared.
        """,
        examples=(
            "wavecast lab compilers matmul.py --arch gfx942,gfx1100",
            "wavecast lab compilers matmul.py --arch gfx942 --bisect vgprs",
            "wavecast lab compilers matmul.py --triton 3.7.1 --triton 3.8.0 --bisect seconds",
        ),
    ),
    Verb(
        name="reduce",
        function=reduce,
        options=LabReduceOptions,
        show=Show(formats=("markdown",), output=True),
        progress=partial(streams.progress, lines=True),
        arguments=(_PATH,),
        text="""Reduce the LLVM IR or MIR in PATH while CONDITION is true, and write a report for an
        issue.

        MIR needs llvm-reduce and an llc; --option=-start-before=PASS says where llc starts. The
        report has the reduced IR, the command, what was expected and what was found. Exit codes: 0;
        2 if the condition is not true for the input.
        """,
        examples=(
            "wavecast lab reduce kernel.ll --arch gfx1100 --if lost-wait -o report.md",
            'wavecast lab reduce kernel.ll --arch gfx942 --if "spills>10" --compiler llc-22',
            "wavecast lab reduce kernel.ll --arch gfx942 --if crash --compiler triton\n"
            "--edit iglp_opt=1",
        ),
    ),
)

for _verb in VERBS:
    command.add_command(_verb.command())

__all__ = ["VERBS", "command"]
