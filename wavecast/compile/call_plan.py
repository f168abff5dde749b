"""`CallPlan`: one call of an operator as steps that a program can repeat without Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wavecast.compile.codeobject import CodeObject, Launch


class BufferRole(StrEnum):
    """What a call does with a buffer. `INPUT` is read, `UPDATED` is an argument that is also
    written, `OUTPUT` is a result, `WORKSPACE` is memory that the call needs meanwhile, and
    `CONSTANT` is a table whose content does not depend on the arguments."""

    INPUT = "input"
    UPDATED = "updated"
    OUTPUT = "output"
    WORKSPACE = "workspace"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a call. `strides` are in elements; `bytes` is the extent from its first element,
    `content` that of a `CONSTANT`."""

    name: str
    role: BufferRole
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """A pointer at `offset` of the kernel argument segment: `address` bytes into a buffer, by its
    position in `CallPlan.buffers`."""

    offset: int
    buffer: int
    address: int = 0


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A launch, and the pointers among its arguments. All other bytes of `launch.kernarg` hold."""

    launch: Launch
    pointers: tuple[PointerArgument, ...]

    @property
    def segment(self) -> bytes:
        """The kernel argument segment with zeros instead of pointers."""
        data = bytearray(self.launch.kernarg)
        for pointer in self.pointers:
            data[pointer.offset : pointer.offset + 8] = bytes(8)
        return bytes(data)


@dataclass(frozen=True, slots=True)
class FillStep:
    """Fills `count` elements of `len(pattern)` bytes (1, 2 or 4) from byte `address` of a buffer
    with `pattern`."""

    buffer: int
    address: int
    count: int
    pattern: bytes


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One call of an operator on one device: its buffers, and its steps in order."""

    operator: str
    sizes: Mapping[str, object]
    device: str
    target: str
    buffers: tuple[Buffer, ...]
    steps: tuple[KernelStep | FillStep, ...]

    @property
    def kernels(self) -> tuple[KernelStep, ...]:
        """The launches in order."""
        return tuple(step for step in self.steps if isinstance(step, KernelStep))

    @property
    def codes(self) -> tuple[CodeObject, ...]:
        """The code objects of all launches, each once."""
        return tuple(
            {kernel.launch.code.digest: kernel.launch.code for kernel in self.kernels}.values()
        )

    @property
    def interface(self) -> tuple[Buffer, ...]:
        """The buffers that the caller passes."""
        roles = (BufferRole.INPUT, BufferRole.UPDATED, BufferRole.OUTPUT)
        return tuple(buffer for buffer in self.buffers if buffer.role in roles)


__all__ = ["Buffer", "BufferRole", "CallPlan", "FillStep", "KernelStep", "PointerArgument"]
