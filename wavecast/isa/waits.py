"""What a wait instruction waits for: counters and the value each must fall to.

Part of the opcode table: the fields of each generation's wait immediates
(LLVM `Utils/AMDGPUBaseInfo.cpp`, getVmcntBitShiftLo and its neighbours).
"""

from __future__ import annotations

import re

from wavecast.isa.counters import LIMITS, generation_of
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.opcode import Opcode
from wavecast.isa.targets import TARGET_SETS, isa_target

_SYMBOLIC = re.compile(r"(\w+?)(_sat)?\((0x[0-9a-fA-F]+|\d+)\)")

_SPLIT_WAITS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "s_waitcnt_vscnt": (("vscnt", 0, 6),),
    "s_waitcnt_vmcnt": (("vmcnt", 0, 6),),
    "s_waitcnt_expcnt": (("expcnt", 0, 3),),
    "s_waitcnt_lgkmcnt": (("lgkmcnt", 0, 6),),
    "s_wait_loadcnt": (("loadcnt", 0, 6),),
    "s_wait_storecnt": (("storecnt", 0, 6),),
    "s_wait_samplecnt": (("samplecnt", 0, 6),),
    "s_wait_bvhcnt": (("bvhcnt", 0, 3),),
    "s_wait_expcnt": (("expcnt", 0, 3),),
    "s_wait_dscnt": (("dscnt", 0, 6),),
    "s_wait_kmcnt": (("kmcnt", 0, 5),),
    "s_wait_asynccnt": (("asynccnt", 0, 6),),
    "s_wait_tensorcnt": (("tensorcnt", 0, 6),),
    "s_wait_xcnt": (("xcnt", 0, 6),),
    "s_wait_loadcnt_dscnt": (("loadcnt", 8, 6), ("dscnt", 0, 6)),
    "s_wait_storecnt_dscnt": (("storecnt", 8, 6), ("dscnt", 0, 6)),
}
"""Row name -> (counter, first bit, bits) of its immediate."""

_GFX9_FIELDS = {
    "vmcnt": lambda v: (v & 0xF) | (v >> 14 & 3) << 4,
    "expcnt": lambda v: v >> 4 & 7,
    "lgkmcnt": lambda v: v >> 8 & 0xF,
}
_GFX11_FIELDS = {
    "expcnt": lambda v: v & 7,
    "lgkmcnt": lambda v: v >> 4 & 0x3F,
    "vmcnt": lambda v: v >> 10 & 0x3F,
}
_GFX9_FREE = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}
_GFX11_FREE = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 63}


_ARRIVES = frozenset({"s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst"})
_AWAITS = frozenset({"s_barrier", "s_barrier_wait"})


def arrives(opcode: Opcode) -> bool:
    """True where a wave tells the others of its workgroup that it has come."""
    return opcode.name in _ARRIVES


def sets_priority(opcode: Opcode) -> bool:
    """True where a wave sets the priority it issues with."""
    return opcode.name == "s_setprio"


def sleeps(opcode: Opcode) -> bool:
    """True where a wave rests for the clocks its operand says."""
    return opcode.name == "s_sleep"


def awaits(opcode: Opcode) -> bool:
    """True where a wave waits until the others of its workgroup have come."""
    return opcode.name in _AWAITS


def wait_counters(instruction: Instruction, target: str) -> dict[str, int]:
    """Counter name -> value the wait lets stand. Empty for waits that concern no memory counter
    (`s_waitcnt_depctr`, `s_wait_alu`), for a value that a register holds, and for instructions
    that are no wait.

    Counter names are the target's own (`vmcnt`, `lgkmcnt`, `vscnt`; `loadcnt`, `dscnt` …).
    """
    name = instruction.opcode.name
    operands = instruction.operands
    fields = _SPLIT_WAITS.get(name)
    if name == "s_wait_idle":
        return dict.fromkeys(LIMITS[generation_of(target)], 0)
    if fields is not None:
        value = operands[-1].value
        if value is None or operands[0].bits:
            return {}
        return {counter: value >> first & ((1 << bits) - 1) for counter, first, bits in fields}
    if name != "s_waitcnt" or not operands:
        return {}
    if operands[0].kind is OperandClass.CONSTANT and operands[0].value is not None:
        old = isa_target(target) in TARGET_SETS["gfx9"]
        decode, free = (_GFX9_FIELDS, _GFX9_FREE) if old else (_GFX11_FIELDS, _GFX11_FREE)
        value = operands[0].value & 0xFFFF
        found = {counter: field(value) for counter, field in decode.items()}
        return {counter: count for counter, count in found.items() if count != free[counter]}
    return {
        match[1]: int(match[3], 0)
        for match in _SYMBOLIC.finditer(operands[0].text)
        if match[1].endswith("cnt")
    }
