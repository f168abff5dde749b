"""Plans of scalar arithmetic and of program control: SOP1, SOP2, SOPC, SOPK and SOPP."""

from __future__ import annotations

from dataclasses import replace

from wavecast.isa.encoding import immediates, modifiers, operands
from wavecast.isa.encoding.operands import LITERAL, Texts
from wavecast.isa.encoding.plan_builder import WRITES, PlanBuilder
from wavecast.isa.encoding.text_plan import Part, constant, gather, immediate
from wavecast.isa.opcode import OpcodeFlag, OperandKind, OperandRole


class ScalarPlanBuilder(PlanBuilder):
    """The plan of a scalar instruction: operands of the row in order, no modifiers."""

    def _operands(self) -> list[Part]:
        by_format = {
            "SOP1": self._sop1,
            "SOP2": self._sop2,
            "SOPC": self._sop2,
            "SOPK": self._sopk,
            "SOPP": self._sopp,
        }
        return by_format[self.shape.name]()

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        return []

    def _scalar_source(self, field: str, role: OperandRole) -> Part:
        dwords = role.dwords or self.mask_dwords
        return gather(operands.scalar_sources(self.target, dwords, role.type), self.fields[field])

    def _sop1(self) -> list[Part]:
        parts = []
        for role in self.row.operands:
            if role.access in WRITES:
                parts.append(self._scalar("sdst", role.dwords))
            elif role.kind is OperandKind.IMMEDIATE:
                parts.append(immediate(immediates.message(self.target), self.fields["src0"]))
            else:
                parts.append(self._scalar_source("src0", role))
        return parts

    def _sop2(self) -> list[Part]:
        parts: list[Part] = []
        names = iter(("src0", "src1"))
        for role in self.row.operands:
            if role.access in WRITES:
                parts.append(self._scalar("sdst", role.dwords))
            elif role.kind is OperandKind.IMMEDIATE and OpcodeFlag.INDEX_ON in self.row.flags:
                parts.append(immediate(immediates.INDEXED, self.fields["src1"]))
            elif role.kind is OperandKind.IMMEDIATE:
                parts.append(constant(LITERAL))
            else:
                parts.append(self._scalar_source(next(names), role))
        return parts

    def _sopk(self) -> list[Part]:
        parts: list[Part] = []
        registers = self.row.flags & {OpcodeFlag.GETREG, OpcodeFlag.SETREG}
        number_format = immediates.HEXADECIMAL
        if registers:
            number_format = immediates.hardware_register(self.target)
        for role in self.row.operands:
            if role.kind is OperandKind.LABEL:
                parts.append(immediate(immediates.PLAIN_DECIMAL, self.fields["simm16"]))
            elif role.kind is not OperandKind.IMMEDIATE:
                parts.append(self._scalar("sdst", role.dwords))
            elif registers and parts and self.row.operands[0].kind is OperandKind.IMMEDIATE:
                parts.append(constant(LITERAL))
            else:
                parts.append(immediate(number_format, self.fields["simm16"]))
        return parts

    def _sopp(self) -> list[Part]:
        roles = self.row.operands
        if not roles:
            return []
        number_format = immediates.program_immediate(self.row, self.encoded.words, self.target)
        if roles[0].kind is OperandKind.LABEL:
            number_format = immediates.PLAIN_DECIMAL
        part = immediate(number_format, self.fields["simm16"])
        if roles[0].optional:
            texts = Texts(lambda n: number_format.text(n) if n else "")
            part = replace(part, texts=texts, optional=True)
        return [part]
