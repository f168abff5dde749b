"""Plans of the two operations of a VOPD pair, which issue together."""

from __future__ import annotations

from wavecast.isa.encoding import modifiers, operands
from wavecast.isa.encoding.formats import Format
from wavecast.isa.encoding.opcodes import EncodedRow
from wavecast.isa.encoding.operands import LITERAL, Texts
from wavecast.isa.encoding.plan_builder import WRITES, PlanBuilder
from wavecast.isa.encoding.text_plan import Part, constant, gather
from wavecast.isa.opcode import OperandKind


class PairPlanBuilder(PlanBuilder):
    """The plan of one half, `x` or `y`, of a pair."""

    def __init__(
        self, target: str, wave_lanes: int, shape: Format, encoded: EncodedRow, half: str
    ) -> None:
        super().__init__(target, wave_lanes, shape, encoded, "")
        self.half = half

    def _suffix(self) -> str:
        return ""

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        return []

    def _modifiers(self) -> tuple[Part, ...]:
        if "bitop3" not in self.encoded.words:
            return super()._modifiers()
        field = self.fields[f"vsrc{self.half}2"]
        return (gather(Texts(modifiers.BITOP3.text), field),)

    def _operands(self) -> list[Part]:
        fields, half, sources = self.fields, self.half, 0
        parts: list[Part] = []
        wide = "negx" in fields
        for role in self.row.operands:
            if role.kind is OperandKind.IMMEDIATE:
                parts.append(constant(LITERAL))
            elif role.access in WRITES:
                parts.append(self._destination(role.dwords))
            elif role.kind is OperandKind.LANE_MASK:
                field = fields[f"vsrc{half}{sources}"]
                parts.append(gather(operands.scalars(self.target, self.mask_dwords), field))
                sources += 1
            else:
                name = f"src{half}{sources}" if sources == 0 else f"vsrc{half}{sources}"
                field = fields[name]
                base = 0 if sources == 0 else operands.FIRST_VGPR
                texts = operands.sources(self.target, role.dwords, role.type, False, False)
                operand_texts = Texts(
                    lambda n, b=base, t=texts: t[
                        (n & 0xFF if b else n & 0x1FF) + b | (n >> (8 if b else 9) & 1) << 11
                    ]
                )
                gathers = [(field.low, field.mask, 0)]
                if wide:
                    gathers.append((fields[f"neg{half}"].low + sources, 1, field.width))
                parts.append(Part(tuple(gathers), operand_texts))
                sources += 1
        return parts

    def _destination(self, dwords: int) -> Part:
        fields, half = self.fields, self.half
        if half == "y" and fields["vdsty"].width == 7:  # the other parity than X
            x, y = fields["vdstx"], fields["vdsty"]
            texts = Texts(lambda n: self._vector((n >> 1) << 1 | (~n & 1), dwords))
            return Part(((x.low, 1, 0), (y.low, y.mask, 1)), texts)
        return gather(self._vectors(dwords), fields[f"vdst{half}"])
