"""`wavecast profile`: what profilers measured."""

from __future__ import annotations

from pathlib import Path

import click

from wavecast.api.machines import Detail
from wavecast.api.profile import ProfileOptions, profile
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="profile",
    function=profile,
    options=ProfileOptions,
    show=Show(formats=("text", "json", "markdown"), view=Detail),
    arguments=(click.Argument(["path"], metavar="FILE|FOLDER", type=click.Path(path_type=Path)),),
    text="""Show where the time of a profiled run went: kernels, operators, modules, idle time.

    Where the file has operators with sizes, each is shown with its predicted time.

    Reads traces of the PyTorch profiler (a folder holds one per rank), rocprofv3 (CSV, JSON,
    rocpd), rocprof-compute, Nsight Compute (--csv), Nsight Systems (SQLite), Proton (hatchet) and
    JAX (xplane.pb).
    """,
    examples=(
        "wavecast profile trace.json.gz",
        "wavecast profile results.db --device mi300x --format json",
        "wavecast profile trace.json.gz --on mi355x,h200",
        'wavecast profile trace.json.gz --what-if "attention=wavecast; batch*2; graphs"',
        "wavecast profile pmc_perf.csv --device mi300x --code kernels.py",
        "wavecast profile before.json.gz --against after.json.gz",
        "wavecast profile traces/ --detail full",
    ),
).command()

__all__ = ["command"]
