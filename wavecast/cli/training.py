"""Options of `wavecast model --train`, and its run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from wavecast.cli import outputs, streams
from wavecast.cli.types import NumberRange, count
from wavecast.errors import NothingAnalysed, UsageError

_Command = TypeVar("_Command", bound=Callable[..., object])

_OPTIONS: Final = (
    click.option("--train", is_flag=True, help="Predict a training step instead of serving."),
    click.option("--batch", type=count(1), default=None, help="Training: sequences of a step."),
    click.option("--seq", "sequence", type=count(1, 1 << 24), default=None,
                 help="Training: tokens of a sequence."),
    click.option("--micro-batch", type=count(1), default=None, show_default="1",
                 help="Training: sequences at once on a replica."),
    click.option("--pp", type=count(1), default=None, show_default="1",
                 help="Stages of a pipeline."),
    click.option("--cp", type=count(1), default=None, show_default="1",
                 help="Training: GPUs that divide a sequence."),
    click.option("--schedule", type=click.Choice(["1f1b", "interleaved", "gpipe", "zero-bubble"]),
                 default=None, help="Training: schedule of the pipeline."),
    click.option("--chunks", type=count(1), default=None, show_default="1",
                 help="Training: parts of the layers per GPU, of the schedule interleaved."),
    click.option("--fsdp", is_flag=True, help="Training: shard weights, too (ZeRO-3)."),
    click.option("--zero", type=click.IntRange(0, 3), default=None, show_default="1",
                 help="Training: what replicas shard; 1: optimizer, 2: gradients, 3: weights."),
    click.option("--recompute", type=click.Choice(["none", "selective", "full"]), default=None,
                 show_default="none", help="Training: what the backward pass computes again."),
    click.option("--recompute-layers", type=count(1), default=None, show_default="all",
                 help="Training: layers of a GPU that --recompute full computes again."),
    click.option("--lora", type=count(1), default=None,
                 help="Training: rank of adapters over frozen weights."),
    click.option("--grad-dtype", type=click.Choice(["fp32", "bf16"]), default=None,
                 show_default="fp32", help="Training: dtype of gradients."),
    click.option("--fp8-activations", is_flag=True,
                 help="Training: store operands of activation functions in fp8."),
    click.option("--no-sequence-parallel", is_flag=True,
                 help="Training: norms on every GPU of --tp in full."),
    click.option("--overlap-experts", is_flag=True,
                 help="Training: exchanges with experts run next to another micro-batch."),
    click.option("--split-products", is_flag=True,
                 help="Training: communication of --tp runs next to parts of the products."),
    click.option("--overlap", type=NumberRange(0, 1), default=None,
                 help="Training: share of the communication of replicas that is hidden."),
    click.option("--tokens", type=NumberRange(0, 1e18, min_open=True), default=None,
                 help="Training: tokens of the whole training."),
)  # fmt: skip

_BOTH: Final = (
    *("name", "list_", "systems", "arch_files", "system_files", "tp", "pp", "dp", "ep", "dtype"),
    *("detail", "format_", "collectives", "oversubscription", "leaf", "msccl"),
    *outputs.NAMES,
)
"""Parameters that training shares with serving."""


def training_options(command: _Command) -> _Command:
    """Add the options of training to a command, which gets them as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_options(context: click.Context) -> None:
    """Raises UsageError for a given option of training without `--train`, or of serving with it."""
    own = {param.name for param in _own(context.command)}
    for param in context.command.params:
        name = param.name or ""
        given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not given or name in _BOTH or (name in own) == context.params["train"]:
            continue
        reason = "does not apply to --train" if context.params["train"] else "belongs to --train"
        raise UsageError(f"{param.opts[0]} {reason}")


def _own(command: click.Command) -> list[click.Parameter]:
    """The options of `training_options`."""
    first = next(n for n, param in enumerate(command.params) if param.name == "train")
    return command.params[first : first + len(_OPTIONS)]


def run_training(
    name: str,
    systems: str,
    arch_files: Sequence[Path],
    system_files: Sequence[Path],
    *,
    tp: int | None,
    dp: int,
    ep: int,
    dtype: str,
    options: Mapping[str, Any],
    detail: str,
    format_: str,
    written: outputs.OutputFiles,
) -> int:
    """`wavecast model NAME --train` on every system of a list with commas."""
    from wavecast.arch.systems import system
    from wavecast.report import training as report
    from wavecast.systems.training.answer import train
    from wavecast.systems.training.options import TrainingOptions

    if options["batch"] is None or options["sequence"] is None:
        raise UsageError("--train needs --batch and --seq")
    given = {name: value for name, value in options.items() if value is not None}
    tokens = given.pop("tokens", 0.0)
    given.pop("train")
    asked = TrainingOptions(tp=tp or 1, dp=dp, ep=ep, dtype=dtype or "bf16", **given)
    answers = []
    for selector in systems.split(","):
        machine = system(selector, arch_files, system_files)
        answers.append(train(name, machine, asked.setup(machine.gpus), tokens=tokens))
    written.write("trained", answers)
    if format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(report.training_text(answers))
    else:
        report.render_training(answers, streams.console(highlight=False), detail=detail)
    if not any(found.figures for found in answers):
        raise NothingAnalysed("the training fits none of the systems")
    return 0


__all__ = ["check_options", "run_training", "training_options"]
