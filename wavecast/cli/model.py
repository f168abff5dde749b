"""`wavecast model`: a whole model on a machine, a module on GPUs, or collectives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from wavecast.api.machines import Detail
from wavecast.api.model import MODES, ServingOptions, model
from wavecast.api.module import ModuleOptions
from wavecast.cli.supervise import script_exit
from wavecast.cli.verb import Show, Verb, Write

_ENDINGS = (".py", ".pt2", ".yaml", ".yml")
_SHOW = Show(view=Detail)


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
            return module_command.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _list(context: click.Context, _: click.Parameter, value: bool) -> None:
    """`--list`: the models that are known by name, and nothing else."""
    if not value or context.resilient_parsing:
        return
    from wavecast.systems import huggingface

    for name, values in huggingface.models().items():
        size = huggingface.read(values, name).parameters / 1e9
        click.echo(f"{name:24}{size:9,.1f} B  {values['model_type']}")
    context.exit()


def _run_script(values: Mapping[str, Any], _: Write | None) -> int | None:
    """A script with a module runs in a process of which crashes are reported."""
    script = Path(values["source"].rpartition(":")[0])
    return script_exit(script) if script.suffix == ".py" else None


command = Verb(
    name="model",
    function=model,
    options=ServingOptions,
    modes=MODES,
    show=_SHOW,
    arguments=(
        click.Argument(["source"], metavar="MODEL", required=False),
        click.Option(
            ["--list"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_list,
            help="List the models that are known by name.",
        ),
    ),
    text="""Predict how a model is served, or trained with --train, on a machine, without a GPU.

    MODEL is a config.json of Hugging Face, a folder with one, or a name (--list).
    """,
    examples=(
        "wavecast model Llama-3.3-70B --system 8xMI300X --tp 8 --dtype fp8 --concurrency 4..256",
        "wavecast model ./config.json --system 8xMI355X,8xH200 --tp 8 --in 8192 --out 1024",
        'wavecast model gpt-oss-120b --system 8xMI355X --what-if "hbm*1.5; attention free; tp 4"',
        "wavecast model Llama-3.1-8B --system 8xMI300X --train --batch 64 --seq 8192 --fsdp",
        "wavecast model DeepSeek-R1 --compare 8xMI300X,8xMI355X,8xH200 --price 2.5",
        "wavecast model --collectives all_reduce:64M --system 128x8xMI300X --oversubscription 2",
        "wavecast model --from-chakra traces/ --system 2x8xMI300X",
        "wavecast model script.py:factory --system mi300x,h200  (see wavecast model x.py:f -h)",
        "wavecast model --list",
    ),
).command(ModelCommand)

module_command = Verb(
    name="model",
    function=model,
    options=ModuleOptions,
    show=_SHOW,
    first=_run_script,
    arguments=(click.Argument(["source"], metavar="MODEL"),),
    text="""Predict how long a module of PyTorch takes on a GPU, without a GPU.

    MODEL is script.py:factory (the function returns a module and its inputs; the script is run), a
    .pt2 file of torch.export.save, or a YAML file of kernels (docs/model.md).
    """,
    examples=(
        "wavecast model resnet.py:make --system mi300x --train --optimizer momentum",
        "wavecast model flux.py:block --system mi300x,mi355x,h200 --engine torch.compile",
        "wavecast model exported.pt2 --system rx7900xtx --format json",
        "wavecast model kernels.yaml --system mi300x",
    ),
).command()

__all__ = ["ModelCommand", "command", "is_source"]
