"""Whole models on machines as a Markdown table, which docs/model.md has: models that serve 64
requests at once (1024 tokens in, 1024 out), and modules on one GPU of each machine.

    python -m benchmarks.models > table.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

import wavecast
from wavecast.report.kit import units
from wavecast.report.systems import serving_words
from wavecast.systems.intervals import Interval

SYSTEMS = ("8xMI300X", "8xMI355X", "8xH200", "RX7900XTX")
MODELS = (
    ("Llama-3.3-70B", "fp8"),
    ("gpt-oss-120b", ""),
    ("DeepSeek-R1", ""),
    ("Mixtral-8x7B", "fp8"),
    ("Qwen3-235B-A22B", "fp8"),
)
"""Served models and the format of their weights; none: that of the checkpoint."""
MODULES = (
    ("diffusion transformer, 12 B, one step", "examples/models/diffusion.py:step", False),
    ("ResNet-50, training step of 64 images", "examples/models/resnet.py:resnet50", True),
    ("ViT-B/16, forward", "examples/models/vit.py:base", False),
)
"""Modules of scripts, and whether they are trained."""
REQUESTS = 128


def served(name: str, dtype: str, system: str) -> str:
    """Time per output token and tokens per second of a GPU, or that it does not fit."""
    answer = wavecast.model(name, system, dtype=dtype, concurrency=64, requests=REQUESTS).answers[0]
    if answer.why_not:
        needed = sum(answer.memory.parts.values())
        return f"does not fit: {units.size(needed)} of {units.size(answer.memory.available)} a GPU"
    (serving,) = answer.servings
    rate = serving.output_rate.value / answer.parallel.gpus
    return f"fits; {_time(serving.tpot)} a token, {serving_words.rate(rate)} tok/s/GPU"


def run(source: str, train: bool, system: str) -> str:
    """Time of a run on one GPU, or that it does not fit."""
    optimizer = "momentum" if train else ""
    gpu = system.removeprefix("8x")
    report = wavecast.model(source, None, gpu, train=train, optimizer=optimizer)
    answer = report.answers[0]
    if not answer.memory.fits:
        return f"does not fit: {units.size(answer.memory.total)}"
    return f"fits; {_time(answer.total)}"


def _time(interval: Interval) -> str:
    return f"{units.seconds(interval.value)} ({serving_words.times(interval)})"


def _rows(
    names: Sequence[str], cell: Callable[[int, str], str], systems: Sequence[str]
) -> list[str]:
    return [
        f"| {name} | " + " | ".join(cell(number, system) for system in systems) + " |"
        for number, name in enumerate(names)
    ]


@click.command()
def main() -> None:
    """Print the table."""
    click.echo("| model | " + " | ".join(SYSTEMS) + " |")
    click.echo("|---" * (len(SYSTEMS) + 1) + "|")
    names = [f"{name}{f', {dtype}' if dtype else ''}" for name, dtype in MODELS]
    for row in _rows(names, lambda number, system: served(*MODELS[number], system), SYSTEMS):
        click.echo(row)
    for row in _rows(
        [name for name, _, _ in MODULES],
        lambda number, system: run(MODULES[number][1], MODULES[number][2], system),
        SYSTEMS,
    ):
        click.echo(row)


if __name__ == "__main__":
    main()
