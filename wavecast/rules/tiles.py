"""Other block sizes of a Triton kernel: its IR with tiles of half or twice the elements.

A block size is a `tl.constexpr` whose value is a dimension of the kernel's tensors. The IR has it
as dimensions of types, ends of ranges, and constants (itself, and one less where sizes are rounded
up). All of them are replaced; the grid changes along the axes whose program ids are multiplied by
it. Whether the kernel still does the same work is checked after compilation
(`pipeline.explain.fixing`). A size below `SMALLEST` may be any number: it is replaced only where
the IR has it as a dimension and as a factor of program ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.compile.ttgir import IrModule, Operation
from wavecast.rules.finding import RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.triton_slice import TritonSlices, uses
from wavecast.rules.triton_stages import module, module_slices, stage

SMALLEST: Final = 16
"""Elements of the smallest tile that is tried: matrix instructions take no smaller one."""
NARROWEST: Final = 2
"""Elements of the smallest dimension that can be told from others in the IR."""
LARGEST: Final = 8192
"""Elements of the largest dimension that is tried."""

_TENSOR = re.compile(r"(tensor<)((?:\d+x)+)")
_RANGE_END = re.compile(r"(tt\.make_range \{end = )(\d+)( : i32)")
_CONSTANT = re.compile(
    r"(arith\.constant (?:dense<)?)(-?\d+)(>? : (?:tensor<[\dx]*)?(?:i32|i64)\b)"
)
_AXES = ("x", "y", "z")
_PROGRAM_ID = re.compile(r"tt\.get_program_id ([xyz])")


@dataclass(frozen=True, slots=True)
class BlockSize:
    """Block sizes of one value: their names."""

    names: tuple[str, ...]
    value: int

    def text(self, value: int) -> str:
        """`BLOCK_M=BLOCK_N=64`."""
        return "=".join((*self.names, str(value)))


def block_sizes(subject: RuleInput, smallest: int = SMALLEST) -> list[BlockSize]:
    """The block sizes of a kernel of Triton from `smallest` on, the largest first."""
    text = stage(subject, "ttir")
    dimensions = {
        int(size) for match in _TENSOR.finditer(text) for size in match[2].split("x") if size
    }
    names_by_value: dict[int, list[str]] = {}
    for parameter in subject.code.parameters:
        value = parameter.constant
        if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
            continue
        if value in dimensions and value & (value - 1) == 0:
            names_by_value.setdefault(value, []).append(parameter.name)
    return [
        BlockSize(tuple(names), value)
        for value, names in sorted(names_by_value.items(), reverse=True)
    ]


def other_blocks(subject: RuleInput, *, smaller: bool, why: str) -> Iterator[Fix]:
    """The kernel with each of its block sizes half as large (`smaller`), or twice."""
    for block in block_sizes(subject):
        value = block.value // 2 if smaller else block.value * 2
        change = resize_block(subject, block, value)
        if change is not None:
            yield Fix(
                f"Use {block.text(value)} (now {block.value}){why}.", change, block.text(value)
            )


def resize_block(subject: RuleInput, block: BlockSize, value: int) -> Recompiled | None:
    """The change to another value; None where the IR does not show what depends on it."""
    launch, text = subject.launch, stage(subject, "ttir")
    parsed, sliced = module(subject, "ttir"), module_slices(subject, "ttir")
    if launch is None or parsed is None or sliced is None or not SMALLEST <= value <= LARGEST:
        return None
    if "tt.get_num_programs" in text or _has_derived_constant(text, block, subject):
        return None
    axes = _axes(parsed, sliced, block.value)
    small = block.value < SMALLEST
    if axes is None or (small and not _only_multiplies(parsed, block.value)):
        return None
    grid = list(launch.grid)
    for axis in axes:
        grid[axis] = -(-grid[axis] * block.value // value)
    numbers = {block.value: value} if small else {block.value: value, block.value - 1: value - 1}
    changed = _replace_sizes(text, numbers, block.value, value)
    x, y, z = grid
    return Recompiled(changed, grid=(x, y, z), same_work=True)


def _has_derived_constant(text: str, block: BlockSize, subject: RuleInput) -> bool:
    """Whether a constant may be made of the block size: a multiple that no other one is."""
    constants = {0, block.value, block.value - 1}
    constants |= {p.constant for p in subject.code.parameters if isinstance(p.constant, int)}
    return any(
        int(match[2]) not in constants and int(match[2]) % block.value == 0
        for match in _CONSTANT.finditer(text)
    )


def _axes(parsed: IrModule, sliced: TritonSlices, value: int) -> list[int] | None:
    """The grid axes of the program ids that are multiplied by a block size, one entry for each
    product; None where a product is of several."""
    constants = {
        name: int(match[2])
        for operation in parsed.operations_named("arith.constant")
        for match in [_CONSTANT.search(operation.text)]
        if match is not None
        for name in operation.results
    }
    product_axes = []
    for operation in parsed.operations_named("arith.muli"):
        operands = uses(operation)
        others = [name for name in operands if constants.get(name) != value]
        if len(others) == len(operands):
            continue
        axes = {axis for source in sliced.operations(others) for axis in _axis(source)}
        if len(axes) > 1:
            return None
        product_axes += axes
    return product_axes


def _only_multiplies(parsed: IrModule, value: int) -> bool:
    """Whether constants of a value are factors and nothing else, and none is one less, which
    rounds up."""
    names: set[str] = set()
    for operation in parsed.operations_named("arith.constant"):
        match = _CONSTANT.search(operation.text)
        if match is None:
            continue
        if int(match[2]) == value:
            names.update(operation.results)
        elif int(match[2]) == value - 1:
            return False
    return all(
        operation.name == "arith.muli"
        for operation in parsed.operations
        if names & set(uses(operation))
    )


def _axis(operation: Operation) -> list[int]:
    match = _PROGRAM_ID.search(operation.text)
    return [_AXES.index(match[1])] if match is not None else []


def _replace_sizes(text: str, numbers: Mapping[int, int], old: int, new: int) -> str:
    """The IR with other dimensions and constants."""

    def types(match: re.Match[str]) -> str:
        sizes = [str(new) if size == str(old) else size for size in match[2].split("x")]
        return match[1] + "x".join(sizes)

    def constant(match: re.Match[str]) -> str:
        value = int(match[2])
        return f"{match[1]}{numbers.get(value, value)}{match[3]}"

    text = _CONSTANT.sub(constant, text)
    text = _RANGE_END.sub(lambda m: m[1] + str(new if int(m[2]) == old else int(m[2])) + m[3], text)
    return _TENSOR.sub(types, text)


__all__ = ["NARROWEST", "BlockSize", "block_sizes", "other_blocks", "resize_block"]
