"""What an address that a launch must not touch may have been."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

HOSTCALL_BUFFER: Final = 1 << 60
"""The address given as `hidden_hostcall_buffer`: no memory lies there, so that a kernel which
calls the host (LLVM, "AMDGPUUsage", Code Object V5 Metadata) is told from one that errs."""
_HEADER: Final = 4096
"""Bytes from the buffer's start that count as it."""
_NULL_PAGE: Final = 4096
_FAR: Final = 1 << 40
"""Bytes; a distance beyond says nothing about what was meant."""


def calls_host(address: int) -> bool:
    """Whether the address lies in the buffer through which kernels call the host."""
    return HOSTCALL_BUFFER <= address < HOSTCALL_BUFFER + _HEADER


def describe(address: int, ranges: Iterable[tuple[int, int]]) -> str:
    """`unknown address 0x…, 4 bytes after the end of 0x…..0x…`: where it lies relative to the
    nearest of the (first, end) addresses a launch may touch."""
    if address < _NULL_PAGE:
        return f"unknown address {address:#x}: a null pointer"
    best = None
    for first, end in ranges:
        if first == end:
            continue
        if address < first:
            distance, side = first - address, "before"
        else:
            distance, side = address - end, "after the end of"
        if best is None or distance < best[0]:
            best = distance, side, first, end
    unknown = f"unknown address {address:#x}"
    if best is None:
        return f"{unknown}, and the launch has no memory"
    distance, side, first, end = best
    if distance < 0:
        return f"{unknown}, which reaches beyond the end of {first:#x}..{end:#x}"
    if distance > _FAR:
        return f"{unknown}, far from all memory of the launch"
    return f"{unknown}, {distance:,} bytes {side} {first:#x}..{end:#x}"
