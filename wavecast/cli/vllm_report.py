"""`wavecast vllm-report`: which layers of vLLM the kernel library serves, and in what time."""

from __future__ import annotations

import click

from wavecast.api.vllm_report import VllmOptions, vllm_report
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="vllm-report",
    function=vllm_report,
    options=VllmOptions,
    show=Show(formats=("text", "json", "markdown"), output=True, width=220),
    arguments=(click.Argument(["model"], metavar="MODEL"),),
    text="""List the kernels of a model in vLLM: layer, launches per step, the predicted time of
    vLLM's default, and that of the operators of wavecast.ops which serve it. vLLM need not be
    installed.

    MODEL is a config.json of Hugging Face, a folder with one, or a name (wavecast model --list).
    Operators are compiled for the GPU, the defaults are predicted from sizes.
    """,
    examples=(
        "wavecast vllm-report Llama-3.1-8B --arch gfx942",
        "wavecast vllm-report ./config.json --arch mi300x --dtype fp8 --kv-dtype fp8"
        " --concurrency 64",
        "wavecast vllm-report DeepSeek-R1 --arch gfx942 --tp 8 --jobs 2 --format markdown",
    ),
).command()

__all__ = ["command"]
