"""One matrix instruction, understood: everything its code depends on, as a value.

Equal specs share one function. Register numbers matter only through `staged`.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from wavecast.arch import capabilities
from wavecast.dtypes import lookup
from wavecast.emulate.matrix import layouts
from wavecast.emulate.matrix.formats import F8F6F4, ElementFormat, Integer, element_format
from wavecast.errors import WavecastError
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import MatrixShape, OperandRole
from wavecast.isa.targets import isa_target

_VECTORS: Final = frozenset({OperandClass.VGPR, OperandClass.AGPR})
_TYPE = re.compile(r"(?P<name>[a-z]+\d+(?:f\d+)?)(?:x(?P<count>\d+))?")
_NUMBER = re.compile(r"-?\d+")
_ELEMENT_BITS: Final = {name: lookup(name).bits for name in ("f64", "f32", "i32", "f16", "bf16")}

_UNROUNDED: Final = frozenset({"f64", "f32", "i32"})
"""Types of D that hold an accumulator without loss."""

_MATRIX_FORMATS: Final = {
    "MATRIX_FMT_FP8": "fp8",
    "MATRIX_FMT_BF8": "bf8",
    "MATRIX_FMT_FP6": "fp6",
    "MATRIX_FMT_BF6": "bf6",
    "MATRIX_FMT_FP4": "fp4",
}


_E8M0: Final = "MATRIX_SCALE_FMT_E8"
_E4M3: Final = "MATRIX_SCALE_FMT_E4M3"
_SCALE_ROWS: Final = ("MATRIX_SCALE_ROW0", "MATRIX_SCALE_ROW1")


class UnsupportedMatrix(WavecastError):
    """A matrix instruction, or a modifier of one, whose behaviour is not known here."""

    def __init__(self, decoded: Decoded, reason: str) -> None:
        super().__init__(f"{decoded.text!r}: {reason}")


@dataclass(frozen=True, slots=True)
class MatrixSource:
    """A or B: its type, format and sign changes.

    `negate` applies to even and to odd k. For A, `blocks` is the block each block reads; for B,
    `groups` the group of 16 lanes each group of 16 lanes reads.
    """

    type: str
    format: ElementFormat
    negate: tuple[bool, bool] = (False, False)
    blocks: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    scale: layouts.ScalePlacement | None = None
    scale_format: ElementFormat | None = None
    """None for E8M0."""


@dataclass(frozen=True, slots=True)
class Addend:
    """C: its element type, the bits of every element when it is a constant, and modifiers."""

    type: str
    constant: int | None = None
    negate: bool = False
    absolute: bool = False


@dataclass(frozen=True)
class MatrixSpec:
    """A matrix instruction with its modifiers on one target and wave size.

    `half` is the half of each register that 16-bit C and D use where elements lie one to a
    register (gfx11), else None. `staged` says D overlaps C at another register, so that results
    wait in a buffer until C is read. `index_key` chooses a sparse index set.
    """

    target: str
    lanes: int
    name: str
    shape: MatrixShape
    a: MatrixSource
    b: MatrixSource
    c: Addend
    d_type: str
    clamp: bool = False
    half: int | None = None
    index_key: int = 0
    staged: bool = False

    @property
    def integer(self) -> bool:
        return isinstance(self.a.format, Integer)

    @property
    def double(self) -> bool:
        return self.d_type == "f64"

    @property
    def chains(self) -> bool:
        """True where D, used as C of the next instruction, is what the sum would be without a
        break: it is neither rounded nor clamped, C is taken as it is, and they are placed alike."""
        modified = self.clamp or self.c.negate or self.c.absolute
        wide = self.d_type == self.c.type and self.d_type in _UNROUNDED
        return wide and not (modified or self.staged or self.shape.sparse)

    @cached_property
    def a_layout(self) -> layouts.Placement:
        sparse = self.shape.sparse
        operand = layouts.OperandShape(
            self.shape.m, self.shape.k, self.shape.blocks, self.a.format.bits, sparse, sparse
        )
        return layouts.source(self.target, self.lanes, operand)

    @cached_property
    def b_layout(self) -> layouts.Placement:
        shape = self.shape
        operand = layouts.OperandShape(
            shape.n, shape.k, shape.blocks, self.b.format.bits, shape.sparse
        )
        return layouts.source(self.target, self.lanes, operand)

    @cached_property
    def index_layout(self) -> layouts.Placement:
        return layouts.index(self.a_layout, self.index_key)

    def result_layout(self, element: str) -> layouts.Placement:
        """The placement of C or D with elements of type `element`."""
        width = _ELEMENT_BITS[element]
        if self.half is not None and width == 16:
            width = 32
        shape = self.shape
        return layouts.result(self.target, self.lanes, shape.m, shape.n, shape.blocks, width)

    @property
    def result_rows(self) -> int:
        """32-bit registers of D."""
        layout = self.result_layout(self.d_type)
        shape = self.shape
        register, _, _ = layout.position(shape.m - 1, 0, shape.blocks - 1)
        return register + max(1, layout.width // 32)

    @property
    def parameters(self) -> tuple[str, ...]:
        """What the function takes, in order: pointers to the first register row of each."""
        names = ["d", "a", "b"]
        if self.shape.sparse:
            names.append("index")
        elif self.c.constant is None:
            names.append("c")
        if self.shape.scaled:
            names += ["scale_a", "scale_b"]
        return tuple(names)


def matrix_spec(decoded: Decoded, target: str, lanes: int) -> MatrixSpec:
    """The spec of a decoded matrix instruction; raises UnsupportedMatrix with the reason."""
    shape = decoded.opcode.matrix
    if shape is None:
        raise UnsupportedMatrix(decoded, "is not a matrix instruction")
    target = isa_target(target)
    unknown = sorted(set(decoded.modifiers) - _modifiers(shape, target))
    if unknown:
        raise UnsupportedMatrix(decoded, f"modifier {unknown[0]} has no known meaning here")
    operands = decoded.operands
    if any(operand.kind not in _VECTORS for operand in operands[1:3]):
        raise UnsupportedMatrix(decoded, "A and B have to be vector registers")
    others = operands[4:] if shape.scaled else operands[3:] if shape.sparse else ()
    if any(operand.kind not in _VECTORS for operand in others):
        raise UnsupportedMatrix(decoded, "index and scales have to be vector registers")
    a_type, b_type = _source_types(decoded, shape, target)
    d_type = _element_type(decoded, decoded.roles[0] if decoded.roles else None, 0)
    half, key = _selection(decoded, shape, target)
    spec = MatrixSpec(
        target=target,
        lanes=lanes,
        name=decoded.opcode.name,
        shape=shape,
        a=_source(decoded, target, shape, a_type, 0),
        b=_source(decoded, target, shape, b_type, 1),
        c=_addend(decoded, shape, d_type),
        d_type=d_type,
        clamp="clamp" in decoded.modifiers,
        half=half,
        index_key=key,
        staged=not shape.sparse and _overlaps(operands[0], operands[3]),
    )
    if operands[0].count != spec.result_rows:
        reason = f"D is known to take {spec.result_rows} registers, not {operands[0].count}"
        raise UnsupportedMatrix(decoded, reason)
    if shape.sparse and key >= layouts.index_keys(spec.a_layout):
        raise UnsupportedMatrix(decoded, f"there is no index set {key}")
    return spec


def _is_mfma(target: str) -> bool:
    """Whether the target's matrix instructions are mfma, not wmma."""
    return capabilities(target).matrix_unit == "mfma"


