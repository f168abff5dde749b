"""Plans of matrix instructions: MFMA, WMMA and both with scales."""

from __future__ import annotations

from wavecast.isa.encoding import modifiers, operands
from wavecast.isa.encoding.operands import Texts
from wavecast.isa.encoding.text_plan import Gather, Part, gather
from wavecast.isa.encoding.vector_plans import VectorPlanBuilder
from wavecast.isa.opcode import OperandRole

_FORMAT_BITS = (8, 8, 6, 6, 4)
"""Bits of an element by the number of its format: FP8, BF8, FP6, BF6, FP4."""


class MfmaPlanBuilder(VectorPlanBuilder):
    """The plan of an MFMA: A and B have a bit each that makes them AGPRs, C and D share one."""

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        return modifiers.matrix(self.shape, self.row)

    def _operands(self) -> list[Part]:
        fields = self.fields
        parts: list[Part] = []
        sources = 0
        for role in self.row.operands:
            dwords = role.dwords
            if not parts:
                parts.append(self._sum(dwords))
            elif sources < 2:
                parts.append(self._matrix_source(sources, role))
                sources += 1
            elif sources == 2:
                parts.append(self._addend(role))
                sources += 1
            else:
                number = sources - 3
                texts = operands.sources(self.target, role.dwords, role.type, False, False)
                parts.append(gather(texts, fields[f"scale{number}"]))
                sources += 1
        return parts

    def _sum(self, dwords: int) -> Part:
        """D, the accumulation registers where nothing else can be."""
        fields = self.fields
        if "accumulators_only" in self.traits:
            return gather(Texts(lambda i: self._vector(i, dwords, "a")), fields["vdst"])
        return gather(self._vectors(dwords, True), fields["vdst"], fields["acc_cd"])

    def _matrix_source(self, number: int, role: OperandRole) -> Part:
        fields, shape = self.fields, self.row.matrix
        field, acc = fields[f"src{number}"], fields["acc"]
        assert shape is not None
        gathers: list[Gather] = [(field.low, 0x1FF, 0), (acc.low + number, 1, 9)]
        narrow = "f8f6f4" in (shape.a_type, shape.b_type)
        if narrow:
            selector = fields["cbsz" if number == 0 else "blgp"]
            gathers.append((selector.low, selector.mask, 10))

        def text(index: int) -> str:
            dwords = role.dwords
            if narrow:
                dwords = dwords * _FORMAT_BITS[min(index >> 10, 4)] // 8
            return self._vector(index & 0xFF, dwords, "a" if index >> 9 & 1 else "v")

        return Part(tuple(gathers), Texts(text), usual=operands.FIRST_VGPR)

    def _addend(self, role: OperandRole) -> Part:
        """C of an MFMA, or the index of a sparse one (always a VGPR)."""
        sparse = self.row.matrix is not None and self.row.matrix.sparse
        always = "accumulators_only" in self.traits

        def text(index: int) -> str:
            code = index & 0x1FF
            if code < operands.FIRST_VGPR:
                return operands.source_text(self.target, code, role.dwords, role.type)
            prefix = "a" if always or (index >> 9 and not sparse) else "v"
            return self._vector(code - operands.FIRST_VGPR, role.dwords, prefix)

        return gather(Texts(text), self.fields["src2"], self.fields["acc_cd"])


class WmmaPlanBuilder(VectorPlanBuilder):
    """The plan of a WMMA: D, A, B, C or the index of a sparse one, and the scales of A and B."""

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        return modifiers.wave_matrix(self.shape, self.row, self.encoded.words)

    def _operands(self) -> list[Part]:
        fields = self.fields
        parts: list[Part] = []
        for number, role in enumerate(self.row.operands):
            if not parts:
                parts.append(gather(self._vectors(role.dwords), fields["vdst"]))
            elif number < 3 and "fmt" in self.encoded.words:
                parts.append(self._f8f6f4_source(number - 1, role))
            else:
                name = f"src{number - 1}" if number < 4 else f"scale{number - 4}"
                texts = operands.sources(self.target, role.dwords, role.type, False, False)
                parts.append(gather(texts, fields[name]))
        return parts

    def _f8f6f4_source(self, number: int, role: OperandRole) -> Part:
        """A or B of a WMMA whose fields tell the format of its elements."""
        fields = self.fields
        names = ["fmt_a"] if number == 0 else ["fmt_b", "fmt_b2"]

        def text(index: int) -> str:
            code = (index & 0x1FF) - operands.FIRST_VGPR
            if code < 0:
                raise operands.Undecodable("a matrix outside vector registers")
            dwords = role.dwords * _FORMAT_BITS[min(index >> 9, 4)] // 8
            return self._vector(code, dwords)

        return gather(Texts(text), fields[f"src{number}"], *(fields[name] for name in names))
