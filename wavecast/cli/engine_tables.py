"""`wavecast tune --table`: tables of configurations for the kernels of vLLM and SGLang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wavecast.cli import streams
from wavecast.cli.types import click_type
from wavecast.errors import UsageError
from wavecast.options.values import Counts

_SIZES = {"experts": "EXPERTSxINTERxHIDDENxTOPK", "fp8-product": "COLUMNSxDEPTH"}
"""What `--shape` has, by kernel."""


class SettingParam(click.ParamType):
    """`BLOCK_SIZE_M=16,64`."""

    name = "NAME=N[,N…]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        name, _, values = str(value).partition("=")
        try:
            return name, tuple(int(one) for one in values.split(","))
        except ValueError:
            self.fail(f"{value!r} is not like BLOCK_SIZE_M=16,64", param, ctx)


@click.command(
    "tune",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast tune --table experts --shape 128x768x2048x8 --arch mi355x --output tables

    wavecast tune --table experts --shape 256x2048x7168x8 --dtype fp8_block --engine sglang -o .

    wavecast tune --table fp8-product --shape 4096x7168 --arch mi300x --batches 1,16,256 -o .
    """,
)
@click.option("--table", "kernel", type=click.Choice(list(_SIZES)), required=True,
              help="Kernel: products of experts, or block-scaled fp8 products.")  # fmt: skip
@click.option("--shape", required=True, metavar="SIZES",
              help="; ".join(f"{name}: {sizes}" for name, sizes in _SIZES.items()))  # fmt: skip
@click.option("--dtype", default="bf16", show_default=True,
              help="Format of experts: bf16, fp8, fp8_block, int8.")  # fmt: skip
@click.option("--engine", default="vllm", show_default=True, help="vllm or sglang.")
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="AMD GPUs by name (mi300x) or target (gfx942).")  # fmt: skip
@click.option("--batches", type=click_type(Counts()), default=None,
              help="Numbers of tokens: 1,16,256 or 1..4096 (doubling).")  # fmt: skip
@click.option("--setting", "settings", type=SettingParam(), multiple=True,
              help="Values of a setting to try, instead of the default ones.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True,
              help="Folder to write to.")  # fmt: skip
def command(
    kernel: str,
    shape: str,
    dtype: str,
    engine: str,
    arch: str,
    batches: tuple[int, ...] | None,
    settings: tuple[tuple[str, tuple[int, ...]], ...],
    output: Path,
) -> int:
    """Write a table of configurations for a Triton kernel of vLLM or SGLang, in the file that the
    engine reads, without a GPU. vLLM must be installed: its kernel is compiled in every
    configuration, and its time predicted (docs/tune.md).
    """
    from wavecast.errors import UnknownName
    from wavecast.integrations.vllm import moe_tables, product_tables, tables

    if engine not in tables.ENGINES:
        raise UnknownName("engine", engine, tables.ENGINES)
    numbers = _numbers(shape, _SIZES[kernel])
    if kernel == "experts":
        if dtype not in moe_tables.FORMATS:
            raise UnknownName("format of experts", dtype, moe_tables.FORMATS)
        experts, inter, hidden, top_k = numbers
        module: Any = moe_tables
        sizes: Any = moe_tables.ExpertLayerSizes(experts, inter, hidden, top_k, dtype)
        if sizes.top_k > sizes.experts:
            raise UsageError(f"{sizes.top_k} of {sizes.experts} experts")
    else:
        module, sizes = product_tables, product_tables.ProductSizes(*numbers)
    space = dict(module.SPACE)
    for name, values in settings:
        if name not in space:
            raise UnknownName("setting", name, space)
        space[name] = values
    with streams.progress() as update:
        for gpu in arch.split(","):
            update(f"{kernel} {shape} on {gpu}")
            path = module.write(output, sizes, gpu, batches or tables.BATCHES, space, engine)
            click.echo(str(path))
    return 0


def _numbers(shape: str, sizes: str) -> tuple[int, ...]:
    parts = shape.split("x")
    if len(parts) != len(sizes.split("x")) or not all(part.isdecimal() for part in parts):
        raise UsageError(f"--shape {shape} is not {sizes}")
    found = tuple(map(int, parts))
    if min(found) < 1:
        raise UsageError(f"--shape {shape}: sizes are positive")
    return found


__all__ = ["command"]