def _modifiers(shape: MatrixShape, target: str) -> frozenset[str]:
    """The modifiers an instruction of this shape may carry."""
    if _is_mfma(target):
        if shape.scaled:
            return frozenset({"cbsz", "blgp", "op_sel", "op_sel_hi"})
        if shape.a_type == "f8f6f4":
            return frozenset({"cbsz", "blgp"})
        if shape.cd_type == "f64":
            return frozenset({"neg", "blgp"})
        return frozenset({"cbsz", "abid"} if shape.sparse else {"cbsz", "abid", "blgp"})
    modifiers = {"neg_lo", "neg_hi"}
    if shape.cd_type == "i32":
        modifiers.add("clamp")
    able = capabilities(target)
    if able.matrix_layout == "replicated" and shape.cd_type in ("f16", "bf16"):
        modifiers.add("op_sel")
    if shape.sparse:
        modifiers.add("index_key")
    if able.matrix_reuse_hints:
        modifiers |= {"matrix_a_reuse", "matrix_b_reuse"}
    if shape.a_type == "f8f6f4":
        modifiers |= {"matrix_a_fmt", "matrix_b_fmt"}
    if shape.scaled:
        modifiers |= {f"matrix_{which}_scale{part}" for which in "ab" for part in ("", "_fmt")}
    return frozenset(modifiers)


