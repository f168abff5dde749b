"""What a HIP program learns of its GPU: fields of `hipDeviceProp_t`, from the facts of a device."""

from __future__ import annotations

from typing import TypeVar

from wavecast.arch import Device
from wavecast.emulate.clusters import MAXIMUM_THREADS
from wavecast.errors import MissingFact
from wavecast.runtimes.devices import facts_of

Number = TypeVar("Number", int, float)

_COUNTER_KHZ = 100_000
"""The rate of `wall_clock64()`. Source: ROCm documentation, "HIP C++ language extensions",
timer functions: 100 MHz on MI200 and MI300."""
_HINT = "a program may ask for it: give it with --arch-file"
_BLOCKS_PER_UNIT = 32
"""Workgroups of a compute unit at once. Source: AMD CDNA 3 ISA, "workgroups"; HIP reports 2 less
waves for RDNA."""


def properties(device: Device, devices: int) -> dict[str, int | str]:
    """Names of fields -> values. Raises MissingFact."""
    facts = facts_of(device)

    def require(what: str, value: Number | None) -> Number:
        if value is None:
            raise MissingFact(f"{device.name}: {what} is not known", hint=_HINT)
        return value

    registers = facts.simds * facts.simd_registers * facts.lanes
    return {
        "devices": devices,
        "name": device.name,
        "gcnArchName": device.target,
        "major": facts.capability[0],
        "minor": facts.capability[1],
        "totalGlobalMem": require("the size of its memory", facts.memory_bytes),
        "sharedMemPerBlock": facts.shared_bytes,
        "regsPerBlock": registers,
        "regsPerMultiprocessor": registers,
        "warpSize": facts.lanes,
        "maxThreadsPerBlock": MAXIMUM_THREADS,
        "maxThreadsPerMultiProcessor": facts.resident_threads,
        "maxBlocksPerMultiProcessor": _BLOCKS_PER_UNIT,
        "multiProcessorCount": facts.multiprocessors,
        "clockRate": round(require("its clock", facts.clock_hz) / 1e3),
        "memoryClockRate": round(require("the clock of its memory", facts.memory_clock_hz) / 1e3),
        "memoryBusWidth": require("the width of its memory", facts.memory_bits),
        "l2CacheSize": require("the size of its L2", facts.l2_bytes),
        "memPitch": 2**31 - 1,
        "totalConstMem": 2**31 - 1,
        "textureAlignment": 256,
        "texturePitchAlignment": 256,
        "clockInstructionRate": _COUNTER_KHZ,
    }


__all__ = ["properties"]
