"""How one instruction is printed: the fields of its operands and modifiers, as tables of text.

A `TextPlan` belongs to a format, an opcode number and what else decides the layout (the word behind
the instruction, the wave size). It is made once; printing an instruction is a few table lookups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from wavecast.isa.encoding import immediates, modifiers, operands
from wavecast.isa.encoding.formats import BitField, Format, layout, traits
from wavecast.isa.encoding.opcodes import EncodedRow, encoded_rows
from wavecast.isa.encoding.operands import LITERAL, Texts
from wavecast.isa.opcode import (
    MemoryKind,
    OpcodeFlag,
    OperandAccess,
    OperandKind,
    OperandRole,
    Role,
    Space,
)

Gather = tuple[int, int, int]
"""Shift and mask of bits of an instruction, and their first bit in an index."""

_WRITES = (OperandAccess.WRITE, OperandAccess.READ_WRITE)
_ONE_WORD = frozenset({"VOP1", "VOP2", "VOPC"})
_NO_SADDR_OF_GFX9 = 0x7F
_NO_SADDR = 0x7C
_FORMAT_BITS = (8, 8, 6, 6, 4)
"""Bits of an element by the number of its format: FP8, BF8, FP6, BF6, FP4."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text that depends on fields: the index its gathers give, looked up in `texts`."""

    gathers: tuple[Gather, ...]
    texts: Texts

    def text(self, word: int) -> str:
        index = 0
        for shift, mask, position in self.gathers:
            index |= (word >> shift & mask) << position
        return self.texts[index]


def _part(texts: Texts, *fields: BitField, base: int = 0) -> Part:
    gathers, position = [], 0
    for field in fields:
        gathers.append((field.low + base, field.mask, position))
        position += field.width
    return Part(tuple(gathers), texts)


def _constant(text: str) -> Part:
    return Part((), Texts(lambda _: text))


@dataclass(frozen=True, slots=True)
class TextPlan:
    """The text of the instructions of one opcode number: mnemonic, operands, modifiers."""

    mnemonic: str
    operands: tuple[Part, ...]
    modifiers: Part | None
    row: EncodedRow
    slots: tuple[int, ...]

    def text(self, word: int, upper: int = 0) -> str:
        """The instruction; a literal is still `LITERAL`.

        `upper` has two bits for each of src0, src1, src2 and the destination, which are above the
        eight bits of their register numbers (gfx1250, `s_set_vgpr_msb`).
        """
        if upper:
            texts = [
                _with_upper(part.text(word), upper >> 2 * slot & 3)
                if slot >= 0
                else part.text(word)
                for part, slot in zip(self.operands, self.slots, strict=True)
            ]
        else:
            texts = [part.text(word) for part in self.operands]
        shown = [text for text in texts if text]
        text = f"{self.mnemonic} {', '.join(shown)}" if shown else self.mnemonic
        return text + self.modifiers.text(word) if self.modifiers is not None else text


_REGISTERS = re.compile(r"\bv(?:(\d+)|\[(\d+):(\d+)\])")


def _with_upper(text: str, upper: int) -> str:
    """A register with its complete number behind it, `v0 /*v256*/`, as LLVM prints it."""
    if not upper:
        return text

    def complete(found: re.Match[str]) -> str:
        numbers = [int(number) + 256 * upper for number in found.groups() if number is not None]
        whole = f"v{numbers[0]}" if len(numbers) == 1 else f"v[{numbers[0]}:{numbers[1]}]"
        return f"{found[0]} /*{whole}*/"

    return _REGISTERS.sub(complete, text, count=1)


_SLOTS = {
    **dict.fromkeys(("src0", "srcx0", "srcy0", "addr", "vaddr", "scale0"), 0),
    **dict.fromkeys(("src1", "vsrcx1", "vsrcy1", "data0", "data", "scale1"), 1),
    **dict.fromkeys(("src2", "vsrcx2", "vsrcy2", "data1"), 2),
    **dict.fromkeys(("vdst", "vdstx", "vdsty", "vdata"), 3),
}
"""Field -> position of its bits in the immediate of `s_set_vgpr_msb`.
Source: LLVM AMDGPUBaseInfo.cpp, getVGPRLoweringOperandTables."""


