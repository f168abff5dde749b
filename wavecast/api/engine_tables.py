"""Tables of configurations for the kernels of vLLM and SGLang."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.result import ShownResult, few
from wavecast.errors import UnknownName, UsageError
from wavecast.options import Options, Progress, option
from wavecast.options.values import OUTPUT_FOLDER, Counts, NameList, OneOf, OptionValues, Several

if TYPE_CHECKING:
    from rich.console import Console

SIZES: Final = {"experts": "EXPERTSxINTERxHIDDENxTOPK", "fp8-product": "COLUMNSxDEPTH"}
"""What `shape` has, by kernel."""


class SettingValues(OptionValues):
    """`BLOCK_SIZE_M=16,64`."""

    name = "NAME=N[,N…]"

    def parse(self, text: str) -> tuple[str, tuple[int, ...]]:
        name, _, values = text.partition("=")
        try:
            return name, tuple(int(value) for value in values.split(","))
        except ValueError:
            raise ValueError(f"{text!r} is not like BLOCK_SIZE_M=16,64") from None


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """Options of a table for an engine."""

    REQUIRED: ClassVar = ("shape", "output")

    table: str = option(
        "",
        "Write the table of a kernel of vLLM or SGLang instead: products of experts, or "
        "block-scaled fp8 products.",
        values=OneOf(tuple(SIZES)),
    )
    shape: str = option(
        "",
        "Table: " + "; ".join(f"{name}: {sizes}" for name, sizes in SIZES.items()),
        metavar="SIZES",
    )
    dtype: str = option("bf16", "Table: format of experts: bf16, fp8, fp8_block, int8.")
    engine: str = option("vllm", "Table: vllm or sglang.")
    arch: tuple[str, ...] = option(
        ("gfx942",), "GPUs.", "-a", "--arch", values=NameList(), metavar="GPU[,GPU…]"
    )
    batches: tuple[int, ...] | None = option(
        None, "Table: numbers of tokens: 1,16,256 or 1..4096 (doubling).", values=Counts()
    )
    settings: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (),
        "Table: values of a setting to try, instead of the default ones.",
        "--setting",
        values=Several(SettingValues()),
    )
    output: Path | None = option(
        None, "Folder to write to.", "-o", "--output", values=OUTPUT_FOLDER, metavar="FOLDER"
    )

    def numbers(self) -> tuple[int, ...]:
        """The sizes of `shape`. Raises UsageError."""
        sizes = SIZES[self.table]
        parts = self.shape.split("x")
        if len(parts) != len(sizes.split("x")) or not all(part.isdecimal() for part in parts):
            raise UsageError(f"--shape {self.shape} is not {sizes}")
        if "0" in map(str, map(int, parts)):
            raise UsageError(f"--shape {self.shape}: sizes are positive")
        return tuple(map(int, parts))


@dataclass(frozen=True, slots=True, repr=False)
class EngineTables(ShownResult):
    """The `files` that were written, in the format of the engine, one per GPU."""

    files: tuple[Path, ...]

    def render(self, console: Console, *, top: int = 10) -> None:  # noqa: ARG002 - of searches
        for file in self.files:
            console.print(str(file), markup=False, highlight=False, soft_wrap=True)

    def to_dict(self) -> dict[str, Any]:
        return {"files": [*map(str, self.files)]}

    def subject(self) -> str:
        return few([file.name for file in self.files])


def write_tables(options: TableOptions, progress: Progress) -> EngineTables:
    """Write the table of each GPU. Raises UnknownName, UsageError, MissingTool without vLLM."""
    from wavecast.frameworks.vllm import moe_tables, product_tables, tables

    if options.engine not in tables.ENGINES:
        raise UnknownName("engine", options.engine, tables.ENGINES)
    numbers = options.numbers()
    if options.table == "experts":
        if options.dtype not in moe_tables.FORMATS:
            raise UnknownName("format of experts", options.dtype, moe_tables.FORMATS)
        experts, inter, hidden, top_k = numbers
        module: Any = moe_tables
        sizes: Any = moe_tables.ExpertLayerSizes(experts, inter, hidden, top_k, options.dtype)
        if sizes.top_k > sizes.experts:
            raise UsageError(f"{sizes.top_k} of {sizes.experts} experts")
    else:
        module, sizes = product_tables, product_tables.ProductSizes(*numbers)
    space = dict(module.SPACE)
    for name, values in options.settings:
        if name not in space:
            raise UnknownName("setting", name, space)
        space[name] = values
    batches, files = options.batches or tables.BATCHES, []
    for gpu in options.arch:
        progress(f"{options.table} {options.shape} on {gpu}")
        files.append(module.write(options.output, sizes, gpu, batches, space, options.engine))
    return EngineTables(tuple(files))


__all__ = ["SIZES", "EngineTables", "SettingValues", "TableOptions", "write_tables"]
