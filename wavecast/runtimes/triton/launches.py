"""The arguments of one launch, as a `Launch`."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from wavecast.compile.codeobject import Argument, CodeObject, Launch
from wavecast.compile.triton import Path, Slot, leaves, plain
from wavecast.dtypes import Spelling, is_dtype, lookup
from wavecast.errors import LaunchError

Grid = tuple[int, int, int]

INDEX_BYTES: Final = 4 << 20
"""Largest integer tensor whose values a launch carries."""
_INDICES: Final = frozenset({"int16", "int32", "int64", "uint16", "uint32", "uint64"})


def in_workgroups(code: CodeObject, grid: Grid) -> tuple[Grid, Grid]:
    """The grid of programs in workgroups, and the cluster: a program of `num_ctas` is a cluster of
    as many along x. Source: Triton's launchers (`driver.c`)."""
    size = code.options.get("num_ctas")
    count = size if isinstance(size, int) else 1
    return (grid[0] * count, grid[1], grid[2]), (count, 1, 1)


def build_launch(
    code: CodeObject,
    layout: Sequence[Slot],
    segment: int,
    signature: Mapping[Any, Any],
    grid: Grid,
    values: Sequence[Any],
    configuration: str = "",
) -> Launch:
    """The launch of `code` with `values`, one per parameter of the Python function.

    `layout` and `segment` describe the kernel argument segment (bytes). Raises LaunchError when
    the values do not fit the signature.
    """
    if len(values) != len(signature):
        raise LaunchError(
            f"{code.kernel} takes {len(signature)} arguments, the launch gave {len(values)}"
        )
    names = list(signature)
    arguments = []
    for path, kind in leaves(signature):
        name = ".".join([str(names[path[0]]), *map(str, path[1:])])
        value = value_at(values, path)
        argument = _argument(name, kind, value)
        if not code.is_amd and argument.kind == "tensor":
            argument = replace(argument, content=_indices(argument, value))
        arguments.append(argument)
    workgroups, cluster = in_workgroups(code, grid)
    return Launch(
        code=code,
        grid=workgroups,
        block=(code.workgroup_size, 1, 1),
        arguments=tuple(arguments),
        kernarg=pack(code.kernel, layout, segment, values),
        dynamic_lds=code.dynamic_lds,
        configuration=configuration,
        scalars=dict(_numbers(arguments)),
        cluster=cluster,
    )


def value_at(values: Sequence[Any], path: Path) -> Any:
    """The value a path of the signature names."""
    value = values[path[0]]
    for index in path[1:]:
        value = value[index]
    return value


def pack(kernel: str, layout: Sequence[Slot], segment: int, values: Sequence[Any]) -> bytes:
    """The kernel argument segment: host addresses for pointers, zeros where only a GPU's driver
    knows the bytes (scratch pointers, hardware tensor descriptors). Raises LaunchError for a value
    that its parameter cannot hold."""
    data = bytearray(segment)
    for slot in layout:
        if slot.part == "descriptor":
            continue
        value = _part(value_at(values, slot.path), slot.part)
        try:
            packed = _pack_argument(slot.type, value)
        except (struct.error, TypeError, ValueError, OverflowError) as error:
            raise LaunchError(
                f"{kernel}: argument {slot.path[0]} ({slot.type}) cannot hold {value!r}"
            ) from error
        data[slot.offset : slot.offset + len(packed)] = packed
    return bytes(data)


def identity(launch: Launch) -> tuple:
    """What makes two launches the same: code, constants, grid, cluster, shapes, types, scalars.

    Addresses do not count; which arguments share memory does.
    """
    storages: dict[int, int] = {}
    arguments = tuple(
        (
            item.kind,
            item.dtype,
            item.shape,
            item.strides,
            storages.setdefault(item.storage, len(storages)) if item.storage else -1,
            repr(item.value) if item.kind != "pointer" else "",
        )
        for item in launch.arguments
    )
    return launch.code.digest, launch.grid, launch.cluster, launch.configuration, arguments


def _argument(name: str, kind: str, value: Any) -> Argument:
    if kind == "constexpr":
        return Argument(name, "constant", value=plain(value))
    if hasattr(value, "block_shape"):
        tensor = _tensor(name, value.base, tuple(value.shape), tuple(value.strides))
        return Argument(
            name,
            "descriptor",
            dtype=tensor.dtype,
            shape=tensor.shape,
            strides=tensor.strides,
            bytes=tensor.bytes,
            storage=tensor.storage,
            value=tuple(int(size) for size in value.block_shape),
        )
    if hasattr(value, "data_ptr"):
        if not hasattr(value, "stride"):
            return Argument(name, "pointer", dtype=_dtype(value), value=int(value.data_ptr()))
        return _tensor(name, value, tuple(value.shape), tuple(value.stride()))
    if kind.startswith("*"):
        return Argument(name, "pointer", dtype=kind[1:], value=int(value or 0))
    return Argument(name, "scalar", dtype=kind, value=plain(value))


def _tensor(name: str, tensor: Any, shape: tuple, strides: tuple) -> Argument:
    shape = tuple(int(size) for size in shape)
    strides = tuple(int(step) for step in strides)
    base = getattr(tensor, "base", tensor)  # triton.reinterpret wraps the tensor
    width = int(base.element_size()) if hasattr(base, "element_size") else 1
    reach = sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) + 1
    storage = base.untyped_storage().data_ptr() if hasattr(base, "untyped_storage") else 0
    return Argument(
        name,
        "tensor",
        dtype=_dtype(tensor),
        shape=shape,
        strides=strides,
        bytes=0 if 0 in shape else reach * width,
        storage=int(storage),
    )


def _indices(argument: Argument, tensor: Any) -> bytes:
    """The bytes of an integer tensor of the host, which may decide addresses and branches of SASS;
    AMD launches are sampled in place."""
    if argument.dtype not in _INDICES or not 0 < argument.bytes <= INDEX_BYTES:
        return b""
    base = getattr(tensor, "base", tensor)
    if getattr(getattr(base, "device", None), "type", "cpu") == "meta":
        return b""
    return ctypes.string_at(int(base.data_ptr()), argument.bytes)


def _dtype(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return lookup(name, Spelling.TRITON).name if is_dtype(name, Spelling.TRITON) else name


def _part(value: Any, part: str) -> Any:
    name, _, axis = part.partition(".")
    match name:
        case "":
            return value
        case "base":
            return value.base
        case "shape":
            return value.shape[int(axis)]
        case "stride":
            return value.strides[int(axis)]
        case "nan_padding":
            return getattr(value, "padding", "zero") == "nan"
        case "round_to_tf32":
            return bool(getattr(value, "round_f32_to_tf32", False))
    raise AssertionError(part)


def _pack_argument(kind: str, value: Any) -> bytes:
    if kind.startswith("*"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else int(value or 0)
        return struct.pack("<Q", address)
    if kind == "bf16":
        return struct.pack("<f", float(value))[2:]
    return struct.pack("<" + lookup(kind, Spelling.TRITON).struct, value)


def _numbers(arguments: Sequence[Argument]) -> Iterator[tuple[str, int | float]]:
    for item in arguments:
        if item.kind in ("scalar", "constant") and isinstance(item.value, (int, float)):
            yield item.name, int(item.value) if isinstance(item.value, bool) else item.value
