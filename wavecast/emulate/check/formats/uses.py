"""The formats in which a kernel reads and stores 8-bit floats, by argument.

Triton's intermediate representation has the types of loads and stores, and the bitcasts between
bytes and 8-bit floats. HIP source names formats: types, constants of conversions and instructions.
A kernel whose functions name one format has its bytes in that; one that names several is not
followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.compile.codeobject import CodeObject
from wavecast.compile.ttgir import IrModule, Operation, parse
from wavecast.dtypes import Dtype, Spelling, is_dtype, lookup
from wavecast.emulate.check.formats.names import declared_types, named_formats
from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Kernel
from wavecast.rules.triton_slice import TritonSlices, uses

_ELEMENT = re.compile(r"(?:x|<|^|\s|\()(f8\w+|i8)\b")
_PASSED: Final = frozenset(
    {
        *("tt.reshape", "tt.trans", "tt.broadcast", "tt.expand_dims", "tt.splat", "tt.join"),
        *("ttg.convert_layout", "arith.select", "tt.cat", "tt.split"),
    }
)
_COMPUTES = ("tt.fp_to_fp", "tt.dot", "arith.", "math.", "tt.reduce", "tt.extern_elementwise")

_BYTES = frozenset(
    {
        *("u8", "i8", "uint8", "int8", "char", "unsigned char", "signed char"),
        *("unsigned", "unsigned int", "unsigned short", "uint16_t", "uint32_t", "uint2", "uint4"),
    }
)
"""Types of bytes, and of several at once."""


@dataclass(frozen=True, slots=True)
class FormatUse:
    """An argument that a kernel reads or `stores` as an 8-bit float."""

    argument: str
    dtype: Dtype
    stores: bool
    location: SourceLocation | None


def format_uses(
    kernel: Kernel, code: CodeObject, sources: Mapping[int, tuple[str, ...]]
) -> list[FormatUse]:
    """The uses of a kernel, each argument once. `sources` are the arguments that the addresses of
    instructions come from."""
    ttir = code.stages.get("ttir", "")
    if code.origin == "triton" and isinstance(ttir, str):
        candidates = list(_triton_uses(parse(ttir, tuple(code.moved_files.items()))))
    elif code.origin == "hip":
        candidates = list(_hip_uses(kernel, code, sources))
    else:
        candidates = []
    return list(_unambiguous(candidates))


def _unambiguous(uses_: Iterable[FormatUse]) -> Iterator[FormatUse]:
    """The first use of each argument and direction; none where another has another format."""
    by_argument: dict[tuple[str, bool], list[FormatUse]] = {}
    for use in uses_:
        by_argument.setdefault((use.argument, use.stores), []).append(use)
    for same in by_argument.values():
        if len({use.dtype for use in same}) == 1:
            yield same[0]


# Triton


def _triton_uses(module: IrModule) -> Iterator[FormatUse]:
    slices = TritonSlices(module)
    defined = {name: op for op in module.operations for name in op.results}
    for operation in module.operations:
        if operation.name == "tt.store":
            pointer, value, *_ = uses(operation)
            dtype = _float_of(operation.types) or _cast_from(defined, value)
            yield from _use(slices, pointer, dtype, operation, stores=True)
        elif operation.name == "tt.load":
            dtype = _float_of(operation.types)
            if dtype is not None and _is_computed(module, operation):
                yield from _use(slices, uses(operation)[0], dtype, operation, stores=False)
        elif operation.name == "tt.bitcast":
            load = _passed_from(defined, uses(operation)[0])
            dtype = _float_of(operation.types.rpartition("->")[2])
            is_load = load is not None and load.name == "tt.load"
            if is_load and load is not None and _is_computed(module, operation):
                yield from _use(slices, uses(load)[0], dtype, load, stores=False)


def _use(
    slices: TritonSlices, pointer: str, dtype: Dtype | None, operation: Operation, *, stores: bool
) -> Iterator[FormatUse]:
    pointers = [argument for argument in slices.of([pointer]) if argument.is_pointer]
    if dtype is not None and len(pointers) == 1:
        yield FormatUse(pointers[0].name, dtype, stores, operation.location)


def _float_of(types: str) -> Dtype | None:
    """The 8-bit float with two variants that a type has as its element."""
    for name in _ELEMENT.findall(types):
        if is_dtype(name, Spelling.MLIR):
            dtype = lookup(name, Spelling.MLIR)
            if dtype.variant is not None:
                return dtype
    return None


def _passed_from(defined: Mapping[str, Operation], value: str) -> Operation | None:
    """The operation whose result reaches a value without a change."""
    operation = defined.get(value.partition("#")[0])
    while operation is not None and operation.name in _PASSED:
        value = uses(operation)[-1 if operation.name == "arith.select" else 0]
        operation = defined.get(value.partition("#")[0])
    return operation


def _cast_from(defined: Mapping[str, Operation], value: str) -> Dtype | None:
    """The 8-bit float whose bytes a value has."""
    operation = _passed_from(defined, value)
    if operation is None or operation.name != "tt.bitcast":
        return None
    return _float_of(operation.types.partition("->")[0])


def _is_computed(module: IrModule, operation: Operation) -> bool:
    """Whether something computes with a result, not only moves it."""
    values = set(operation.results)
    for following in module.operations[operation.index + 1 :]:
        if not values.intersection(uses(following)):
            continue
        if following.name in _PASSED:
            values |= set(following.results)
        elif following.name.startswith(_COMPUTES):
            return True
    return False


# HIP


def _hip_uses(
    kernel: Kernel, code: CodeObject, sources: Mapping[int, tuple[str, ...]]
) -> Iterator[FormatUse]:
    formats = named_formats(code)
    if len(formats) != 1:
        return
    (dtype,) = formats
    declared = declared_types(code)
    if len(declared) != len(code.parameters):
        declared = [""] * len(code.parameters)
    types = {
        parameter.name: type_ or parameter.type
        for parameter, type_ in zip(code.named_parameters, declared, strict=True)
    }
    for instruction in kernel.program.instructions:
        names = sources.get(instruction.index, ())
        stores = _is_store(instruction)
        if len(names) == 1 and stores is not None:
            type_, memory = types.get(names[0], ""), instruction.memory
            is_byte = memory is not None and memory.bytes == 1
            if _has_bytes(type_) if type_ else is_byte:
                yield FormatUse(names[0], dtype, stores, instruction.location)


def _is_store(instruction: Instruction) -> bool | None:
    """Whether an access stores or loads; None for another instruction."""
    memory = instruction.memory
    if memory is None or memory.kind not in (MemoryKind.LOAD, MemoryKind.STORE):
        return None
    return memory.kind is MemoryKind.STORE


def _has_bytes(type_: str) -> bool:
    """Whether a pointer is one to bytes or to 8-bit floats."""
    name = type_.replace("*", "").replace("const ", "").strip()
    if "*" not in type_:
        return False
    is_float = is_dtype(name) and lookup(name).variant is not None
    return is_float or name in _BYTES or name.endswith(("uint8_t", "int8_t", "storage_t"))


__all__ = ["FormatUse", "format_uses"]
