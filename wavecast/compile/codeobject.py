"""What every compiler driver returns: one kernel of machine code with all it came from."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from wavecast.launch.callers import LaunchCaller

Origin = Literal["triton", "hip", "cuda", "assembly", "elf"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as the source declares it, in order.

    `type` is the compiler's type name (`*bf16`, `i32`, `fp32`, `constexpr`, `tensordesc<…>`), ""
    when the source keeps none. `offset` and `size` (bytes) say where it lies in the kernel
    argument segment; None for constants folded into the code. `attributes` are the
    specialisations the launch gave (`divisibility=16`, `pointer_range=32`).
    """

    name: str
    type: str
    offset: int | None
    size: int | None
    constant: object = None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeObject:
    """One compiled kernel.

    `kernel` is the symbol. `target` is `gfx942` or `sm_90`. `stages` maps a stage name to its text
    or bytes: `ttir`, `ttgir`, `llir`, `frame` (checked HIP code), `amdgcn`, `hsaco`, `ptx`,
    `cubin`, `sass`. `options` are the compiler options (num_warps, num_stages, waves_per_eu …).
    `workgroup_size` is the number of threads of a workgroup, 0 when only the launch knows.
    `dynamic_lds` is the shared memory the launch must add, in bytes (Triton's `metadata.shared`).
    `source` is the file the kernel was written in, `source_line` its first line. `digest` names the
    content: equal digest, equal machine code and metadata. `alias` is the symbol of the same kernel
    in code for another target, where it differs. `moved_files` maps files that the debug
    information names to where the same source is now.
    """

    kernel: str
    target: str
    origin: Origin
    stages: Mapping[str, str | bytes] = field(repr=False)
    parameters: tuple[Parameter, ...]
    options: Mapping[str, object]
    workgroup_size: int
    dynamic_lds: int
    source: str
    source_line: int
    source_text: str = field(repr=False)
    compiler: str
    digest: str
    alias: str = ""
    moved_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def common_symbol(self) -> str:
        """What names the same kernel on every target."""
        return self.alias or self.kernel

    @property
    def is_amd(self) -> bool:
        return self.target.startswith("gfx")

    @property
    def named_parameters(self) -> tuple[Parameter, ...]:
        """The parameters, those without a name as `argument 2`: machine code keeps no names, and
        what is known of a launch's arguments is kept by their names."""
        return tuple(
            parameter if parameter.name else replace(parameter, name=f"argument {number}")
            for number, parameter in enumerate(self.parameters, 1)
        )

    @property
    def assembly(self) -> str:
        """AMDGCN text for AMD targets, SASS for NVIDIA ones; "" when there is none."""
        text = self.stages.get("amdgcn" if self.is_amd else "sass", "")
        assert isinstance(text, str)
        return text


@dataclass(frozen=True, slots=True)
class Argument:
    """One runtime argument of a launch.

    Tensors have `dtype` (torch name without the prefix: `bfloat16`), `shape`, `strides` in
    elements, `bytes` spanned in their storage, and `storage`, equal for arguments that share
    memory. Scalars have `value`. `content` has the bytes of integer tensors that may be indices,
    where the capture kept them. `kind` is `tensor`, `pointer`, `scalar`, `constant`, or
    `descriptor` (a host tensor descriptor over the tensor described). A pointer in a structure that
    is passed by value has `slot`, its offset in the argument segment.
    """

    name: str
    kind: Literal["tensor", "pointer", "scalar", "constant", "descriptor"]
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    bytes: int = 0
    storage: int = 0
    value: object = None
    content: bytes = field(default=b"", repr=False, compare=False)
    slot: int | None = None


def member_name(structure: str, offset: int) -> str:
    """The name of a pointer in a structure that is passed by value; `offset` in bytes."""
    return f"{structure} (byte {offset})"


def integers_of(data: bytes) -> tuple[int, ...] | bytes:
    """The bytes of a structure that is passed by value, as reports show them: integers of 32 bits
    where its size allows."""
    return data if len(data) % 4 else struct.unpack(f"<{len(data) // 4}i", data)


@dataclass(frozen=True, slots=True, repr=False)
class Launch:
    """A kernel launch: code, grid in workgroups, block in threads, arguments in order.

    A grid or block of zeros is one that nobody stated. `kernarg` holds the kernel argument
    segment as the launch would pass it (pointers are host addresses), or b"" when the arguments
    are not known. `count` is how often the same launch was seen. `configuration` names an
    autotuner configuration, "" without one.
    """

    code: CodeObject
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...] = ()
    kernarg: bytes = b""
    dynamic_lds: int = 0
    count: int = 1
    configuration: str = ""
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    """Runtime scalar arguments by name, constants included where they are numbers."""
    model_lines: tuple[str, ...] = ()
    """Lines (`path:line`) of a model that `torch.compile` made the launch of; () for others."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Workgroups of a cluster along each axis of the grid."""
    members: tuple[Argument, ...] = ()
    """Tensors that structures passed by value point to."""
    caller: LaunchCaller | None = None
    """Who asks for the launch, None where that is not known."""

    @property
    def tensors(self) -> tuple[Argument, ...]:
        """Arguments, and members of them, whose memory is known."""
        return tuple(item for item in (*self.arguments, *self.members) if item.bytes > 0)

    def __repr__(self) -> str:
        """`<Launch matmul_kernel for gfx942: grid (64, 1, 1), block (256, 1, 1)>`."""
        times = f", {self.count} times" if self.count > 1 else ""
        return (
            f"<Launch {self.code.kernel} for {self.code.target}: grid {self.grid}, "
            f"block {self.block}{times}>"
        )

    def workgroup(self, number: int) -> tuple[int, int, int]:
        """The place (x, y, z) of a workgroup by its number, x fastest."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // x // y