def _numbers(decoded: Decoded, name: str, count: int) -> list[int]:
    numbers = [int(text) for text in _NUMBER.findall(decoded.modifiers.get(name, ""))]
    return (numbers + [0] * count)[:count]


def _number(decoded: Decoded, name: str) -> int:
    return _numbers(decoded, name, 1)[0]


def _source_types(decoded: Decoded, shape: MatrixShape, target: str) -> tuple[str, str]:
    if shape.a_type != "f8f6f4":
        return shape.a_type, shape.b_type
    if not _is_mfma(target):
        formats = [decoded.modifiers.get(f"matrix_{which}_fmt", "") for which in "ab"]
        texts = [text or "MATRIX_FMT_FP8" for text in formats]
        if any(text not in _MATRIX_FORMATS for text in texts):
            raise UnsupportedMatrix(decoded, "a matrix format is not known")
        return _MATRIX_FORMATS[texts[0]], _MATRIX_FORMATS[texts[1]]
    codes = [_number(decoded, name) for name in ("cbsz", "blgp")]
    if any(code >= len(F8F6F4) for code in codes):
        raise UnsupportedMatrix(decoded, "a matrix format is not known")
    return F8F6F4[codes[0]], F8F6F4[codes[1]]


def _element_type(decoded: Decoded, role: OperandRole | None, position: int) -> str:
    role = role or decoded.opcode.operands[position]
    match = _TYPE.fullmatch(role.type)
    if match is None or match["name"] not in _ELEMENT_BITS:
        raise UnsupportedMatrix(decoded, f"operand type {role.type!r} is not known")
    return match["name"]


def _source(
    decoded: Decoded, target: str, shape: MatrixShape, element: str, which: int
) -> MatrixSource:
    kind = element_format(element, target)
    low, high = (_numbers(decoded, name, 3)[which] for name in ("neg_lo", "neg_hi"))
    negate = (False, False)
    if isinstance(kind, Integer):
        if high:
            raise UnsupportedMatrix(decoded, "neg_hi has no meaning for integers")
        if element in ("iu8", "iu4"):
            kind = Integer(kind.bits, bool(low))
    elif kind.bits in (16, 32):
        negate = (bool(low), bool(high if kind.bits == 16 else low))
    elif kind.bits == 64:
        negative = _numbers(decoded, "neg", 3)[which] or _number(decoded, "blgp") >> which & 1
        negate = (bool(negative), bool(negative))
    elif low or high:
        raise UnsupportedMatrix(decoded, "A and B of 8 bits and less have no sign modifier")
    blocks: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    plain = not shape.sparse and shape.a_type != "f8f6f4" and kind.bits != 64
    if plain and which == 0:
        cbsz, abid = _number(decoded, "cbsz"), _number(decoded, "abid")
        try:
            blocks = layouts.broadcast_blocks(shape.blocks, cbsz, abid)
        except ValueError as error:
            raise UnsupportedMatrix(decoded, f"{error}") from None
    if plain and which == 1 and _number(decoded, "blgp"):
        groups = layouts.permuted_groups(_number(decoded, "blgp"))
    if not shape.scaled:
        return MatrixSource(element, kind, negate, blocks, groups)
    rows = shape.m if which == 0 else shape.n
    if _is_mfma(target):
        byte = _numbers(decoded, "op_sel", 3)[which] + 2 * _numbers(decoded, "op_sel_hi", 3)[which]
        return MatrixSource(
            element, kind, negate, blocks, groups, layouts.ScalePlacement(rows, byte)
        )
    scale, scale_format = _wave_scale(decoded, target, rows, "ab"[which])
    return MatrixSource(element, kind, negate, blocks, groups, scale, scale_format)


