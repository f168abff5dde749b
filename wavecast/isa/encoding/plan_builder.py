"""What builders of text plans share: fields of registers, and the order of a plan's parts.

A subclass per family of formats gives the operands and the modifiers: `vector_plans`,
`matrix_plans`, `pair_plans`, `scalar_plans`, `memory_plans`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from wavecast.isa.encoding import modifiers, operands
from wavecast.isa.encoding.formats import Format, layout, traits
from wavecast.isa.encoding.opcodes import EncodedRow
from wavecast.isa.encoding.operands import Texts
from wavecast.isa.encoding.text_plan import Part, TextPlan, constant, gather
from wavecast.isa.opcode import OperandAccess, OperandKind

WRITES = (OperandAccess.WRITE, OperandAccess.READ_WRITE)

_SLOTS = {
    **dict.fromkeys(("src0", "srcx0", "srcy0", "addr", "vaddr"), 0),
    **dict.fromkeys(("src1", "vsrcx1", "vsrcy1", "data0", "data"), 1),
    **dict.fromkeys(("src2", "vsrcx2", "vsrcy2", "data1"), 2),
    **dict.fromkeys(("vdst", "vdstx", "vdsty", "vdata"), 3),
}
"""Field -> position of its bits in the immediate of `s_set_vgpr_msb`. Scales of matrix instructions
have none: they are in the first 256 registers.
Source: LLVM AMDGPUBaseInfo.cpp, getVGPRLoweringOperandTables."""


class PlanBuilder(ABC):
    """Makes the plan of one row in one format.

    `following` is the format of the word behind the instruction (`DPP`, `DPP8`, `DPP8_FI`, `SDWA`)
    or "".
    """

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
        self.base = 32 * shape.words
        self.behind: Format | None = None
        if following:
            self.behind = layout(target, "DPP8" if following == "DPP8_FI" else following)

    @abstractmethod
    def _operands(self) -> list[Part]:
        """The printed operands in order."""

    @abstractmethod
    def _own_modifiers(self) -> list[modifiers.Modifier]:
        """The modifiers of the format's own fields, in printed order."""

    def _suffix(self) -> str:
        """What the mnemonic ends with, without its underscore; "" for nothing."""
        return self.encoded.suffix

    def _rest(self) -> int:
        """The bits that assemblers set where no part decides them."""
        return self.shape.rest

    def _modifiers(self) -> tuple[Part, ...]:
        """The parts of all modifiers."""
        return modifiers.parts(self.shape, self._own_modifiers())

    def build(self) -> TextPlan:
        """The plan. Raises TableError where the target does not have the word behind."""
        parts = self._operands()
        mnemonic = self.row.mnemonics[self.target]
        if suffix := self._suffix():
            mnemonic = f"{mnemonic}_{suffix}"
        slots = self._slots(parts)
        return TextPlan(mnemonic, tuple(parts), self._modifiers(), slots, self._rest())

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

    def _scalar(self, field: str, dwords: int) -> Part:
        return gather(operands.scalars(self.target, dwords), self.fields[field])

    def _pair(self, field: str, scale: int, dwords: int) -> Part:
        texts = Texts(lambda code: operands.scalar_text(self.target, code * scale, dwords))
        return gather(texts, self.fields[field])

    def _mask(self) -> Part:
        return constant("vcc" if self.mask_dwords == 2 else "vcc_lo")

    def _vector(self, number: int, dwords: int, prefix: str = "v") -> str:
        return operands.vector_text(self.target, number, dwords, prefix)

    def _vectors(self, dwords: int, accumulators: bool = False) -> Texts:
        return operands.vectors(self.target, dwords, accumulators)

    def _vector_field(self, field: str, dwords: int) -> Part:
        """A VGPR, or an AGPR where the format has a bit for it."""
        if "acc" in self.fields and self.fields["acc"].width == 1:
            return gather(self._vectors(dwords, True), self.fields[field], self.fields["acc"])
        return gather(self._vectors(dwords), self.fields[field])