class _Builder:
    """Makes the plan of one row; `following` is the format of the word behind it, or ""."""

    def __init__(
        self, target: str, wave_lanes: int, shape: Format, encoded: EncodedRow, following: str
    ) -> None:
        self.target = target
        self.traits = traits(target)
        self.mask_dwords = wave_lanes // 32
        self.shape = shape
        self.fields = shape.fields
        self.encoded = encoded
        self.row = encoded.row
        self.following = following
        self.narrow = shape.name in _ONE_WORD
        self.base = 32 * shape.words
        self.behind: Format | None = None
        if following:
            self.behind = layout(target, "DPP8" if following == "DPP8_FI" else following)

    def build(self) -> TextPlan:
        row, encoded = self.row, self.encoded
        parts = getattr(self, f"_{self.shape.name.lower()}", self._vector)()
        mnemonic = row.mnemonics[self.target]
        suffix = encoded.suffix
        if self.following:
            kind = "sdwa" if self.following == "SDWA" else "dpp"
            suffix = f"{suffix}_{kind}" if self.shape.name in ("VOP3", "VOP3P") and suffix else kind
            if self.shape.name == "VOP3P" or (not encoded.suffix and self.shape.name == "VOP3"):
                suffix = f"e64_{kind}"
        if suffix:
            mnemonic = f"{mnemonic}_{suffix}"
        gathers, texts = self._modifiers()
        trailing = Part(tuple(gathers), texts) if gathers else None
        if trailing is None and (constant := texts[0]):
            trailing = _constant(constant)
        return TextPlan(mnemonic, tuple(parts), trailing, encoded, self._slots(parts))

    def _slots(self, parts: Sequence[Part]) -> tuple[int, ...]:
        """For each operand the position of its upper bits, -1 for one without any."""
        by_bit = {f.low: _SLOTS[name] for name, f in self.fields.items() if name in _SLOTS}
        if self.behind is not None:
            by_bit[self.behind.fields["src0"].low + self.base] = 0
        if self.fields.get("src1") and self.row.form == "VOP2" and self._multiplies_by_literal():
            by_bit[self.fields["src1"].low] = 2
        return tuple(by_bit.get(part.gathers[0][0], -1) if part.gathers else -1 for part in parts)

    def _multiplies_by_literal(self) -> bool:
        """Whether the literal is the second factor, so that the register behind it is src2."""
        roles = self.row.operands
        return len(roles) == 4 and roles[2].kind is OperandKind.IMMEDIATE

    # Fields to parts

    def _scalar(self, field: str, dwords: int) -> Part:
        return _part(operands.scalars(self.target, dwords), self.fields[field])

    def _scalar_source(self, field: str, role: OperandRole) -> Part:
        dwords = role.dwords or self.mask_dwords
        return _part(operands.scalar_sources(self.target, dwords, role.type), self.fields[field])

    def _pair(self, field: str, scale: int, dwords: int) -> Part:
        texts = Texts(lambda code: operands.scalar_text(self.target, code * scale, dwords))
        return _part(texts, self.fields[field])

    def _mask(self) -> Part:
        return _constant("vcc" if self.mask_dwords == 2 else "vcc_lo")

    def _vector_field(self, field: str, dwords: int) -> Part:
        """A VGPR, or an AGPR where the format has a bit for it."""
        if "acc" in self.fields and self.fields["acc"].width == 1:
            return _part(operands.vectors(dwords, True), self.fields[field], self.fields["acc"])
        return _part(operands.vectors(dwords), self.fields[field])

    def _destination(self, position: int, role: OperandRole) -> Part:
        field = self.fields["vdst"]
        if role.kind is OperandKind.LANE_MASK:
            return self._scalar("vdst", self.mask_dwords)
        if role.kind is OperandKind.SCALAR:
            return self._scalar("vdst", role.dwords)
        if position in self.encoded.accumulators:
            return _part(Texts(lambda n: operands.vector_text(n, role.dwords, "a")), field)
        if position in self.encoded.halves:
            if self.narrow:
                return _part(operands.halves(True), field)
            high = BitField(self.fields["op_sel"].low + 3, 1)
            return Part(((field.low, field.mask, 0), (high.low, 1, 9)), operands.halves(False))
        return _part(operands.vectors(role.dwords), field)

    def _source(self, number: int, position: int, role: OperandRole) -> Part:
        """Source `number` of a vector instruction."""
        if number == 0 and self.behind is not None:
            return self._source_behind(0, position, role)
        if number == 1 and self.behind is not None and self.following == "SDWA":
            return self._source_behind(1, position, role)
        field = self.fields[f"src{number}"]
        dwords = role.dwords or self.mask_dwords
        if position in self.encoded.accumulators:
            texts = Texts(lambda n: operands.vector_text(n & 0xFF, dwords, "a"))
            return _part(texts, field)
        half = position in self.encoded.halves
        texts = operands.sources(self.target, dwords, role.type, half, self.narrow)
        gathers: list[Gather] = [(field.low, field.mask, 0)]
        if field.width == 8:  # a vector register
            texts = operands.halves(True) if half else operands.vectors(dwords)
            if number == 1 and self.behind is not None and "neg1" in self.behind.fields:
                return self._with_signs(texts, field, 1)
            return Part(tuple(gathers), texts)
        if half and "op_sel" in self.fields and self.shape.name == "VOP3":
            gathers.append((self.fields["op_sel"].low + number, 1, 9))
        if self._takes_signs(role):
            if not self._has_carry():
                gathers.append((self.fields["abs"].low + number, 1, 10))
            gathers.append((self.fields["neg"].low + number, 1, 11))
        elif "mix" in self.encoded.words:
            gathers.append((self.fields["neg_hi"].low + number, 1, 10))
            gathers.append((self.fields["neg"].low + number, 1, 11))
        return Part(tuple(gathers), texts)

    def _takes_signs(self, role: OperandRole) -> bool:
        """Whether a source of VOP3 can be negated: floating point, and bits that are selected."""
        if self.shape.name != "VOP3" or "bitop3" in self.encoded.words:
            return False
        if role.kind is OperandKind.LANE_MASK:
            return False
        return role.type[:1] == "f" or role.type.startswith(("bf", "b32", "b16"))

    def _has_carry(self) -> bool:
        """Whether a row writes a lane mask next to its result (format VOP3 with `sdst`)."""
        return any(
            role.kind is OperandKind.LANE_MASK and role.access is OperandAccess.WRITE
            for role in self.row.operands[1:]
        )

    def _with_signs(self, texts: Texts, field: BitField, number: int) -> Part:
        """A register with the negation and absolute value of the DPP word."""
        assert self.behind is not None
        absolute, negate = self.behind.fields[f"abs{number}"], self.behind.fields[f"neg{number}"]
        shown = Texts(
            lambda index: operands.modified(texts[index & 0xFF], index >> 8, constant=False)
        )
        gathers = (
            (field.low, 0xFF, 0),
            (absolute.low + self.base, 1, 8),
            (negate.low + self.base, 1, 9),
        )
        return Part(gathers, shown)

    def _source_behind(self, number: int, position: int, role: OperandRole) -> Part:
        """Source 0 of DPP and both sources of SDWA, with the modifiers of the word behind."""
        behind = self.behind
        assert behind is not None
        half = position in self.encoded.halves
        if self.following != "SDWA":
            field = BitField(behind.fields["src0"].low + self.base, 8)
            texts = operands.halves(self.narrow) if half else operands.vectors(role.dwords)
            if self.narrow and "neg0" in behind.fields:
                return self._with_signs(texts, field, 0)
            gathers: list[Gather] = [(field.low, 0xFF, 0)]
            if half and self.shape.name == "VOP3":
                gathers.append((self.fields["op_sel"].low, 1, 9))
            if self._takes_signs(role):
                if not self._has_carry():
                    gathers.append((self.fields["abs"].low, 1, 10))
                gathers.append((self.fields["neg"].low, 1, 11))
            shown = Texts(lambda index: operands.modified(texts[index & 0x3FF], index >> 10, False))
            return Part(tuple(gathers), shown)
        own = behind.fields["src0"] if number == 0 else self.fields["src1"]
        low = own.low + (self.base if number == 0 else 0)

        def text(index: int) -> str:
            code = index & 0xFF
            plain = (
                operands.source_text(self.target, code, role.dwords)
                if index >> 8 & 1
                else operands.vector_text(code, role.dwords)
            )
            plain = operands.modified(plain, index >> 9 & 3, constant=False)
            return f"sext({plain})" if index >> 11 & 1 else plain

        flags = [f"{name}{number}" for name in ("scalar", "abs", "neg", "sext")]
        gathers = [(low, 0xFF, 0)] + [
            (behind.fields[name].low + self.base, 1, 8 + bit) for bit, name in enumerate(flags)
        ]
        return Part(tuple(gathers), Texts(text))

    # Formats

    def _vector(self) -> list[Part]:
        """VOP1, VOP2, VOPC, VOP3, VOP3P: destinations, then sources in order."""
        parts: list[Part] = []
        sources = 0
        for position, role in enumerate(self.row.operands):
            if role.access in _WRITES and not parts:
                parts.append(self._first_result(position, role))
            elif role.kind is OperandKind.LANE_MASK and role.access is OperandAccess.WRITE:
                plain = self.shape.name != "VOP3"
                parts.append(self._mask() if plain else self._scalar("sdst", self.mask_dwords))
            elif role.kind is OperandKind.LANE_MASK and self.shape.name != "VOP3":
                parts.append(self._mask())
            elif role.kind is OperandKind.IMMEDIATE:
                wide = self.row.operands[0].dwords == 2
                parts.append(_constant(operands.LITERAL64 if wide else LITERAL))
            else:
                parts.append(self._source(sources, position, role))
                sources += 1
        return parts

    def _first_result(self, position: int, role: OperandRole) -> Part:
        if self.shape.name == "VOPC":
            if self.behind is not None and self.following == "SDWA":
                chosen = self.behind.fields["sdst"]
                texts = Texts(
                    lambda index: (
                        operands.scalar_text(self.target, index & 0x7F, self.mask_dwords)
                        if index >> 7
                        else ("vcc" if self.mask_dwords == 2 else "vcc_lo")
                    )
                )
                gathers = ((chosen.low + self.base, 0x7F, 0), (chosen.low + 7 + self.base, 1, 7))
                return Part(gathers, texts)
            return self._mask()
        return self._destination(position, role)

    def _vop3p(self) -> list[Part]:
        if self.row.form == "MFMA":
            return self._matrix()
        if self.row.form == "WMMA":
            return self._wave_matrix()
        return self._vector()

    def _wave_matrix(self) -> list[Part]:
        """WMMA: D, A, B, C or the index of a sparse one, and the scales of A and B."""
        fields = self.fields
        parts: list[Part] = []
        for number, role in enumerate(self.row.operands):
            if not parts:
                parts.append(_part(operands.vectors(role.dwords), fields["vdst"]))
            elif number < 3 and "fmt" in self.encoded.words:
                parts.append(self._narrowed(number - 1, role))
            else:
                name = f"src{number - 1}" if number < 4 else f"scale{number - 4}"
                texts = operands.sources(self.target, role.dwords, role.type, False, False)
                parts.append(_part(texts, fields[name]))
        return parts

    def _narrowed(self, number: int, role: OperandRole) -> Part:
        """A or B of a WMMA whose fields tell the format of its elements."""
        fields = self.fields
        chosen = ["fmt_a"] if number == 0 else ["fmt_b", "fmt_b2"]

        def text(index: int) -> str:
            code = (index & 0x1FF) - operands.FIRST_VGPR
            dwords = role.dwords * _FORMAT_BITS[min(index >> 9, 4)] // 8
            return operands.vector_text(code, dwords)

        return _part(Texts(text), fields[f"src{number}"], *(fields[name] for name in chosen))

    _wmma_scale = _wave_matrix
    _wmma_scale16 = _wave_matrix

    def _matrix(self) -> list[Part]:
        """MFMA: A and B have a bit each that makes them AGPRs, C and D share one."""
        fields = self.fields
        parts: list[Part] = []
        sources = 0
        for role in self.row.operands:
            dwords = role.dwords
            if not parts:
                texts = operands.vectors(dwords, True)
                parts.append(_part(texts, fields["vdst"], fields["acc_cd"]))
            elif sources < 2:
                parts.append(self._matrix_source(sources, role))
                sources += 1
            elif sources == 2:
                parts.append(self._addend(role))
                sources += 1
            else:
                number = sources - 3
                texts = operands.sources(self.target, role.dwords, role.type, False, False)
                parts.append(_part(texts, fields[f"scale{number}"]))
                sources += 1
        return parts

    def _matrix_source(self, number: int, role: OperandRole) -> Part:
        fields, shape = self.fields, self.row.matrix
        field, acc = fields[f"src{number}"], fields["acc"]
        assert shape is not None
        gathers: list[Gather] = [(field.low, 0xFF, 0), (acc.low + number, 1, 8)]
        if "f8f6f4" not in (shape.a_type, shape.b_type):
            return Part(tuple(gathers), operands.vectors(role.dwords, True))
        chosen = fields["cbsz" if number == 0 else "blgp"]
        gathers.append((chosen.low, chosen.mask, 9))
        texts = Texts(
            lambda index: operands.vector_text(
                index & 0xFF,
                role.dwords * _FORMAT_BITS[min(index >> 9, 4)] // 8,
                "a" if index >> 8 & 1 else "v",
            )
        )
        return Part(tuple(gathers), texts)

    def _addend(self, role: OperandRole) -> Part:
        """C of an MFMA, or the index of a sparse one (always a VGPR)."""
        sparse = self.row.matrix is not None and self.row.matrix.sparse

        def text(index: int) -> str:
            code = index & 0x1FF
            if code < operands.FIRST_VGPR:
                return operands.source_text(self.target, code, role.dwords, role.type)
            prefix = "a" if index >> 9 and not sparse else "v"
            return operands.vector_text(code - operands.FIRST_VGPR, role.dwords, prefix)

        return _part(Texts(text), self.fields["src2"], self.fields["acc_cd"])

    _mfma_scale = _matrix

    def _sop1(self) -> list[Part]:
        parts = []
        for role in self.row.operands:
            if role.access in _WRITES:
                parts.append(self._scalar("sdst", role.dwords))
            elif role.kind is OperandKind.IMMEDIATE:
                parts.append(_part(Texts(immediates.message(self.target)), self.fields["src0"]))
            else:
                parts.append(self._scalar_source("src0", role))
        return parts

    def _sop2(self) -> list[Part]:
        parts: list[Part] = []
        names = iter(("src0", "src1"))
        for role in self.row.operands:
            if role.access in _WRITES:
                parts.append(self._scalar("sdst", role.dwords))
            elif role.kind is OperandKind.IMMEDIATE and OpcodeFlag.INDEX_ON in self.row.flags:
                parts.append(_part(Texts(immediates.indexed), self.fields["src1"]))
            elif role.kind is OperandKind.IMMEDIATE:
                parts.append(_constant(LITERAL))
            else:
                parts.append(self._scalar_source(next(names), role))
        return parts

    _sopc = _sop2

    def _sopk(self) -> list[Part]:
        parts: list[Part] = []
        registers = self.row.flags & {OpcodeFlag.GETREG, OpcodeFlag.SETREG}
        immediate = immediates.hexadecimal
        if registers:
            immediate = immediates.hardware_register(self.target)
        for role in self.row.operands:
            if role.kind is OperandKind.LABEL:
                parts.append(_part(Texts(immediates.plain_decimal), self.fields["simm16"]))
            elif role.kind is not OperandKind.IMMEDIATE:
                parts.append(self._scalar("sdst", role.dwords))
            elif registers and parts and self.row.operands[0].kind is OperandKind.IMMEDIATE:
                parts.append(_constant(LITERAL))
            else:
                parts.append(_part(Texts(immediate), self.fields["simm16"]))
        return parts

    def _sopp(self) -> list[Part]:
        roles = self.row.operands
        if not roles:
            return []
        make = immediates.program_immediate(self.row, self.encoded.words, self.target)
        if roles[0].kind is OperandKind.LABEL:
            make = immediates.plain_decimal
        if roles[0].optional:
            return [_part(Texts(lambda n: make(n) if n else ""), self.fields["simm16"])]
        return [_part(Texts(make), self.fields["simm16"])]

    def _smem(self) -> list[Part]:
        roles = self.row.operands
        parts: list[Part] = []
        last = next((n for n, r in enumerate(roles) if r.kind is OperandKind.OFFSET), len(roles))
        immediate = next((n for n, r in enumerate(roles) if r.kind is OperandKind.IMMEDIATE), last)
        base = min(last, immediate) - 1 if last < len(roles) else -1
        for number, role in enumerate(roles):
            if role.kind is OperandKind.IMMEDIATE:
                first = number == immediate
                make = self._signed_hexadecimal if first else immediates.plain_decimal
                parts.append(_part(Texts(make), self.fields["offset" if first else "sdata"]))
            elif role.kind is OperandKind.OFFSET:
                plain = immediate < last
                parts.append(self._scalar("soffset", 1) if plain else self._scalar_offset())
            elif role.kind is OperandKind.RESOURCE:
                parts.append(self._pair("sbase", 2, 4))
            elif number == base:
                parts.append(self._pair("sbase", 2, 2))
            else:
                parts.append(self._scalar("sdata", role.dwords))
        return parts

    def _signed_hexadecimal(self, value: int) -> str:
        width = self.fields["offset"].width
        if value >> width - 1:
            return f"-{(1 << width) - value:#x}"
        return f"{value:#x}"

    def _scalar_offset(self) -> Part:
        """An immediate, a register, or both."""
        fields = self.fields
        buffer = any(role.kind is OperandKind.RESOURCE for role in self.row.operands)
        offset = fields["offset"]
        signed = hex if buffer and offset.width == 21 else self._signed_hexadecimal

        if "imm" in fields:

            def older(index: int) -> str:
                value, soffset = index & offset.mask, index >> offset.width & 0x7F
                has_immediate, has_register = (
                    index >> offset.width + 7 & 1,
                    index >> offset.width + 8,
                )
                if not has_immediate:
                    code = soffset if has_register else value & 0x7F
                    return operands.scalar_text(self.target, code, 1)
                if not has_register:
                    return signed(value)
                return f"{operands.scalar_text(self.target, soffset, 1)} offset:{signed(value)}"

            order = (offset, fields["soffset"], fields["imm"], fields["soffset_en"])
            return _part(Texts(older), *order)

        always = "scalar_offset_always" in self.traits

        def newer(index: int) -> str:
            value, code = index & offset.mask, index >> offset.width
            register = operands.scalar_text(self.target, code, 1)
            if register == "null":
                return signed(value)
            return f"{register} offset:{signed(value)}" if value or always else register

        return _part(Texts(newer), offset, fields["soffset"])

    def _ds(self) -> list[Part]:
        row, parts = self.row, []
        data = iter(("data0", "data1"))
        has_address = any(role.kind is OperandKind.ADDRESS for role in row.operands)
        for role in row.operands:
            if role.access in _WRITES:
                parts.append(self._vector_field("vdst", role.dwords))
            elif role.kind is OperandKind.ADDRESS or not (has_address or row.memory_form.by_lane):
                parts.append(_part(operands.vectors(1), self.fields["addr"]))
            else:
                parts.append(self._vector_field(next(data), role.dwords))
        return parts

    def _flat(self) -> list[Part]:
        row, parts = self.row, []
        to_lds = row.memory is not None and row.memory.kind is MemoryKind.LOAD_TO_LDS
        for role in row.operands:
            if role.kind is OperandKind.ADDRESS:
                parts.append(self._flat_address())
            elif role.kind is OperandKind.SCALAR_ADDRESS:
                if self.shape.name != "FLAT" or "flat_saddr" in self.traits:
                    parts.append(self._saddr(role.optional))
            elif role.access in _WRITES and role.optional:
                parts.append(self._returned(role))
            elif role.access in _WRITES or to_lds:
                parts.append(self._vector_field("vdst", role.dwords))
            else:
                parts.append(self._vector_field("data", role.dwords))
        return parts

    _global = _flat
    _scratch = _flat

    def _returned(self, role: OperandRole) -> Part:
        """The old value, which an atomic writes with a flag only."""
        fields = self.fields
        flag = next(fields[name] for name in ("glc", "sc0", "th") if name in fields)
        texts = operands.vectors(role.dwords, "acc" in fields)
        gathers = [(fields["vdst"].low, 0xFF, 0)]
        if "acc" in fields:
            gathers.append((fields["acc"].low, 1, 8))
        gathers.append((flag.low, 1, 9))
        shown = Texts(lambda index: texts[index & 0x1FF] if index >> 9 else "")
        return Part(tuple(gathers), shown)

    def _saddr(self, optional: bool) -> Part:
        none = "" if optional else "off"
        scratch = self.row.memory is not None and self.row.memory.space is Space.SCRATCH
        dwords = 1 if scratch else 2

        def text(code: int) -> str:
            if code == _NO_SADDR_OF_GFX9 or (code == _NO_SADDR and "null_at_124" in self.traits):
                return none
            return operands.scalar_text(self.target, code, dwords)

        return _part(Texts(text), self.fields["saddr"])

    def _flat_address(self) -> Part:
        fields = self.fields
        if self.shape.name == "SCRATCH":
            if "sve" in fields:
                shown = Texts(lambda i: operands.vector_text(i & 0xFF, 1) if i >> 8 else "off")
                return _part(shown, fields["addr"], fields["sve"])
            shown = Texts(
                lambda i: (
                    operands.vector_text(i & 0xFF, 1) if i >> 8 == _NO_SADDR_OF_GFX9 else "off"
                )
            )
            return _part(shown, fields["addr"], fields["saddr"])
        optional = any(role.kind is OperandKind.SCALAR_ADDRESS for role in self.row.operands)
        if not optional or (self.shape.name == "FLAT" and "flat_saddr" not in self.traits):
            return _part(operands.vectors(2), fields["addr"])

        def text(index: int) -> str:
            code = index >> 8
            none = code == _NO_SADDR_OF_GFX9 or (code == _NO_SADDR and "null_at_124" in self.traits)
            return operands.vector_text(index & 0xFF, 2 if none else 1)

        return _part(Texts(text), fields["addr"], fields["saddr"])

    def _mubuf(self) -> list[Part]:
        parts: list[Part] = []
        fields = self.fields
        for role in self.row.operands:
            if role.kind is OperandKind.ADDRESS:
                address = fields.get("vaddr") or fields["addr"]
                shown = Texts(_buffer_address)
                parts.append(_part(shown, address, fields["offen"], fields["idxen"]))
            elif role.kind is OperandKind.RESOURCE:
                field = fields["rsrc"]
                parts.append(self._pair("rsrc", 4 if field.width == 5 else 1, 4))
            elif role.kind is OperandKind.OFFSET:
                scalar = fields["soffset"].width == 7
                parts.append(
                    self._scalar("soffset", 1)
                    if scalar
                    else _part(operands.scalar_sources(self.target, 1, "b32"), fields["soffset"])
                )
            elif "tfe" in fields:
                parts.append(self._buffer_data(role.dwords))
            else:
                parts.append(self._vector_field("vdata", role.dwords))
        return parts

    def _buffer_data(self, dwords: int) -> Part:
        shown = Texts(lambda i: operands.vector_text(i & 0xFF, dwords + (i >> 8)))
        return _part(shown, self.fields["vdata"], self.fields["tfe"])

    def _vimage(self) -> list[Part]:
        parts: list[Part] = []
        for number, role in enumerate(self.row.operands):
            field = self.fields[f"vaddr{number}"]
            texts = Texts(
                lambda code, size=role.dwords: (
                    "" if code == _NO_SADDR else operands.scalar_text(self.target, code, size)
                )
            )
            parts.append(_part(texts, field))
        return parts

    def half_of_pair(self, half: str) -> TextPlan:
        """One half of a VOPD pair: `x` or `y`."""
        fields, parts, sources = self.fields, [], 0
        wide = "negx" in fields
        for role in self.row.operands:
            if role.kind is OperandKind.IMMEDIATE:
                parts.append(_constant(LITERAL))
            elif role.access in _WRITES:
                parts.append(self._pair_destination(half, role.dwords))
            elif role.kind is OperandKind.LANE_MASK:
                field = fields[f"vsrc{half}{sources}"]
                parts.append(_part(operands.scalars(self.target, self.mask_dwords), field))
                sources += 1
            else:
                name = f"src{half}{sources}" if sources == 0 else f"vsrc{half}{sources}"
                field = fields[name]
                base = 0 if sources == 0 else operands.FIRST_VGPR
                texts = operands.sources(self.target, role.dwords, role.type, False, False)
                shown = Texts(
                    lambda n, b=base, t=texts: t[
                        (n & 0xFF if b else n & 0x1FF) + b | (n >> (8 if b else 9) & 1) << 11
                    ]
                )
                gathers = [(field.low, field.mask, 0)]
                if wide:
                    gathers.append((fields[f"neg{half}"].low + sources, 1, field.width))
                parts.append(Part(tuple(gathers), shown))
                sources += 1
        trailing = None
        if "bitop3" in self.encoded.words:
            trailing = _part(Texts(modifiers.BITOP3.text), fields[f"vsrc{half}2"])
        mnemonic = self.row.mnemonics[self.target]
        return TextPlan(mnemonic, tuple(parts), trailing, self.encoded, self._slots(parts))

    def _pair_destination(self, half: str, dwords: int) -> Part:
        fields = self.fields
        if half == "y" and fields["vdsty"].width == 7:  # the other parity than X
            x, y = fields["vdstx"], fields["vdsty"]
            shown = Texts(lambda n: operands.vector_text((n >> 1) << 1 | (~n & 1), dwords))
            return Part(((x.low, 1, 0), (y.low, y.mask, 1)), shown)
        return _part(operands.vectors(dwords), fields[f"vdst{half}"])

    # Modifiers

    def _modifiers(self) -> tuple[list[Gather], Texts]:
        own = modifiers.joined(self.shape, self._own_modifiers())
        if self.behind is None:
            return own
        behind = modifiers.joined(self.behind, self._modifiers_behind(), self.base)
        width = sum(mask.bit_length() for _, mask, _ in own[0])
        first, second = own[1], behind[1]
        gathers = own[0] + [(shift, mask, at + width) for shift, mask, at in behind[0]]
        ones = (1 << width) - 1
        return gathers, Texts(lambda index: first[index & ones] + second[index >> width])

    def _modifiers_behind(self) -> Sequence[modifiers.Modifier]:
        assert self.behind is not None
        if self.following == "SDWA":
            sources = sum(role.access not in _WRITES for role in self.row.operands)
            masks = sum(
                role.kind is OperandKind.LANE_MASK and role.access not in _WRITES
                for role in self.row.operands
            )
            return modifiers.sdwa(
                self.row, min(sources - masks, 2), "sdwa_source" in self.encoded.words
            )
        if self.following == "DPP":
            return modifiers.dpp("dpp_fi" in self.traits, "new_broadcast" in self.traits)
        return modifiers.dpp8(self.following == "DPP8_FI")

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        name, row = self.shape.name, self.row
        if name in ("DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF"):
            if name == "DS" or row.memory is not None or row.role is Role.PREFETCH:
                return modifiers.memory(self.shape, row)
            return modifiers.cache_policy(self.shape, row)
        if name == "SMEM":
            return self._smem_modifiers()
        if row.form == "MFMA":
            return modifiers.matrix(self.shape, row)
        if row.form == "WMMA":
            return modifiers.wave_matrix(self.shape, row, self.encoded.words)
        if name == "VOP3":
            return self._vop3_modifiers()
        if name == "VOP3P" and row.cost_class != "accvgpr":
            sources = sum(role.access not in _WRITES for role in row.operands)
            return modifiers.packed(sources, "mix" in self.encoded.words)
        return []

    def _smem_modifiers(self) -> list[modifiers.Modifier]:
        if self.row.memory is None:
            return []
        return modifiers.cache_policy(self.shape, self.row)

    def _vop3_modifiers(self) -> list[modifiers.Modifier]:
        row = self.row
        found: list[modifiers.Modifier] = []
        if "bitop3" in self.encoded.words:
            found.append(modifiers.BITOP3)
        for word in sorted(self.encoded.words & modifiers.SELECTIONS.keys()):
            if "byte_select" in self.traits:
                return [modifiers.SELECTIONS[word], modifiers.CLAMP, modifiers.OMOD]
        carry = self._has_carry()
        sources = sum(role.access not in _WRITES for role in row.operands)
        if row.operands and row.operands[-1].access is OperandAccess.READ_WRITE:
            sources += len(row.operands) == 2
        if "swap" in self.encoded.words:
            return [modifiers.SWAP]
        if "permlane" in self.encoded.words:
            return [modifiers.op_sel(sources - 1)]
        if not carry and not self.encoded.halves:
            found.append(modifiers.op_sel(sources, "op_sel4" in self.encoded.words))
        found.append(modifiers.CLAMP)
        if "bitop3" not in self.encoded.words:
            found.append(modifiers.OMOD)
        return found


def _buffer_address(index: int) -> str:
    count = (index >> 8 & 1) + (index >> 9)
    return operands.vector_text(index & 0xFF, count) if count else "off"


@cache
def plan(
    target: str, wave_lanes: int, shape: Format, encoded: EncodedRow, following: str
) -> TextPlan:
    """The plan of a row in a format, with the word `following` it (`DPP`, `DPP8`, `DPP8_FI`,
    `SDWA` or "")."""
    return _Builder(target, wave_lanes, shape, encoded, following).build()


@cache
def pair_plan(
    target: str, wave_lanes: int, shape: Format, encoded: EncodedRow, half: str
) -> TextPlan:
    """The plan of one half (`x` or `y`) of a pair."""
    return _Builder(target, wave_lanes, shape, encoded, "").half_of_pair(half)


__all__ = ["Part", "TextPlan", "encoded_rows", "pair_plan", "plan"]
