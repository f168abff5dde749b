"""What a wave's registers and its kernel argument segment hold when it starts.

Source: LLVM "User Guide for AMDGPU Backend", sections "Initial Kernel Execution State",
"Preloaded Kernel Arguments" and "Code Object V5 Metadata" (hidden arguments).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wavecast.analyze.values.kinds import Value, is_known
from wavecast.arch.capability import capabilities
from wavecast.compile.codeobject import CodeObject, Launch, Parameter
from wavecast.isa.kernel_code import USER_SGPRS
from wavecast.isa.program import KernelArgument, KernelDescriptor
from wavecast.isa.registers import SGPR_BASE, SPECIAL_REGISTERS, TTMP_BASE, VGPR_BASE
from wavecast.isa.semantics.integers import Unknown
from wavecast.isa.targets import isa_target

KERNARG_ADDRESS = 0x6B61_0000_0000
"""Where this model puts the kernel argument segment; any address no allocation has would do."""

DISPATCH_ADDRESS = 0x6B62_0000_0000
"""Where it puts the dispatch packet."""


@dataclass(frozen=True, slots=True)
class UserRegisters:
    """Where the user SGPRs of a kernel lie, by bit position.

    `registers` maps a name of the descriptor (`kernarg_segment_ptr`) to its first register and
    count; `preloaded` lists the dwords of the argument segment that are loaded, and where. `end` is
    the first register after them.
    """

    registers: dict[str, tuple[int, int]]
    preloaded: tuple[tuple[int, int], ...]
    end: int


def user_registers(descriptor: KernelDescriptor) -> UserRegisters:
    """The user SGPRs the descriptor asks for."""
    directives = descriptor.directives
    registers: dict[str, tuple[int, int]] = {}
    position = SGPR_BASE
    for name, count in USER_SGPRS:
        if directives.get(f"user_sgpr_{name}"):
            registers[name] = position, count
            position += count
    first = directives.get("user_sgpr_kernarg_preload_offset", 0)
    length = directives.get("user_sgpr_kernarg_preload_length", 0)
    preloaded = tuple((first + index, position + index) for index in range(length))
    end = max(position + length, SGPR_BASE + directives.get("user_sgpr_count", 0))
    return UserRegisters(registers, preloaded, end)


def work_item_registers(descriptor: KernelDescriptor, target: str) -> int:
    """How many vector registers, from v0 on, have the coordinates of a work-item when a wave
    starts: one where they are packed, else as many as the kernel asks for."""
    if capabilities(isa_target(target)).packed_work_items:
        return 1
    return descriptor.directives.get("system_vgpr_workitem_id", 0) + 1


@dataclass(frozen=True, slots=True)
class WaveId:
    """Which wave is followed: its workgroup (x, y, z; None when no grid is known) and its number
    in it."""

    workgroup: tuple[int, int, int] | None
    wave: int


class Inputs:
    """The initial state of any wave of one launch (or of a kernel without one)."""

    def __init__(
        self, code: CodeObject, descriptor: KernelDescriptor, launch: Launch | None
    ) -> None:
        self.code = code
        self.descriptor = descriptor
        self.launch = launch
        self.lanes = descriptor.wave_size
        threads = code.workgroup_size or descriptor.max_workgroup_size or self.lanes
        block = launch.block if launch is not None else (0, 0, 0)
        self.block = block if block[0] > 0 else (threads, 1, 1)
        self.grid = launch.grid if launch is not None and all(launch.grid) else None
        self._parameters = {
            parameter.offset: parameter
            for parameter in code.named_parameters
            if parameter.offset is not None
        }

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return -(-self.threads // self.lanes)

    def storage(self, names: tuple[str, ...]) -> int | None:
        """The address an argument's storage starts at, None when it is not known or not one."""
        if len(names) != 1 or self.launch is None:
            return None
        (name,) = names
        items = (*self.launch.members, *self.launch.arguments)
        argument = next((a for a in items if a.name == name), None)
        parameter = next((p for p in self.code.named_parameters if p.name == name), None)
        data = self.launch.kernarg
        offset = parameter.offset if parameter is not None else argument.slot if argument else None
        if argument is None or offset is None:
            return None
        pointer = int.from_bytes(data[offset : offset + 8], "little")
        if argument.storage and argument.storage <= pointer:
            return argument.storage
        return pointer or None

    def exec_mask(self, wave: int) -> int:
        """The lanes a wave starts with."""
        return (1 << min(self.lanes, max(self.threads - wave * self.lanes, 1))) - 1

    def load(self, address: int, dwords: int) -> list[Value] | None:
        """What a scalar load finds in the argument segment or the dispatch packet; else None."""
        reader: Callable[[int], Value]
        if KERNARG_ADDRESS <= address < KERNARG_ADDRESS + (1 << 16):
            base, reader = KERNARG_ADDRESS, self.argument_dword
        elif DISPATCH_ADDRESS <= address < DISPATCH_ADDRESS + 64:
            base, reader = DISPATCH_ADDRESS, self._packet_dword
        else:
            return None
        if (address - base) % 4:
            return None
        return [reader(address - base + 4 * index) for index in range(dwords)]

    def argument_dword(self, offset: int) -> Value:
        """Four bytes of the kernel argument segment."""
        hidden = next(
            (a for a in self.descriptor.arguments if a.offset <= offset < a.offset + max(a.size, 1)
             and a.kind.startswith("hidden_")),
            None,
        )  # fmt: skip
        if hidden is not None:
            return self._hidden_dword(offset)
        data = self.launch.kernarg if self.launch is not None else b""
        if offset + 4 <= len(data):
            return int.from_bytes(data[offset : offset + 4], "little")
        parameter = self._parameter_at(offset)
        if parameter is None:
            return Unknown(0, f"the kernel argument at byte {offset} is not known")
        value = self.launch.scalars.get(parameter.name) if self.launch is not None else None
        if isinstance(value, int) and parameter.offset is not None:
            return value >> 8 * (offset - parameter.offset) & 0xFFFFFFFF
        low = parameter.offset == offset
        return Unknown(_known_zeros(parameter) if low else 0, _not_given(parameter))

    def _parameter_at(self, offset: int) -> Parameter | None:
        for start, parameter in self._parameters.items():
            if start is not None and start <= offset < start + (parameter.size or 4):
                return parameter
        return None

    def _hidden_dword(self, offset: int) -> Value:
        """Hidden arguments are read by halves: two 16-bit sizes share a dword."""
        low = self._hidden_at(offset)
        if low is None:
            return Unknown(0, "a hidden kernel argument")
        argument, value = low
        if value is None:
            return Unknown(0, f"the kernel argument {argument.kind}")
        value >>= 8 * (offset - argument.offset)
        if argument.size == 2:
            upper = self._hidden_at(offset + 2)
            if upper is not None and upper[1] is not None:
                value |= upper[1] << 16
        return value & 0xFFFFFFFF

    def _hidden_at(self, offset: int) -> tuple[KernelArgument, int | None] | None:
        for argument in self.descriptor.arguments:
            if argument.offset <= offset < argument.offset + argument.size:
                return argument, self.hidden_value(argument.kind)
        return None

    def hidden_value(self, kind: str) -> int | None:
        """The hidden argument of a kind; None where the launch does not tell."""
        name, _, axis = kind.removeprefix("hidden_").rpartition("_")
        if kind == "hidden_grid_dims":
            return None if self.grid is None else sum(1 for size in self.grid if size > 1) or 1
        if kind == "hidden_dynamic_lds_size":
            return None if self.launch is None else self.launch.dynamic_lds
        if axis not in ("x", "y", "z"):
            return None
        index = "xyz".index(axis)
        if name == "group_size":
            return self.block[index]
        if name in ("remainder", "global_offset"):
            return 0
        return self.grid[index] if name == "block_count" and self.grid is not None else None

    def _packet_dword(self, offset: int) -> Value:
        """The dispatch packet: workgroup sizes (16 bits) from byte 4, grid sizes from byte 12."""
        if offset == 4:
            return self.block[0] | self.block[1] << 16
        if offset == 8:
            return self.block[2]
        axis = (offset - 12) // 4
        if 0 <= axis < 3 and self.grid is not None:
            return self.grid[axis] * self.block[axis]
        return Unknown(0, "the dispatch packet")

    def registers(self, who: WaveId) -> dict[int, Value]:
        """Bit position -> value of every register the hardware sets up."""
        values: dict[int, Value] = {}
        user = user_registers(self.descriptor)
        for name, (first, count) in user.registers.items():
            for index, value in enumerate(self._user_values(name, count)):
                values[first + index] = value
        for dword, position in user.preloaded:
            values[position] = self.argument_dword(4 * dword)
        where = who.workgroup
        ids: list[Value] = [
            Unknown(0, "the launch's grid is not known") if where is None else where[axis]
            for axis in range(3)
        ]
        self._workgroup(ids, who.wave, user.end, values)
        lanes = np.arange(self.lanes, dtype=np.uint32) + np.uint32(who.wave * self.lanes)
        self._work_items(lanes, values)
        low, _ = SPECIAL_REGISTERS["exec"]
        mask = self.exec_mask(who.wave)
        values[low], values[low + 1] = mask & 0xFFFFFFFF, mask >> 32
        return values

    def registers_at(self, workgroups: np.ndarray, threads: np.ndarray) -> dict[int, Value]:
        """The same for threads of several workgroups: what differs is an array, an element for each
        thread. `workgroups` (integers[threads, 3]) are x, y and z, `threads` numbers in them."""
        values = self.registers(WaveId((0, 0, 0), 0))
        ids: list[Value] = [workgroups[:, axis].astype(np.uint32) for axis in range(3)]
        waves = (threads // self.lanes).astype(np.uint32)
        self._workgroup(ids, waves, user_registers(self.descriptor).end, values)
        self._work_items(threads.astype(np.uint32), values)
        low, _ = SPECIAL_REGISTERS["exec"]
        values[low] = 0xFFFFFFFF
        values[low + 1] = 0xFFFFFFFF if self.lanes == 64 else 0
        return values

    def _user_values(self, name: str, count: int) -> list[Value]:
        address = {"kernarg_segment_ptr": KERNARG_ADDRESS, "dispatch_ptr": DISPATCH_ADDRESS}
        if name in address:
            return [address[name] & 0xFFFFFFFF, address[name] >> 32]
        return [Unknown(0, f"the initial {name.replace('_', ' ')}")] * count

    def _workgroup(
        self, ids: list[Value], wave: Value, position: int, values: dict[int, Value]
    ) -> None:
        if capabilities(self.code.target).workgroup_ids_in_ttmp:
            x, y, z = ids  # x in ttmp9, y and z in halves of ttmp7
            both = y | z << 16 if is_known(y) and is_known(z) else y
            values[TTMP_BASE + 9], values[TTMP_BASE + 7] = x, both
            # bits 29:25 number the wave in its workgroup
            values[TTMP_BASE + 8] = wave << 25
            return
        directives = self.descriptor.directives
        for axis, value in zip("xyz", ids, strict=True):
            if directives.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x")):
                values[position] = value
                position += 1

    def _work_items(self, flat: np.ndarray, values: dict[int, Value]) -> None:
        """Work-item ids share v0 (x in bits 9:0, y in 19:10, z in 29:20) or have a register each,
        as many as the kernel asks for."""
        width, height = np.uint32(self.block[0]), np.uint32(self.block[1])
        x, rest = flat % width, flat // width
        y, z = rest % height, rest // height
        if capabilities(self.code.target).packed_work_items:
            values[VGPR_BASE] = x | y << np.uint32(10) | z << np.uint32(20)
            return
        count = work_item_registers(self.descriptor, self.code.target)
        values.update(enumerate((x, y, z)[:count], VGPR_BASE))


def _known_zeros(parameter: Parameter) -> int:
    """Low zero bits the specialisation promises (`divisibility=16`)."""
    for attribute in parameter.attributes:
        name, _, value = attribute.partition("=")
        if name == "divisibility" and value.isdigit() and int(value):
            return (int(value) & -int(value)).bit_length() - 1
    return 0


def _not_given(parameter: Parameter) -> str:
    name = parameter.name
    return f"{name if name.startswith('argument ') else f'argument {name}'} is not known"
