"""The texts of modifiers: what LLVM prints behind the operands.

A modifier is a group of fields and the text of their values, joined to one index: the first field
has the lowest bits. Source: LLVM AMDGPUInstPrinter.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.isa.encoding.formats import Format
from wavecast.isa.encoding.immediates import number, swizzle, swizzle_value
from wavecast.isa.encoding.operands import Texts
from wavecast.isa.encoding.text_plan import Part
from wavecast.isa.opcode import MemoryKind, Opcode

_OMODS: Final = ("", " mul:2", " mul:4", " div:2")
_SELECTED: Final = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
_UNUSED: Final = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
_DPP_CONTROLS: Final = {
    0x130: "wave_shl:1",
    0x134: "wave_rol:1",
    0x138: "wave_shr:1",
    0x13C: "wave_ror:1",
    0x140: "row_mirror",
    0x141: "row_half_mirror",
    0x142: "row_bcast:15",
    0x143: "row_bcast:31",
}
_DPP_ROWS: Final = {0x100: "row_shl", 0x110: "row_shr", 0x120: "row_ror", 0x160: "row_xmask"}
_LOAD_HINTS: Final = ("", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT")
_STORE_HINTS: Final = ("", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB")
_SCOPES: Final = ("", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS")
_SYSTEM: Final = 3
_BYPASS: Final = 3


@dataclass(frozen=True, slots=True)
class Modifier:
    """Fields and the text of their joined value, with its leading space; "" where it is absent.

    `value` is the joined value of what follows `name:`, where values are too many to look through.
    """

    fields: tuple[str, ...]
    text: Callable[[int], str]
    name: str = ""
    value: Callable[[str], int] | None = None
    usual: int = 0


def _flag(name: str, field: str = "") -> Modifier:
    return Modifier((field or name,), lambda value: f" {name}" if value else "")


def _number(name: str) -> Modifier:
    return Modifier((name,), lambda value: f" {name}:{value}" if value else "", name, number)


def _signed_number(name: str, width: int) -> Modifier:
    half = 1 << width - 1

    def text(value: int) -> str:
        return f" {name}:{value - 2 * half if value >= half else value}" if value else ""

    return Modifier((name,), text, name, lambda literal: number(literal) & 2 * half - 1)


def bits_text(name: str, value: int, count: int) -> str:
    """` op_sel:[1,0]`: the lowest bit first."""
    return f" {name}:[{','.join(str(value >> bit & 1) for bit in range(count))}]"


def _bits(name: str, field: str, count: int, default: int = 0) -> Modifier:
    mask = (1 << count) - 1

    def text(value: int) -> str:
        return "" if value & mask == default & mask else bits_text(name, value, count)

    return Modifier((field,), text)


OMOD: Final = Modifier(("omod",), lambda value: _OMODS[value])
CLAMP: Final = _flag("clamp")


def op_sel(sources: int, whole: bool = False) -> Modifier:
    """The selected halves of the sources and of the destination (VOP3); `whole` rows print all
    four bits."""

    def text(value: int) -> str:
        if whole:
            return bits_text("op_sel", value, 4) if value else ""
        bits = value & (1 << sources) - 1 | (value >> 3 & 1) << sources
        return bits_text("op_sel", bits, sources + 1) if bits else ""

    return Modifier(("op_sel",), text)


PERMLANE: Final = _bits("op_sel", "op_sel", 2)
"""Lanes that are off, and those that are out of bounds, in permutations of 16 lanes."""


def vop3p(sources: int, mixed: bool) -> list[Modifier]:
    """op_sel, op_sel_hi, neg_lo and neg_hi of a packed row; `mixed` rows have other defaults, and
    negation and absolute value of their operands instead of the last two."""
    default = 0 if mixed else (1 << sources) - 1

    def high(value: int) -> str:
        bits = value & (1 << sources) - 1
        return "" if bits == default else bits_text("op_sel_hi", bits, sources)

    entries = [
        _bits("op_sel", "op_sel", sources),
        Modifier(("op_sel_hi", "op_sel_hi2"), high, usual=0 if mixed else 7),
    ]
    if not mixed:
        entries += [_bits("neg_lo", "neg", sources), _bits("neg_hi", "neg_hi", sources)]
    return [*entries, CLAMP]


def dpp(target_has_fi: bool, new_broadcast: bool) -> list[Modifier]:
    """The control word of DPP."""

    def control(value: int) -> str:
        if value < 0x100:
            return f" quad_perm:[{','.join(str(value >> 2 * n & 3) for n in range(4))}]"
        if value in _DPP_CONTROLS:
            return f" {_DPP_CONTROLS[value]}"
        if value & ~15 == 0x150:
            return f" {'row_newbcast' if new_broadcast else 'row_share'}:{value & 15}"
        name = _DPP_ROWS.get(value & ~15)
        return f" {name}:{value & 15}" if name else f" /* invalid dpp_ctrl {value:#x} */"

    def masks(value: int) -> str:
        return f" row_mask:{value >> 4:#x} bank_mask:{value & 15:#x}"

    entries = [
        Modifier(("dpp_ctrl",), control),
        Modifier(("bank_mask", "row_mask"), masks),
        Modifier(("bound_ctrl",), lambda value: " bound_ctrl:1" if value else ""),
    ]
    if target_has_fi:
        entries.append(Modifier(("fi",), lambda value: " fi:1" if value else ""))
    return entries


def dpp8(invalid_lanes: bool) -> list[Modifier]:
    """The control word of DPP8; `invalid_lanes`: reads lanes that are off (`fi:1`)."""

    def lanes(value: int) -> str:
        order = ",".join(str(value >> 3 * n & 7) for n in range(8))
        return f" dpp8:[{order}]"

    def value(text: str) -> int:
        return sum(int(lane) << 3 * n for n, lane in enumerate(text.strip("[]").split(",")))

    entries = [Modifier(("lanes",), lanes, "dpp8", value)]
    return [*entries, Modifier((), lambda _: " fi:1")] if invalid_lanes else entries


def _selection(name: str, field: str) -> Modifier:
    return Modifier((field,), lambda value: f" {name}:{_SELECTED[min(value, 6)]}")


def sdwa(row: Opcode, sources: int, source_only: bool) -> list[Modifier]:
    """The control word of SDWA; a comparison, or a row with `source_only`, selects no part of its
    result."""
    entries: list[Modifier] = []
    if row.form != "VOPC" and not source_only:
        entries += [
            CLAMP,
            OMOD,
            _selection("dst_sel", "dst_sel"),
            Modifier(("dst_unused",), lambda value: f" dst_unused:{_UNUSED[min(value, 2)]}"),
        ]
    names = ("sel0", "sel1")[:sources]
    return entries + [_selection(f"src{n}_sel", name) for n, name in enumerate(names)]


def cache_policy(layout: Format, row: Opcode) -> list[Modifier]:
    """Flags or hints for the caches, in printed order."""
    if "scope" in layout.fields:
        kind = row.memory.kind if row.memory is not None else MemoryKind.LOAD
        return [Modifier(("th", "scope"), _hint(layout.fields["th"].width, kind))] + [
            _flag("nv") for _ in range("nv" in layout.fields)
        ]
    order = ("sc0", "nt", "sc1", "glc", "slc", "dlc", "scc")
    return [_flag(name) for name in order if name in layout.fields]


def _hint(width: int, kind: MemoryKind) -> Callable[[int], str]:
    def text(value: int) -> str:
        hint, scope = value & (1 << width) - 1, value >> width
        if not hint:
            return _SCOPES[scope]
        if kind is MemoryKind.ATOMIC:
            return f" th:TH_ATOMIC_{_atomic_hint(hint, scope)}{_SCOPES[scope]}"
        store = kind in (MemoryKind.STORE, MemoryKind.STORE_FROM_LDS)
        names = _STORE_HINTS if store else _LOAD_HINTS
        if hint >= len(names):
            return f" th:{hint:#x}{_SCOPES[scope]}"
        name = "BYPASS" if hint == _BYPASS and scope == _SYSTEM else names[hint]
        return f" th:TH_{'STORE' if store else 'LOAD'}_{name}{_SCOPES[scope]}"

    return text


def _atomic_hint(hint: int, scope: int) -> str:
    if hint & 4:
        if scope < 2:
            return f"{hint:#x}"
        return "CASCADE_NT" if hint & 2 else "CASCADE_RT"
    words = [name for bit, name in ((2, "NT"), (1, "RETURN")) if hint & bit]
    return "_".join(words)


def scale_offset(layout: Format) -> list[Modifier]:
    """The flag that an offset counts elements, where the format has it."""
    return [_flag("scale_offset")] if "scale_offset" in layout.fields else []


def memory(layout: Format, row: Opcode) -> list[Modifier]:
    """Offsets and flags of vector memory and LDS rows."""
    if layout.name == "DS":
        if row.memory_form.exchange == "swizzle":
            return [Modifier(("offset",), swizzle, "offset", swizzle_value), _flag("gds")]
        if row.memory_form.offsets == 2:
            return [_number("offset0"), _number("offset1"), _flag("gds")]
        return [_number("offset"), _flag("gds")]
    entries: list[Modifier] = []
    if layout.name == "MUBUF":
        entries += [_flag("idxen"), _flag("offen")]
    width = layout.fields["offset"].width
    unsigned = layout.name == "MUBUF" and layout.words == 2
    unsigned |= layout.name == "FLAT" and layout.words == 2
    entries.append(_number("offset") if unsigned else _signed_number("offset", width))
    entries += scale_offset(layout) + cache_policy(layout, row)
    return entries + [_flag(name) for name in ("lds", "tfe") if name in layout.fields]


def matrix(layout: Format, row: Opcode) -> list[Modifier]:
    """Broadcasts of MFMA, the negation of a double-precision one, or the halves of scales."""
    shape = row.matrix
    assert shape is not None
    if shape.cd_type == "f64":
        return [_number("cbsz"), _number("abid"), _bits("neg", "blgp", 3)]
    if layout.name != "VOP3P":
        low = Modifier(
            ("scale_op_sel",), lambda value: bits_text("op_sel", value, 3) if value else ""
        )
        high = Modifier(("scale_op_sel_hi",), lambda value: bits_text("op_sel_hi", value, 3))
        return [low, high, _number("cbsz"), _number("blgp")]
    return [_number("cbsz"), _number("abid"), _number("blgp")]


_ELEMENTS: Final = ("", "MATRIX_FMT_BF8", "MATRIX_FMT_FP6", "MATRIX_FMT_BF6", "MATRIX_FMT_FP4")
_SCALE_FORMATS: Final = ("", "MATRIX_SCALE_FMT_E5M3", "MATRIX_SCALE_FMT_E4M3")


def _enum(name: str, field: str | tuple[str, ...], values: Sequence[str]) -> Modifier:
    def text(value: int) -> str:
        if not value:
            return ""
        return f" {name}:{values[value] if value < len(values) else value}"

    return Modifier((field,) if isinstance(field, str) else field, text)


def wave_matrix(layout: Format, row: Opcode, words: frozenset[str]) -> list[Modifier]:
    """Formats, scales, reuse of operands, negation and the index of WMMA."""
    entries: list[Modifier] = []
    if "index_key" in words:
        wide = row.operands[3].dwords == 1 and row.operands[1].type.startswith(_BYTES)
        field = "index_key" if wide else "index_bit"
        entries.append(Modifier((field,), lambda value: f" index_key:{value}" if value else ""))
    elif words.isdisjoint({"reuse", "fmt"}):
        entries.append(_bits("op_sel", "op_sel", 3))
    if "fmt" in words:
        entries.append(_enum("matrix_a_fmt", "fmt_a", _ELEMENTS))
        entries.append(_enum("matrix_b_fmt", ("fmt_b", "fmt_b2"), _ELEMENTS))
    if "scale_a" in layout.fields:
        for name in ("a", "b"):
            entries.append(
                _enum(f"matrix_{name}_scale", f"scale_{name}", ("", "MATRIX_SCALE_ROW1"))
            )
        for name in ("a", "b"):
            field = f"scale_fmt_{name}"
            entries.append(_enum(f"matrix_{name}_scale_fmt", field, _SCALE_FORMATS))
    if not words.isdisjoint({"reuse", "fmt"}) and ("fmt" not in words or layout.words > 2):
        entries += [_flag("matrix_a_reuse", "reuse_a"), _flag("matrix_b_reuse", "reuse_b")]
    entries += [_bits("neg_lo", "neg", 3), _bits("neg_hi", "neg_hi", 3)]
    return [*entries, CLAMP] if "clamp" in layout.fields else entries


_BYTES: Final = ("fp8", "bf8", "b8", "iu8", "i8", "u8", "iu4", "i4", "u4", "b4")


def parts(layout: Format, modifiers: Sequence[Modifier], base: int = 0) -> tuple[Part, ...]:
    """The parts of a text that a sequence of modifiers makes, of fields from bit `base` on."""
    text_parts = []
    for modifier in modifiers:
        gathers, position = [], 0
        for name in modifier.fields:
            field = layout.fields[name]
            gathers.append((field.low + base, field.mask, position))
            position += field.width
        text_parts.append(
            Part(
                tuple(gathers),
                Texts(modifier.text),
                value=modifier.value,
                names=frozenset((modifier.name,)) if modifier.name else frozenset(),
                usual=modifier.usual,
            )
        )
    return tuple(text_parts)


BITOP3: Final = Modifier(
    ("neg", "abs", "omod"),
    lambda value: f" bitop3:{value if value < 10 else hex(value)}" if value else "",
)
"""The truth table of `v_bitop3`."""
SWAP: Final = Modifier(
    ("op_sel",), lambda value: " bound_ctrl:1" * (value >> 1 & 1) + " fi:1" * (value & 1)
)
"""Lanes that are off, and those that do not exist, in swaps of lanes."""


def _byte_of_source(value: int) -> str:
    byte = (value & 1) << 1 | value >> 1 & 1
    return f" byte_sel:{byte}" if byte else ""


def _byte_of_result(value: int) -> str:
    return f" byte_sel:{value >> 2}" if value >> 2 else ""


SELECTIONS: Final = {
    "byte_source": Modifier(("op_sel",), _byte_of_source),
    "byte_result": Modifier(("op_sel",), _byte_of_result),
    "scale_sel": Modifier(("op_sel",), lambda value: f" scale_sel:{value}" if value else ""),
}
"""The byte or scale that conversions of 8 bits and less select, by the word of `opcodes.csv`."""
