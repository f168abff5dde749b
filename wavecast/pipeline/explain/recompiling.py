"""A launch with its kernel compiled again: other text, options or arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wavecast.arch import Device
from wavecast.compile.codeobject import Argument, CodeObject, Launch
from wavecast.errors import CompileError
from wavecast.rules.fix import Recompiled


def recompile(launch: Launch, change: Recompiled, device: Device) -> Launch:
    """The launch with a change. Raises CompileError where it does not compile, MissingTool without
    the compiler, UsageError for a target that Triton does not compile for."""
    code = _code(launch.code, change, device)
    x, y, z = launch.block
    block = (code.workgroup_size, 1, 1) if launch.code.origin == "triton" else (x, y, z)
    arguments = tuple(_change_argument(argument, change) for argument in launch.arguments)
    return replace(
        launch,
        code=replace(code, workgroup_size=block[0] * block[1] * block[2]),
        grid=change.grid or launch.grid,
        block=block,
        arguments=arguments,
        kernarg=_segment(launch, change.scalars),
        dynamic_lds=code.dynamic_lds if launch.code.origin == "triton" else launch.dynamic_lds,
        scalars={**launch.scalars, **change.scalars},
    )


def _code(code: CodeObject, change: Recompiled, device: Device) -> CodeObject:
    if code.origin == "triton":
        from wavecast.runtimes.triton.recompile import recompile_kernel as again

        return again(code, change.text, change.options, device)
    flags = str(code.options.get("flags", "")).split()
    if code.origin == "cuda":
        from wavecast.compile import cuda

        copy = Path(code.source).with_suffix(".changed.cu")
        codes = cuda.compile(change.text, code.target, flags, path=copy)
    else:
        from wavecast.compile import hip

        codes = hip.compile(change.text, code.target, flags, name=code.source)
    for candidate in codes:
        if candidate.kernel == code.kernel:
            return candidate
    raise CompileError(f"{code.kernel}: not in the changed source")


def _change_argument(argument: Argument, change: Recompiled) -> Argument:
    if argument.name in change.scalars:
        return replace(argument, value=change.scalars[argument.name])
    strides = change.strides.get(argument.name)
    if strides is None:
        return argument
    elements = _span(argument.shape, argument.strides)
    width = argument.bytes // elements if elements else 0
    return replace(argument, strides=strides, bytes=width * _span(argument.shape, strides))


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def with_scalars(launch: Launch, scalars: Mapping[str, int]) -> Launch:
    """The launch with other integer arguments in its argument segment."""
    return replace(launch, kernarg=_segment(launch, scalars)) if scalars else launch


def _segment(launch: Launch, scalars: Mapping[str, int]) -> bytes:
    """The argument segment with other integers."""
    data = bytearray(launch.kernarg)
    for parameter in launch.code.named_parameters:
        if parameter.name in scalars and parameter.offset is not None and data:
            size = parameter.size or 0
            value = scalars[parameter.name] & (1 << 8 * size) - 1
            data[parameter.offset : parameter.offset + size] = value.to_bytes(size, "little")
    return bytes(data)


__all__ = ["recompile", "with_scalars"]
