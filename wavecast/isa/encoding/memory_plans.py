"""Plans of memory instructions: SMEM, DS, FLAT, GLOBAL, SCRATCH, MUBUF and VIMAGE."""

from __future__ import annotations

from dataclasses import replace

from wavecast.isa.encoding import immediates, modifiers, operands
from wavecast.isa.encoding.operands import Texts
from wavecast.isa.encoding.plan_builder import WRITES, PlanBuilder
from wavecast.isa.encoding.text_plan import Part, gather, immediate
from wavecast.isa.opcode import MemoryKind, OperandKind, OperandRole, Role, Space

_NO_SADDR_OF_GFX9 = 0x7F
_NO_SADDR = 0x7C
_NULL = 0x7D


class ScalarMemoryPlanBuilder(PlanBuilder):
    """The plan of an SMEM instruction."""

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        if self.row.memory is None:
            return []
        return modifiers.scale_offset(self.shape) + modifiers.cache_policy(self.shape, self.row)

    def _operands(self) -> list[Part]:
        roles = self.row.operands
        parts: list[Part] = []
        last = next((n for n, r in enumerate(roles) if r.kind is OperandKind.OFFSET), len(roles))
        numbered = next((n for n, r in enumerate(roles) if r.kind is OperandKind.IMMEDIATE), last)
        base = min(last, numbered) - 1 if last < len(roles) else -1
        for number, role in enumerate(roles):
            if role.kind is OperandKind.IMMEDIATE:
                first = number == numbered
                offset_format = self._signed_offset() if first else immediates.PLAIN_DECIMAL
                parts.append(immediate(offset_format, self.fields["offset" if first else "sdata"]))
            elif role.kind is OperandKind.OFFSET:
                plain = numbered < last
                parts.append(self._scalar("soffset", 1) if plain else self._scalar_offset())
            elif role.kind is OperandKind.RESOURCE:
                parts.append(self._pair("sbase", 2, 4))
            elif number == base:
                parts.append(self._pair("sbase", 2, 2))
            else:
                parts.append(self._scalar("sdata", role.dwords))
        return parts

    def _signed_offset(self) -> immediates.Immediate:
        width = self.fields["offset"].width

        def text(value: int) -> str:
            return f"-{(1 << width) - value:#x}" if value >> width - 1 else f"{value:#x}"

        return immediates.Immediate(
            text, lambda literal: immediates.number(literal) & (1 << width) - 1
        )

    def _scalar_offset(self) -> Part:
        """An immediate, a register, or both (`s5 offset:0x10`)."""
        fields = self.fields
        buffer = any(role.kind is OperandKind.RESOURCE for role in self.row.operands)
        offset = fields["offset"]
        offset_format = self._signed_offset()
        if buffer and offset.width == 21:
            offset_format = immediates.HEXADECIMAL
        codes = operands.scalar_codes(self.target)

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
                    return offset_format.text(value)
                register = operands.scalar_text(self.target, soffset, 1)
                return f"{register} offset:{offset_format.text(value)}"

            def older_index(text: str) -> int:
                register, both, number = text.partition(" offset:")
                if not both and register not in codes:
                    return offset_format.value(text) | 1 << offset.width + 7
                if not both:
                    return codes[register]
                return offset_format.value(number) | (codes[register] | 3 << 7) << offset.width

            order = (offset, fields["soffset"], fields["imm"], fields["soffset_en"])
            return replace(gather(Texts(older), *order), value=older_index)

        always = "scalar_offset_always" in self.traits

        def newer(index: int) -> str:
            value, code = index & offset.mask, index >> offset.width
            register = operands.scalar_text(self.target, code, 1)
            if register == "null":
                return offset_format.text(value)
            return f"{register} offset:{offset_format.text(value)}" if value or always else register

        def newer_index(text: str) -> int:
            register, both, number = text.partition(" offset:")
            if not both and register not in codes:
                return offset_format.value(text) | codes["null"] << offset.width
            return (offset_format.value(number) if both else 0) | codes[register] << offset.width

        return replace(gather(Texts(newer), offset, fields["soffset"]), value=newer_index)


