"""Operand text to `Operand` and back.

The same few thousand operand texts make up every program, so parsing is memoised.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from functools import lru_cache

from wavecast.isa.instruction import Operand, OperandClass
from wavecast.isa.quoting import QUOTED, quote, unquote
from wavecast.isa.registers import (
    AGPR_BASE,
    AGPR_COUNT,
    SGPR_BASE,
    SGPR_COUNT,
    SPECIAL_REGISTERS,
    TTMP_BASE,
    TTMP_COUNT,
    VGPR_BASE,
    VGPR_COUNT,
    span,
)

_REGISTER = re.compile(
    r"(?P<file>v|a|s|ttmp)(?:(?P<single>\d+)|\[(?P<first>\d+)(?::(?P<last>\d+))?\])"
    r"(?:\.(?P<half>[lh]))?"
)
_FILES = {
    "v": (OperandClass.VGPR, VGPR_BASE, VGPR_COUNT),
    "a": (OperandClass.AGPR, AGPR_BASE, AGPR_COUNT),
    "s": (OperandClass.SGPR, SGPR_BASE, SGPR_COUNT),
    "ttmp": (OperandClass.SPECIAL, TTMP_BASE, TTMP_COUNT),
}
_HIGH = re.compile(r"v[\d\[\]:]+(?:\.[lh])?/\*(?P<real>v[\d\[\]:]+(?:\.[lh])?)\*/")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|0|[1-9]\d{0,19})", re.ASCII)
_FLOAT = re.compile(r"-?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MODIFIERS = re.compile(r"(?:-|\||abs\(|neg\(|sext\()*")
_MAX_MODIFIERS = 4
_LITERAL = re.compile(r"lit(?:64)?\((?P<value>[^)]*)\)")
_LABEL = re.compile(rf"{QUOTED}|[A-Za-z_.$][\w.$@]*")

_NO_STORAGE = frozenset(
    {
        "null",
        "src_shared_base",
        "src_shared_limit",
        "src_private_base",
        "src_private_limit",
        "src_pops_exiting_wave_id",
        "src_flat_scratch_base_lo",
        "src_flat_scratch_base_hi",
        "src_lds_direct",
        "lds_direct",
        "shared_base",
        "shared_limit",
        "private_base",
        "private_limit",
    }
)
_ALIASES = {
    "src_vccz": "vcc",
    "src_execz": "exec",
    "src_scc": "scc",
    "vccz": "vcc",
    "execz": "exec",
}


class OperandError(ValueError):
    """Text that is not an operand. The parser adds its position."""


@lru_cache(maxsize=65536)
def parse_operand(text: str) -> Operand:
    """The operand that `text` spells. Raises OperandError when it spells none."""
    match = _REGISTER.fullmatch(text)
    if match is not None:
        return _register(text, match)
    high = _HIGH.fullmatch(text)
    if high is not None:
        return replace(parse_operand(high["real"]), text=text)
    if text == "off":
        return Operand(OperandClass.OFF, text)
    if text in SPECIAL_REGISTERS or text in _ALIASES:
        first, count = SPECIAL_REGISTERS[_ALIASES.get(text, text)]
        return Operand(OperandClass.SPECIAL, text, 0, count, ((1 << count) - 1) << first)
    if text in _NO_STORAGE:
        return Operand(OperandClass.SPECIAL, text)
    if _INTEGER.fullmatch(text):
        return Operand(OperandClass.CONSTANT, text, value=int(text, 0))
    if _FLOAT.fullmatch(text):
        return Operand(OperandClass.CONSTANT, text, value=_float_bits(text))
    if text[:1].isdigit() or (text[:1] == "-" and text[1:2].isdigit()):
        raise OperandError(f"no such number {text!r}")
    literal = _LITERAL.fullmatch(text)
    if literal is not None:
        inner = parse_operand(literal["value"].strip())
        return Operand(OperandClass.CONSTANT, text, value=inner.value)
    modified = _parse_modifiers(text)
    if modified is not None:
        return modified
    if _LABEL.fullmatch(text):
        return Operand(OperandClass.LABEL, unquote(text))
    if text:
        return Operand(OperandClass.EXPRESSION, text)
    raise OperandError("an operand is missing")


def _register(text: str, match: re.Match[str]) -> Operand:
    kind, base, size = _FILES[match["file"]]
    if match["single"] is not None:
        first = last = int(match["single"])
    else:
        first = int(match["first"])
        last = int(match["last"]) if match["last"] is not None else first
    if last < first or last >= size:
        raise OperandError(f"no such register {text!r}")
    count = last - first + 1
    half = match["half"] or ""
    return Operand(kind, text, first, count, span(base, first, count), half=half)


def _float_bits(text: str) -> int:
    try:
        return struct.unpack("<I", struct.pack("<f", float(text)))[0]
    except OverflowError:
        raise OperandError(f"{text!r} does not fit 32 bits") from None


def _parse_modifiers(text: str) -> Operand | None:
    """`-v1`, `|v1|`, `-|v1|`, `neg(v1)`, `abs(v1)`, `sext(v1)`; None for anything else."""
    prefixes = _MODIFIERS.match(text)
    if prefixes is not None and len(re.findall(r"[-|]|\w+\(", prefixes[0])) > _MAX_MODIFIERS:
        raise OperandError(f"too many modifiers on {text[:40]!r}")
    for prefix, suffix, field in (
        ("|", "|", "absolute"),
        ("abs(", ")", "absolute"),
        ("neg(", ")", "negate"),
        ("sext(", ")", "sign_extend"),
        ("-", "", "negate"),
    ):
        if not (text.startswith(prefix) and text.endswith(suffix)):
            continue
        stop = len(text) - len(suffix)
        if stop <= len(prefix):
            continue
        inner = parse_operand(text[len(prefix) : stop])
        if inner.kind in (OperandClass.EXPRESSION, OperandClass.LABEL, OperandClass.OFF):
            continue
        return Operand(
            inner.kind,
            text,
            inner.first,
            inner.count,
            inner.bits,
            inner.value,
            inner.half,
            negate=inner.negate or field == "negate",
            absolute=inner.absolute or field == "absolute",
            sign_extend=inner.sign_extend or field == "sign_extend",
        )
    return None


_PREFIX = {OperandClass.VGPR: "v", OperandClass.AGPR: "a", OperandClass.SGPR: "s"}


@lru_cache(maxsize=65536)
def print_operand(operand: Operand) -> str:
    """The operand as LLVM prints it; registers are spelled from their numbers, not their text."""
    if operand.kind is OperandClass.LABEL:
        return quote(operand.text)
    prefix = _PREFIX.get(operand.kind)
    if prefix is None or "/*" in operand.text:
        return operand.text
    if operand.count == 1:
        text = f"{prefix}{operand.first}"
    else:
        text = f"{prefix}[{operand.first}:{operand.first + operand.count - 1}]"
    if operand.half:
        text += f".{operand.half}"
    if operand.absolute:
        text = f"|{text}|"
    if operand.negate:
        text = f"-{text}"
    if operand.sign_extend:
        text = f"sext({text})"
    return text
