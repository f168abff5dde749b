"""`wavecast model` for modules, exported programs and descriptions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from wavecast.cli import streams
from wavecast.cli.outputs import file_options, taken
from wavecast.cli.supervise import script_exit
from wavecast.cli.types import count

_ENDINGS = (".py", ".pt2", ".yaml", ".yml")


def is_source(text: str) -> bool:
    """Whether an argument is `script.py:factory`, a program or a description, and not a name."""
    return ".py:" in text or (text.endswith(_ENDINGS) and not text.startswith("-"))


class ModelCommand(click.Command):
    """`wavecast model`, which has other options where MODEL is not a configuration."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if any(is_source(text) for text in args):
            return command.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    "model",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast model resnet.py:make --system mi300x --train --optimizer momentum

    wavecast model flux.py:block --system mi300x,mi355x,h200 --engine torch.compile

    wavecast model exported.pt2 --system rx7900xtx --format json

    wavecast model kernels.yaml --system mi300x
    """,
)
@click.argument("model", metavar="MODEL")
@click.option("--system", "systems", metavar="GPU[,GPU]", default="mi300x", show_default=True,
              help="GPUs: mi300x, h200 …")  # fmt: skip
@click.option("--arch-file", "arch_files", multiple=True, type=click.Path(path_type=Path),
              help="TOML with facts of a GPU, over those of the package.")  # fmt: skip
@click.option("--engine", default="eager", show_default=True,
              help="eager, torch.compile (Inductor's kernels), fusion-rule (a rule for what it "
              "fuses), or wavecast (wavecast.ops), the kernels compiled for the GPU.")  # fmt: skip
@click.option("-j", "--jobs", type=count(1, 256), default=1, show_default=True,
              help="Processes that compile for --engine wavecast.")  # fmt: skip
@click.option("--train", is_flag=True, help="Forward and backward pass of a module.")
@click.option("--optimizer", default="", help="And a step of sgd, momentum, adam, adamw, "
              "fused_adamw.")  # fmt: skip
@file_options
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
def command(
    model: str,
    systems: str,
    arch_files: tuple[Path, ...],
    engine: str,
    jobs: int,
    train: bool,
    optimizer: str,
    detail: str,
    format_: str,
    **files: Any,
) -> int:
    """Predict how long a module of PyTorch takes on a GPU, without a GPU.

    MODEL is script.py:factory (the function returns a module and its inputs; the script is run), a
    .pt2 file of torch.export.save, or a YAML file of kernels (docs/model.md).
    """
    script = Path(model.rpartition(":")[0])
    if script.suffix == ".py":
        ended = script_exit(script)
        if ended is not None:
            return ended
    from wavecast.arch.systems import system
    from wavecast.pipeline.module_answers import module_answers
    from wavecast.report import graphs as report

    machines = [system(selector, arch_files) for selector in systems.split(",")]
    answers, changed = module_answers(
        model, None, machines, engine=engine, train=train, optimizer=optimizer, jobs=jobs
    )
    taken(files).write("modules", answers)
    if format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(report.dumps(answers))
    else:
        console = streams.console(highlight=False)
        report.render(answers, console, detail=detail)
        for one in changed:
            report.render_changes(one, console)
    return 0


__all__ = ["ModelCommand", "command", "is_source"]