class VectorMemoryPlanBuilder(PlanBuilder):
    """The plan of an instruction that addresses memory or LDS by lane, or moves a tensor."""

    def _operands(self) -> list[Part]:
        by_format = {
            "DS": self._ds,
            "FLAT": self._flat,
            "GLOBAL": self._flat,
            "SCRATCH": self._flat,
            "MUBUF": self._mubuf,
            "VIMAGE": self._vimage,
        }
        return by_format[self.shape.name]()

    def _own_modifiers(self) -> list[modifiers.Modifier]:
        name, row = self.shape.name, self.row
        if name == "VIMAGE":
            return []
        if name == "DS" or row.memory is not None or row.role is Role.PREFETCH:
            return modifiers.memory(self.shape, row)
        return modifiers.cache_policy(self.shape, row)

    def _ds(self) -> list[Part]:
        row, parts = self.row, []
        data = iter(("data0", "data1"))
        has_address = any(role.kind is OperandKind.ADDRESS for role in row.operands)
        for role in row.operands:
            if role.access in WRITES:
                parts.append(self._vector_field("vdst", role.dwords))
            elif role.kind is OperandKind.ADDRESS or not (has_address or row.memory_form.by_lane):
                parts.append(gather(self._vectors(1), self.fields["addr"]))
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
            elif role.access in WRITES and role.optional:
                parts.append(self._atomic_return(role))
            elif role.access in WRITES or to_lds:
                parts.append(self._vector_field("vdst", role.dwords))
            else:
                parts.append(self._vector_field("data", role.dwords))
        return parts

    def _atomic_return(self, role: OperandRole) -> Part:
        """The old value, which an atomic writes with a flag only."""
        fields = self.fields
        flag = next(fields[name] for name in ("glc", "sc0", "th") if name in fields)
        texts = self._vectors(role.dwords, "acc" in fields)
        gathers = [(fields["vdst"].low, 0xFF, 0)]
        if "acc" in fields:
            gathers.append((fields["acc"].low, 1, 8))
        gathers.append((flag.low, 1, 9))
        register_texts = Texts(lambda index: texts[index & 0x1FF] if index >> 9 else "")
        return Part(tuple(gathers), register_texts, optional=True)

    def _is_no_saddr(self, code: int) -> bool:
        """Whether the code of a scalar address says that there is none."""
        if code == _NULL:
            return "null_for_no_saddr" in self.traits
        return code == _NO_SADDR_OF_GFX9 or (code == _NO_SADDR and "null_at_124" in self.traits)

    def _saddr(self, optional: bool) -> Part:
        none = "" if optional else "off"
        scratch = self.row.memory is not None and self.row.memory.space is Space.SCRATCH
        dwords = 1 if scratch else 2

        def text(code: int) -> str:
            if self._is_no_saddr(code):
                return none
            return operands.scalar_text(self.target, code, dwords)

        return gather(Texts(text), self.fields["saddr"], optional=optional)

    def _flat_address(self) -> Part:
        fields = self.fields
        if self.shape.name == "SCRATCH":
            if "sve" in fields:
                texts = Texts(lambda i: self._vector(i & 0xFF, 1) if i >> 8 else "off")
                return gather(texts, fields["addr"], fields["sve"])
            by_lane = _NULL if "null_for_no_saddr" in self.traits else _NO_SADDR_OF_GFX9
            texts = Texts(lambda i: self._vector(i & 0xFF, 1) if i >> 8 == by_lane else "off")
            return gather(texts, fields["addr"], fields["saddr"])
        optional = any(role.kind is OperandKind.SCALAR_ADDRESS for role in self.row.operands)
        if not optional or (self.shape.name == "FLAT" and "flat_saddr" not in self.traits):
            return gather(self._vectors(2), fields["addr"])

        def text(index: int) -> str:
            code = index >> 8
            return self._vector(index & 0xFF, 2 if self._is_no_saddr(code) else 1)

        return gather(Texts(text), fields["addr"], fields["saddr"])

    def _mubuf(self) -> list[Part]:
        parts: list[Part] = []
        fields = self.fields
        for role in self.row.operands:
            if role.kind is OperandKind.ADDRESS:
                address = fields.get("vaddr") or fields["addr"]
                texts = Texts(self._buffer_address)
                parts.append(gather(texts, address, fields["offen"], fields["idxen"]))
            elif role.kind is OperandKind.RESOURCE:
                field = fields["rsrc"]
                parts.append(self._pair("rsrc", 4 if field.width == 5 else 1, 4))
            elif role.kind is OperandKind.OFFSET:
                scalar = fields["soffset"].width == 7
                parts.append(
                    self._scalar("soffset", 1)
                    if scalar
                    else gather(operands.scalar_sources(self.target, 1, "b32"), fields["soffset"])
                )
            elif "tfe" in fields:
                parts.append(self._buffer_data(role.dwords))
            else:
                parts.append(self._vector_field("vdata", role.dwords))
        return parts

    def _buffer_data(self, dwords: int) -> Part:
        texts = Texts(lambda i: self._vector(i & 0xFF, dwords + (i >> 8)))
        return gather(texts, self.fields["vdata"], self.fields["tfe"])

    def _vimage(self) -> list[Part]:
        parts: list[Part] = []
        for number, role in enumerate(self.row.operands):
            field = self.fields[f"vaddr{number}"]
            texts = operands.scalars(self.target, role.dwords)
            if role.optional:
                texts = Texts(
                    lambda code, registers=texts: "" if code == _NO_SADDR else registers[code]
                )
            parts.append(gather(texts, field, optional=role.optional))
        return parts

    def _buffer_address(self, index: int) -> str:
        count = (index >> 8 & 1) + (index >> 9)
        return self._vector(index & 0xFF, count) if count else "off"
