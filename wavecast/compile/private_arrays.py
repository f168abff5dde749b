"""The private arrays that the scratch accesses of a HIP kernel are made for.

LLVM IR has the arrays (`alloca`) and the accesses of each, LLVM's remarks on the stack frame
(`stack-frame-layout`, the `frame` stage of a HIP kernel) where they lie in the scratch of a lane.
Both list them in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from wavecast.compile.array_accesses import UNLIMITED, ArrayAccesses, ArrayBytes
from wavecast.compile.irtypes import TypeTable
from wavecast.compile.llvm_ir import IrFunction, module_lines
from wavecast.errors import ParseError
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.opcode import OperandKind

SPACE: Final = 5
"""The address space of scratch."""
OPTIONS: Final = (
    *("-mllvm", "-disable-promote-alloca-to-vector"),
    *("-mllvm", "-disable-promote-alloca-to-lds"),
    *("-mllvm", "-no-stack-coloring"),
    *("-mllvm", "-amdgpu-hard-clause-length-limit=1"),
    "-Rpass-analysis=stack-frame-layout",
)
"""Options of clang that keep every private array that is indexed in scratch, in bytes that no other
array shares, and print the frame."""

_REMARK = "[-Rpass-analysis=stack-frame-layout]"
_FUNCTION = re.compile(r"^Function: (\S+)$")
_SLOT = re.compile(r"^Offset: \[SP\+(\d+)\], Type: (\w+), Align: \d+, Size: (\d+)")
_ALLOCA = re.compile(r"^alloca (?P<type>.+?), (?:align \d+, )?addrspace\(5\)")
_SHORT_FRAME = 4096
"""Bytes of frames whose slots every target reaches with the offset in an instruction."""


def frame_remarks(log: str) -> str:
    """The lines of a compiler's output that describe stack frames."""
    lines = (line.partition(_REMARK)[0].rstrip() for line in log.split("\n"))
    return "\n".join(line for line in lines if _FUNCTION.match(line) or _SLOT.match(line))


class PrivateAccesses:
    """Which bytes of a lane's scratch the accesses of a kernel may touch.

    `text` is the module as LLVM prints it (`lds_arrays.PASS`), `frame` what `frame_remarks` gives.
    A kernel whose arrays cannot be told apart in its frame has no bounds.
    """

    def __init__(self, text: str, frame: str, kernel: str) -> None:
        self._slots = _slots(frame, kernel)
        self._accesses: ArrayAccesses | None = None
        if not self._slots:
            return
        lines = module_lines(text)
        function = IrFunction(lines, kernel)
        self._arrays = _arrays(function, TypeTable(lines), self._slots)
        if self._arrays:
            self._accesses = ArrayAccesses(function, SPACE, self._arrays.get)

    def of(self, instruction: Instruction) -> tuple[ArrayBytes, ...]:
        """The bytes that an access of scratch may touch, sorted; none where it is not known.

        Spilled registers have no array and the location of what they are spilled for. They are
        reached by constant addresses, so those may touch the rest of the frame too, without other
        arrays.
        """
        if self._accesses is None:
            return ()
        arrays = self._accesses.of(instruction)
        if not arrays or _is_indexed(instruction, self._slots[-1].end <= _SHORT_FRAME):
            return arrays
        return tuple(sorted({*arrays, *self._others()}))

    def _others(self) -> Iterator[ArrayBytes]:
        """The bytes of no array."""
        arrays = sorted(self._arrays.values())
        edges = [ArrayBytes(0, 0), *arrays, ArrayBytes(UNLIMITED, UNLIMITED)]
        for array, following in pairwise(edges):
            if array.end < following.first:
                yield ArrayBytes(array.end, following.first)


def _is_indexed(instruction: Instruction, short: bool) -> bool:
    """Whether a register has a part of the address. In a `short` frame a scalar register has no
    constant."""
    kinds: dict[OperandKind, tuple[OperandClass, ...]]
    kinds = {OperandKind.ADDRESS: (OperandClass.VGPR,)}
    if short:
        kinds[OperandKind.SCALAR_ADDRESS] = (OperandClass.SGPR, OperandClass.SPECIAL)
    decoded = instruction.decoded
    return any(
        operand.bits and operand.kind in kinds.get(role.kind, ())
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
    )


def _slots(frame: str, kernel: str) -> list[ArrayBytes]:
    """The slots of a kernel's frame that are not spilled registers, by their offset."""
    slots: list[ArrayBytes] = []
    mine = False
    for line in frame.split("\n"):
        function, slot = _FUNCTION.match(line), _SLOT.match(line)
        if function is not None:
            mine = function[1] == kernel
        elif mine and slot is not None and slot[2] == "Variable":
            slots.append(ArrayBytes(int(slot[1]), int(slot[1]) + int(slot[3])))
    return sorted(slots)


def _arrays(
    function: IrFunction, types: TypeTable, slots: list[ArrayBytes]
) -> Mapping[str, ArrayBytes]:
    """Name -> slot of the arrays: the only run of slots that have their sizes; none without one."""
    names, sizes = [], []
    for name, what in function.definitions.items():
        alloca = _ALLOCA.match(what)
        if alloca is None:
            continue
        try:
            sizes.append(types.layout(alloca["type"])[0])
        except ParseError:
            return {}
        names.append(name)
    slot_sizes = [slot.end - slot.first for slot in slots]
    starts = [
        start for start in range(len(slot_sizes)) if slot_sizes[start : start + len(sizes)] == sizes
    ]
    if not sizes or len(starts) != 1:
        return {}
    return dict(zip(names, slots[starts[0] :], strict=False))


__all__ = ["OPTIONS", "PrivateAccesses", "frame_remarks"]