def _wave_scale(
    decoded: Decoded, target: str, rows: int, name: str
) -> tuple[layouts.ScalePlacement, ElementFormat | None]:
    """Where WMMA takes the scales of A or B from, and their format."""
    text = decoded.modifiers.get(f"matrix_{name}_scale_fmt", "") or _E8M0
    if text not in (_E8M0, _E4M3):
        raise UnsupportedMatrix(decoded, f"scales of the format {text} are not known")
    half = decoded.modifiers.get(f"matrix_{name}_scale", "") or _SCALE_ROWS[0]
    if half not in _SCALE_ROWS:
        raise UnsupportedMatrix(decoded, f"scales of {half} are not known")
    # 32 rows take all lanes
    first_lane = 16 * _SCALE_ROWS.index(half) if rows == 16 else 0
    run = 16 if "scale16" in decoded.opcode.name else layouts.SCALE_RUN
    scale_format = None if text == _E8M0 else element_format("fp8", target)
    return layouts.ScalePlacement(rows, None, first_lane, run), scale_format


def _addend(decoded: Decoded, shape: MatrixShape, d_type: str) -> Addend:
    if shape.sparse:
        return Addend(d_type)
    role = decoded.roles[3] if decoded.roles else None
    element = _element_type(decoded, role, 3)
    operand = decoded.operands[3]
    negate = bool(_numbers(decoded, "neg_lo", 3)[2])
    absolute = bool(_numbers(decoded, "neg_hi", 3)[2])
    if element == "f64":
        negate = bool(_numbers(decoded, "neg", 3)[2] or _number(decoded, "blgp") & 4)
    if element == "i32" and (negate or absolute):
        raise UnsupportedMatrix(decoded, "C of integers has no sign modifier")
    constant = None
    if operand.kind is OperandClass.CONSTANT:
        constant = _constant_bits(decoded, operand, element)
    elif operand.kind not in _VECTORS:
        raise UnsupportedMatrix(decoded, f"C cannot be {operand.text}")
    return Addend(element, constant, negate, absolute)


def _constant_bits(decoded: Decoded, operand: Operand, element: str) -> int:
    """The bits of each element of an inline constant: floats in the element's own format."""
    value = operand.value or 0
    text = operand.text.lstrip("-")
    if "." not in text:
        return value & ((1 << _ELEMENT_BITS[element]) - 1)
    if element in ("f32", "i32"):
        return value & 0xFFFFFFFF
    number = struct.unpack("<f", struct.pack("<I", value & 0xFFFFFFFF))[0]
    if element == "f64":
        return struct.unpack("<Q", struct.pack("<d", number))[0]
    if element == "f16":
        return struct.unpack("<H", struct.pack("<e", number))[0]
    if value & 0xFFFF:
        raise UnsupportedMatrix(decoded, f"constant {operand.text} has no exact bf16")
    return value >> 16


def _selection(decoded: Decoded, shape: MatrixShape, target: str) -> tuple[int | None, int]:
    """The register half of 16-bit results that take a register each, and the sparse index set."""
    if shape.sparse:
        if _is_mfma(target):
            # a nonzero cbsz makes the hardware ignore abid and take the first set
            return None, 0 if _number(decoded, "cbsz") else _number(decoded, "abid")
        return None, _number(decoded, "index_key")
    if capabilities(target).matrix_layout == "replicated":
        return _numbers(decoded, "op_sel", 3)[2], 0
    return None, 0


def _overlaps(d: Operand, c: Operand) -> bool:
    if d.kind is not c.kind or d.first == c.first:
        return False
    return bool(d.bits & c.bits)
