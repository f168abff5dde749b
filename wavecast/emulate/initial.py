"""The registers waves start with, as a template the scheduler copies.

`analyze.values.inputs` knows where the hardware puts what; here its addresses become real ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavecast.analyze.values.inputs import Inputs, work_item_registers
from wavecast.arch import capabilities
from wavecast.compile.codeobject import Launch
from wavecast.emulate import hostmemory
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.lower import state
from wavecast.emulate.lower.buffers import ADD_LANE
from wavecast.emulate.lower.mode import machine_of, word_of
from wavecast.isa.kernel_code import USER_SGPRS
from wavecast.isa.program import KernelDescriptor
from wavecast.isa.registers import SGPR_BASE, SPECIAL_REGISTERS, TTMP_BASE
from wavecast.isa.targets import isa_target

_POINTERS = {"dispatch_ptr": 0, "kernarg_segment_ptr": 64}
"""User registers that point into the memory `segment` makes: name -> byte offset."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Template words per wave, where workgroup ids go (-1: nowhere), and how many waves."""

    template: np.ndarray
    waves: int
    id_words: tuple[int, int, int, int]
    """Words of the state: x, y and z of the workgroup's number, and its number in the cluster."""
    packed: int


HOST_CALLS = "hidden_hostcall_buffer"
"""The argument with the buffer through which kernels call the host. Source: LLVM, "AMDGPUUsage",
Code Object V5 Metadata."""
PACKET_BYTES = 64
"""Bytes of the dispatch packet, which lies before the argument segment."""


def segment(native: NativeKernel, launch: Launch, host_calls: int = 0) -> np.ndarray:
    """The dispatch packet, then the argument segment with its hidden arguments filled in;
    `host_calls` is the address of the buffer through which kernels call the host.

    The packet holds workgroup sizes (16 bits) from byte 4 and grid sizes in threads from byte 12.
    """
    descriptor = native.descriptor
    hidden = [a for a in descriptor.arguments if a.kind.startswith("hidden_")]
    ends = (argument.offset + argument.size for argument in hidden)
    size = max(descriptor.kernarg_bytes, len(launch.kernarg), *ends)
    total = PACKET_BYTES + -(-size // 64) * 64 + 64
    memory = hostmemory.zeros(total, np.uint8, align=hostmemory.PAGE)
    packet = memory[:PACKET_BYTES]
    packet[4:10].view(np.uint16)[:] = launch.block
    packet[12:24].view(np.uint32)[:] = [
        groups * threads for groups, threads in zip(launch.grid, launch.block, strict=True)
    ]
    memory[PACKET_BYTES : PACKET_BYTES + len(launch.kernarg)] = np.frombuffer(
        launch.kernarg, np.uint8
    )
    if not hidden:
        return memory
    inputs = Inputs(launch.code, descriptor, launch)
    for argument in hidden:
        is_buffer = argument.kind == HOST_CALLS
        value = host_calls if is_buffer else inputs.hidden_value(argument.kind)
        if value:
            first, size = PACKET_BYTES + argument.offset, min(argument.size, 8)
            data = value.to_bytes(8, "little")[:size]
            memory[first : first + size] = np.frombuffer(data, np.uint8)
    return memory


def prepare(native: NativeKernel, launch: Launch, segment: np.ndarray) -> Setup:
    """The initial registers of every wave of a workgroup."""
    descriptor, layout = native.descriptor, native.layout
    width, height, depth = launch.block
    threads = width * height * depth
    waves = -(-threads // layout.lanes)
    able = capabilities(isa_target(native.target))
    rows = min(work_item_registers(descriptor, native.target), layout.vgpr_rows)
    template = np.zeros((waves, state.VECTORS + rows * layout.lanes), np.uint32)
    mode_word = state.scalar_word(SPECIAL_REGISTERS["mode"][0])
    template[:, mode_word] = word_of(machine_of(native.target, descriptor))
    user_end = _user(descriptor, template, segment)
    if able.workgroup_ids_in_ttmp:
        x, rest, within = (state.scalar_word(TTMP_BASE + number) for number in (9, 7, 6))
        ids = x, rest, -1, within
        packed = 1
        for wave in range(waves):
            template[wave, state.scalar_word(TTMP_BASE + 8)] = wave << 25
    else:
        ids, packed = (*_system(descriptor, user_end), -1), 0
    exec_word = state.scalar_word(SPECIAL_REGISTERS["exec"][0])
    flat = np.arange(layout.lanes, dtype=np.uint32)
    for wave in range(waves):
        first = wave * layout.lanes
        active = min(layout.lanes, threads - first)
        mask = (1 << active) - 1
        template[wave, exec_word] = mask & 0xFFFFFFFF
        template[wave, exec_word + 1] = mask >> 32
        number = flat + np.uint32(first)
        x, rest = number % np.uint32(width), number // np.uint32(width)
        y, z = rest % np.uint32(height), rest // np.uint32(height)
        if able.packed_work_items:
            template[wave, state.VECTORS :] = x | y << np.uint32(10) | z << np.uint32(20)
        else:
            template[wave, state.VECTORS :] = np.concatenate((x, y, z)[:rows])
    return Setup(template, waves, ids, packed)


def _user(descriptor: KernelDescriptor, template: np.ndarray, segment: np.ndarray) -> int:
    """Write the user SGPRs; returns the first one after them."""
    directives = descriptor.directives
    position = SGPR_BASE
    for name, count in USER_SGPRS:
        if not directives.get(f"user_sgpr_{name}"):
            continue
        if name in _POINTERS:
            address = segment.ctypes.data + _POINTERS[name]
            template[:, state.scalar_word(position)] = address & 0xFFFFFFFF
            template[:, state.scalar_word(position) + 1] = address >> 32
        elif name == "private_segment_buffer":
            # only its kind matters: accesses through it go to the wave's own scratch
            template[:, state.scalar_word(position) + 3] = ADD_LANE
        position += count
    first = directives.get("user_sgpr_kernarg_preload_offset", 0)
    length = directives.get("user_sgpr_kernarg_preload_length", 0)
    data = segment[PACKET_BYTES:].view(np.uint32)
    for index in range(length):
        if first + index < len(data):
            template[:, state.scalar_word(position + index)] = data[first + index]
    return max(position + length, SGPR_BASE + directives.get("user_sgpr_count", 0))


def _system(descriptor: KernelDescriptor, position: int) -> tuple[int, int, int]:
    """The words of the workgroup ids that the descriptor asks for."""
    words = []
    for axis in "xyz":
        if descriptor.directives.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x")):
            words.append(state.scalar_word(position))
            position += 1
        else:
            words.append(-1)
    x, y, z = words
    return x, y, z
