"""Plans of vector arithmetic: VOP1, VOP2, VOPC, VOP3 and VOP3P, alone or with a word behind them
that moves data between lanes (DPP, DPP8) or selects bytes (SDWA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wavecast.isa.encoding import modifiers, operands
from wavecast.isa.encoding.formats import BitField
from wavecast.isa.encoding.operands import LITERAL, Texts
from wavecast.isa.encoding.plan_builder import WRITES, PlanBuilder
from wavecast.isa.encoding.text_plan import Gather, Part, constant, gather
from wavecast.isa.opcode import OperandAccess, OperandKind, OperandRole

_ONE_WORD = frozenset({"VOP1", "VOP2", "VOPC"})


class VectorPlanBuilder(PlanBuilder):
    """The plan of a vector instruction: destinations, then sources in order."""

    @property
    def narrow(self) -> bool:
        """Whether the format has one word, so that a half is a bit of the register number."""
        return self.shape.name in _ONE_WORD

    def _suffix(self) -> str:
        suffix, name = self.encoded.suffix, self.shape.name
        if not self.following:
            return suffix
        kind = "sdwa" if self.following == "SDWA" else "dpp"
        if name == "VOP3P" or (not suffix and name == "VOP3"):
            return f"e64_{kind}"
        return f"{suffix}_{kind}" if name == "VOP3" and suffix else kind

    def _rest(self) -> int:
        """A comparison that only writes EXEC names it as its result (gfx10 and later)."""
        if self.shape.name == "VOP3" and self.row.form == "VOPC":
            return self.shape.rest | operands.EXEC << self.fields["vdst"].low
        return self.shape.rest

    def _operands(self) -> list[Part]:
        parts: list[Part] = []
        sources = 0
        for position, role in enumerate(self.row.operands):
            if role.access in WRITES and not parts:
                parts.append(self._first_result(position, role))
            elif role.kind is OperandKind.LANE_MASK and role.access is OperandAccess.WRITE:
                plain = self.shape.name != "VOP3"
                parts.append(self._mask() if plain else self._scalar("sdst", self.mask_dwords))
            elif role.kind is OperandKind.LANE_MASK and self.shape.name != "VOP3":
                parts.append(self._mask())
            elif role.kind is OperandKind.IMMEDIATE:
                wide = self.row.operands[0].dwords == 2
                parts.append(constant(operands.LITERAL64 if wide else LITERAL))
            else:
                parts.append(self._source(sources, position, role))
                sources += 1
        return parts

    def _first_result(self, position: int, role: OperandRole) -> Part:
        if self.shape.name == "VOPC":
            if self.behind is not None and self.following == "SDWA":
                field = self.behind.fields["sdst"]
                texts = Texts(
                    lambda index: (
                        operands.scalar_text(self.target, index & 0x7F, self.mask_dwords)
                        if index >> 7
                        else ("vcc" if self.mask_dwords == 2 else "vcc_lo")
                    )
                )
                gathers = ((field.low + self.base, 0x7F, 0), (field.low + 7 + self.base, 1, 7))
                return Part(gathers, texts)
            return self._mask()
        return self._destination(position, role)

    def _destination(self, position: int, role: OperandRole) -> Part:
        field = self.fields["vdst"]
        if role.kind is OperandKind.LANE_MASK:
            return self._scalar("vdst", self.mask_dwords)
        if role.kind is OperandKind.SCALAR:
            return self._scalar("vdst", role.dwords)
        if position in self.encoded.accumulators:
            return gather(Texts(lambda n: self._vector(n, role.dwords, "a")), field)
        if position in self.encoded.halves:
            if self.narrow:
                return gather(operands.halves(True), field)
            high = BitField(self.fields["op_sel"].low + 3, 1)
            return Part(((field.low, field.mask, 0), (high.low, 1, 9)), operands.halves(False))
        return gather(self._vectors(role.dwords), field)

    def _source(self, number: int, position: int, role: OperandRole) -> Part:
        """Source `number` of a vector instruction."""
        if number == 0 and self.behind is not None:
            return self._source_behind(0, position, role)
        if number == 1 and self.behind is not None and self.following == "SDWA":
            return self._source_behind(1, position, role)
        field = self.fields[f"src{number}"]
        dwords = role.dwords or self.mask_dwords
        if position in self.encoded.accumulators:
            texts = Texts(lambda n: self._vector(n & 0xFF, dwords, "a"))
            return replace(gather(texts, field), usual=operands.FIRST_VGPR)
        half = position in self.encoded.halves
        texts = operands.sources(self.target, dwords, role.type, half, self.narrow)
        gathers: list[Gather] = [(field.low, field.mask, 0)]
        if field.width == 8:  # a vector register
            texts = operands.halves(True) if half else self._vectors(dwords)
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
        signed_texts = Texts(
            lambda index: operands.with_modifiers(texts[index & 0xFF], index >> 8, constant=False)
        )
        gathers = (
            (field.low, 0xFF, 0),
            (absolute.low + self.base, 1, 8),
            (negate.low + self.base, 1, 9),
        )
        return Part(gathers, signed_texts)

    def _source_behind(self, number: int, position: int, role: OperandRole) -> Part:
        """Source 0 of DPP and both sources of SDWA, with the modifiers of the word behind."""
        behind = self.behind
        assert behind is not None
        half = position in self.encoded.halves
        if self.following != "SDWA":
            field = BitField(behind.fields["src0"].low + self.base, 8)
            texts = operands.halves(self.narrow) if half else self._vectors(role.dwords)
            if self.narrow and "neg0" in behind.fields:
                return self._with_signs(texts, field, 0)
            gathers: list[Gather] = [(field.low, 0xFF, 0)]
            if half and self.shape.name == "VOP3":
                gathers.append((self.fields["op_sel"].low, 1, 9))
            if self._takes_signs(role):
                if not self._has_carry():
                    gathers.append((self.fields["abs"].low, 1, 10))
                gathers.append((self.fields["neg"].low, 1, 11))
            modified_texts = Texts(
                lambda index: operands.with_modifiers(texts[index & 0x3FF], index >> 10, False)
            )
            return Part(tuple(gathers), modified_texts)
        source_field = behind.fields["src0"] if number == 0 else self.fields["src1"]
        low = source_field.low + (self.base if number == 0 else 0)

        def text(index: int) -> str:
            code = index & 0xFF
            plain = (
                operands.source_text(self.target, code, role.dwords)
                if index >> 8 & 1
                else self._vector(code, role.dwords)
            )
            plain = operands.with_modifiers(plain, index >> 9 & 3, constant=False)
            return f"sext({plain})" if index >> 11 & 1 else plain

        flags = [f"{name}{number}" for name in ("scalar", "abs", "neg", "sext")]
        gathers = [(low, 0xFF, 0)] + [
            (behind.fields[name].low + self.base, 1, 8 + bit) for bit, name in enumerate(flags)
        ]
        return Part(tuple(gathers), Texts(text))

    def _modifiers(self) -> tuple[Part, ...]:
        row_parts = modifiers.parts(self.shape, self._own_modifiers())
        if self.behind is None:
            return row_parts
        return row_parts + modifiers.parts(self.behind, self._modifiers_behind(), self.base)

    def _modifiers_behind(self) -> Sequence[modifiers.Modifier]:
        assert self.behind is not None
        if self.following == "SDWA":
            sources = sum(role.access not in WRITES for role in self.row.operands)
            masks = sum(
                role.kind is OperandKind.LANE_MASK and role.access not in WRITES
                for role in self.row.operands
            )
            return modifiers.sdwa(
                self.row, min(sources - masks, 2), "sdwa_source" in self.encoded.words
            )
        if self.following == "DPP":
            return modifiers.dpp("dpp_fi" in self.traits, "new_broadcast" in self.traits)
        return modifiers.dpp8(self.following == "DPP8_FI")

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        row = self.row
        if self.shape.name == "VOP3":
            return self._vop3_modifiers()
        if self.shape.name == "VOP3P" and row.cost_class != "accvgpr":
            sources = sum(role.access not in WRITES for role in row.operands)
            return modifiers.vop3p(sources, "mix" in self.encoded.words)
        return []

    def _vop3_modifiers(self) -> list[modifiers.Modifier]:
        row = self.row
        entries: list[modifiers.Modifier] = []
        if "bitop3" in self.encoded.words:
            entries.append(modifiers.BITOP3)
        for word in sorted(self.encoded.words & modifiers.SELECTIONS.keys()):
            if "byte_select" in self.traits:
                return [modifiers.SELECTIONS[word], modifiers.CLAMP, modifiers.OMOD]
        carry = self._has_carry()
        sources = sum(role.access not in WRITES for role in row.operands)
        if row.operands and row.operands[-1].access is OperandAccess.READ_WRITE:
            sources += len(row.operands) == 2
        if "swap" in self.encoded.words:
            return [modifiers.SWAP]
        if "permlane" in self.encoded.words:
            return [modifiers.PERMLANE]
        if not carry and not self.encoded.halves:
            entries.append(modifiers.op_sel(sources, "op_sel4" in self.encoded.words))
        entries.append(modifiers.CLAMP)
        if "bitop3" not in self.encoded.words:
            entries.append(modifiers.OMOD)
        return entries
