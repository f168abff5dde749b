"""The texts of 16-bit immediates: counters, hardware registers, messages, delays.

Names of hardware registers and messages are facts of `names.csv`.
Source: LLVM AMDGPUInstPrinter.cpp, AMDGPUAsmUtils.cpp.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from wavecast.isa.opcode import Opcode, OpcodeFlag, Role
from wavecast.isa.targets import TARGET_SETS

_DECIMAL_LIMIT: Final = 64
_INDEXED: Final = ("SRC0", "SRC1", "SRC2", "DST")
_DELAYS: Final = (
    "",
    *(f"VALU_DEP_{n}" for n in range(1, 5)),
    *(f"TRANS32_DEP_{n}" for n in range(1, 4)),
    "FMA_ACCUM_CYCLE_1",
    *(f"SALU_CYCLE_{n}" for n in range(1, 4)),
)
_SKIPS: Final = ("", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")
_ALU_COUNTERS: Final = (
    ("depctr_hold_cnt", 7, 1),
    ("depctr_sa_sdst", 0, 1),
    ("depctr_va_vdst", 12, 4),
    ("depctr_va_sdst", 9, 3),
    ("depctr_va_ssrc", 8, 1),
    ("depctr_va_vcc", 1, 1),
    ("depctr_vm_vsrc", 2, 3),
)
"""Name, first bit and width of the counters of `s_wait_alu`, in printed order."""
_ALU_UNUSED: Final = 0x60
_COUNT: Final = re.compile(r"(\w+)\((\w+)\)")
_HARDWARE_REGISTER: Final = re.compile(r"hwreg\((\w+)(?:, (\d+), (\d+))?\)")
_LANES: Final = 32
_SWIZZLE_QUAD, _SWIZZLE_QUAD_MASK = 0x8000, 0xFF00
_SWIZZLE_FFT, _SWIZZLE_ROTATE = 0xE000, 0xC000


class Immediate(NamedTuple):
    """How a number is spelled: the text of a value, and the value of a text, which raises
    ValueError or KeyError for other texts."""

    text: Callable[[int], str]
    value: Callable[[str], int]


@cache
def names(what: str, target: str) -> dict[int, str]:
    """The numbers and names of `hwreg`, `msg`, `gs_op` or `sys_op` on a target."""
    text = (resources.files("wavecast.isa.encoding") / "names.csv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {
        int(row["number"]): row["name"]
        for row in csv.DictReader(lines)
        if row["what"] == what
        and any(target in TARGET_SETS[item] for item in row["targets"].split())
    }


def number(text: str) -> int:
    """A decimal or hexadecimal number."""
    return int(text, 0)


def hexadecimal(value: int) -> str:
    return f"{value:#x}"


def decimal(value: int) -> str:
    """Small counts as LLVM prints them: decimal up to 64, hexadecimal above."""
    return str(value) if value <= _DECIMAL_LIMIT else f"{value:#x}"


HEXADECIMAL: Final = Immediate(hexadecimal, number)
DECIMAL: Final = Immediate(decimal, number)
PLAIN_DECIMAL: Final = Immediate(str, number)


def waits(row: Opcode) -> Immediate:
    """`vmcnt(0) lgkmcnt(0)`: the counters that the immediate of `s_waitcnt` waits for."""
    order = {"vmcnt": 0, "expcnt": 1, "lgkmcnt": 2}
    fields = sorted(row.waits, key=lambda field: order[field.counter])

    def text(value: int) -> str:
        counts = [(field, field.value(value)) for field in fields]
        parts = [f"{field.counter}({n})" for field, n in counts if n != field.ones]
        return " ".join(parts or [f"{field.counter}({n})" for field, n in counts])

    def value(text: str) -> int:
        if text[0].isdigit():
            return number(text)
        counts = _counts(text, {field.counter for field in fields})
        return sum(field.immediate(counts.get(field.counter, field.ones)) for field in fields)

    return Immediate(text, value)


def _counts(text: str, counter_names: set[str]) -> dict[str, int]:
    """`vmcnt(0) lgkmcnt(1)` as numbers by name. Raises ValueError for a name that is not known."""
    counts = {name: number(count) for name, count in _COUNT.findall(text)}
    if not counts or not counts.keys() <= counter_names:
        raise ValueError(text)
    return counts


def alu_waits(value: int) -> str:
    """`depctr_va_vdst(0)`: the counters of `s_wait_alu` that are not at their largest value."""
    if value & _ALU_UNUSED:
        return hexadecimal(value)
    counts = [(name, value >> low & (1 << width) - 1, width) for name, low, width in _ALU_COUNTERS]
    waited = [f"{name}({n})" for name, n, width in counts if n != (1 << width) - 1]
    return " ".join(waited or [f"{name}({n})" for name, n, _ in counts])


def _alu_waits_value(text: str) -> int:
    if text[0].isdigit():
        return number(text)
    counts = _counts(text, {name for name, _, _ in _ALU_COUNTERS})
    return sum(counts.get(name, (1 << width) - 1) << low for name, low, width in _ALU_COUNTERS)


def delays(value: int) -> str:
    """`instid0(VALU_DEP_1) | instskip(NEXT) | instid1(SALU_CYCLE_1)`."""
    first, skip, second = value & 15, value >> 4 & 7, value >> 7 & 15
    if first >= len(_DELAYS) or second >= len(_DELAYS) or skip >= len(_SKIPS):
        return hexadecimal(value)
    parts = []
    if first:
        parts.append(f"instid0({_DELAYS[first]})")
    if skip:
        parts.append(f"instskip({_SKIPS[skip]})")
    if second:
        parts.append(f"instid1({_DELAYS[second]})")
    return " | ".join(parts) or "0"


def _delays_value(text: str) -> int:
    if text[0].isdigit():
        return number(text)
    delay_names = dict(_COUNT.findall(text))
    value = 0
    for name, codes, low in (
        ("instid0", _DELAYS, 0),
        ("instskip", _SKIPS, 4),
        ("instid1", _DELAYS, 7),
    ):
        value |= codes.index(delay_names.get(name, "")) << low
    return value


@cache
def hardware_register(target: str) -> Immediate:
    """`hwreg(HW_REG_MODE, 0, 4)`: register, first bit, width."""
    registers = names("hwreg", target)

    def text(value: int) -> str:
        code, offset, size = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
        name = registers.get(code, str(code))
        return f"hwreg({name})" if (offset, size) == (0, 32) else f"hwreg({name}, {offset}, {size})"

    def value(text: str) -> int:
        match = _HARDWARE_REGISTER.fullmatch(text)
        if match is None:
            return number(text)
        code = number(match[1]) if match[1].isdigit() else _inverse(registers)[match[1]]
        return code | int(match[2] or 0) << 6 | int(match[3] or 32) - 1 << 11

    return Immediate(text, value)


def _inverse(by_code: dict[int, str]) -> dict[str, int]:
    return {name: code for code, name in by_code.items()}


@cache
def message(target: str) -> Immediate:
    """`sendmsg(MSG_GS, GS_OP_EMIT, 0)`: a message with its operation."""
    messages, streams, system = (names(what, target) for what in ("msg", "gs_op", "sys_op"))
    bits = 4 if streams else 8

    def text(value: int) -> str:
        code = value & (1 << bits) - 1
        name, operation, stream = messages.get(code), value >> bits & 7, value >> 8 & 3
        if name is None:
            return str(value)
        if not streams:
            return f"sendmsg({name})" if value == code else str(value)
        if name in ("MSG_GS", "MSG_GS_DONE"):
            if (
                operation not in streams
                or value >> 10
                or value >> 6 & 3
                or (not operation and stream)
            ):
                return str(value)
            word = streams[operation]
            return f"sendmsg({name}, {word}, {stream})" if operation else f"sendmsg({name}, {word})"
        if name == "MSG_SYSMSG":
            if operation not in system or value >> 7:
                return str(value)
            return f"sendmsg({name}, {system[operation]})"
        return f"sendmsg({name})" if value == code else str(value)

    def value(text: str) -> int:
        if text[0].isdigit():
            return number(text)
        name, *rest = text.removeprefix("sendmsg(").removesuffix(")").split(", ")
        code = _inverse(messages)[name]
        if rest:
            operations = system if name == "MSG_SYSMSG" else streams
            code |= _inverse(operations)[rest[0]] << bits
        return code | (int(rest[1]) << 8 if len(rest) > 1 else 0)

    return Immediate(text, value)


def gpr_index_mode(value: int) -> str:
    """`gpr_idx(SRC0,DST)`: the operands that VGPR indexing applies to."""
    return f"gpr_idx({','.join(name for bit, name in enumerate(_INDEXED) if value >> bit & 1)})"


def _indexed_value(text: str) -> int:
    modes = text.removeprefix("gpr_idx(").removesuffix(")")
    return sum(1 << _INDEXED.index(name) for name in modes.split(",") if name)


INDEXED: Final = Immediate(gpr_index_mode, _indexed_value)


def swizzle(value: int) -> str:
    """The offset of `ds_swizzle_b32` as a pattern."""
    if not value:
        return ""
    if value & _SWIZZLE_QUAD_MASK == _SWIZZLE_QUAD:
        return f" offset:swizzle(QUAD_PERM,{','.join(str(value >> 2 * n & 3) for n in range(4))})"
    if value >= _SWIZZLE_FFT and value <= _SWIZZLE_FFT + _LANES - 1:
        return f" offset:swizzle(FFT,{value & 31})"
    if _SWIZZLE_ROTATE <= value < _SWIZZLE_FFT and not value & 0x1800 | value & 0x1F:
        return f" offset:swizzle(ROTATE,{value >> 10 & 1},{value >> 5 & 31})"
    if value & 0x8000:
        return f" offset:{value}"
    and_mask, or_mask, xor_mask = value & 31, value >> 5 & 31, value >> 10 & 31
    if (and_mask, or_mask) == (31, 0) and xor_mask.bit_count() == 1:
        return f" offset:swizzle(SWAP,{xor_mask})"
    if xor_mask and (and_mask, or_mask) == (31, 0) and xor_mask & xor_mask + 1 == 0:
        return f" offset:swizzle(REVERSE,{xor_mask + 1})"
    group = _LANES - and_mask
    if not xor_mask and group & group - 1 == 0 and group > 1 and or_mask < group:
        return f" offset:swizzle(BROADCAST,{group},{or_mask})"
    signs = []
    for bit in range(4, -1, -1):
        keep, put, flip = and_mask >> bit & 1, or_mask >> bit & 1, xor_mask >> bit & 1
        zero, image_of_one = put ^ flip, (keep | put) ^ flip
        signs.append({(0, 1): "p", (1, 0): "i", (0, 0): "0", (1, 1): "1"}[zero, image_of_one])
    return f' offset:swizzle(BITMASK_PERM,"{"".join(signs)}")'


def swizzle_value(text: str) -> int:
    """The offset that a pattern stands for."""
    mode, *words = text.removeprefix("swizzle(").removesuffix(")").split(",")
    if mode == "BITMASK_PERM":
        signs = words[0].strip('"')
        keep, put, flip = (
            sum((sign in ones) << 4 - bit for bit, sign in enumerate(signs))
            for ones in ("pi", "1", "i")
        )
        return keep | put << 5 | flip << 10
    counts = [number(word) for word in words]
    if mode == "QUAD_PERM":
        return _SWIZZLE_QUAD | sum(lane << 2 * number for number, lane in enumerate(counts))
    if mode == "FFT":
        return _SWIZZLE_FFT | counts[0]
    if mode == "ROTATE":
        return _SWIZZLE_ROTATE | counts[0] << 10 | counts[1] << 5
    if mode == "SWAP":
        return _LANES - 1 | counts[0] << 10
    if mode == "REVERSE":
        return _LANES - 1 | counts[0] - 1 << 10
    if mode == "BROADCAST":
        return _LANES - counts[0] | counts[1] << 5
    return number(text)


def program_immediate(row: Opcode, words: frozenset[str], target: str) -> Immediate:
    """How the 16-bit immediate of a SOPP row is printed."""
    if row.waits and any(field.optional for field in row.waits):
        return waits(row)
    if OpcodeFlag.WAIT_ALU in row.flags:
        return Immediate(alu_waits, _alu_waits_value)
    if row.role is Role.MESSAGE:
        return message(target)
    if OpcodeFlag.INDEX_MODE in row.flags:
        return INDEXED
    if "delay" in words:
        return Immediate(delays, _delays_value)
    if any(role.optional for role in row.operands):
        return PLAIN_DECIMAL
    return DECIMAL if "decimal" in words else HEXADECIMAL
