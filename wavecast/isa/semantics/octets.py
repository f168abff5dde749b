"""Semantics of rows on the bytes of registers: sums of absolute differences, averages; cube maps.

Sources: the guides named in `floats`, chapter on VOP3.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.arithmetic import SINGLE
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.formats import F32
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.registers import dwords, elements, from_dwords, pack

V = TypeVar("V")


def _difference(o: Ops[V], a: V, b: V) -> V:
    less = o.less_unsigned(a, b, 32)
    return o.select(less, o.sub(b, a, 32), o.sub(a, b, 32), 32)


def _differences(o: Ops[V], a: V, b: V, total: V, width: int, masked: bool = False) -> V:
    """`total` plus the absolute differences of all parts; `masked` leaves out those where `b` is
    zero."""
    count = 32 // width
    for x, y in zip(elements(o, [a], width, count), elements(o, [b], width, count), strict=True):
        step = _difference(o, x, y)
        if masked:
            step = o.select(o.eq(y, o.zero(32), 32), o.zero(32), step, 32)
        total = o.add(total, step, 32)
    return total


def sum_of_differences(width: int, masked: bool = False) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return (_differences(o, a, b, c, width, masked),)

    return evaluate


def high_sum_of_differences(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    """The sum of byte differences counts in the upper half."""
    total = _differences(o, a, b, o.zero(32), 8)
    return (o.add(o.shl(total, o.const(16, 32), 32), c, 32),)


def look_up(width: int) -> Function:
    """Sixteen values of `width` bits, each the entry of a table of sixteen that four bits of the
    last operand name. The first operand is the upper part of the table.

    Source: AMD's tests of gfx1250 in rocjitsu (ROCm/rocm-systems, 2026), packed permutes.
    """
    words, step = width // 2, 2 if width == 8 else 1

    def evaluate(o: Ops[V], upper: V, lower: V, choices: V) -> tuple[V | tuple[V, ...]]:
        high = dwords(o, upper, 64 if width == 8 else 32)
        table = (*dwords(o, lower, 32 if width == 4 else 64), *high)
        assert len(table) == words
        pairs = [o.join(table[n], table[n + 1]) for n in range(0, words - 1, step)]
        values = []
        for choice in elements(o, dwords(o, choices, 64), 4, 16):
            bit = o.mul(choice, o.const(width, 32), 32)
            window = pairs[0]
            if len(pairs) == 2:
                limit = o.const(32 * step, 32)
                is_early = o.less_unsigned(bit, limit, 32)
                window = o.select(is_early, pairs[0], pairs[1], 64)
                bit = o.select(is_early, bit, o.sub(bit, limit, 32), 32)
            shifted = o.lshr(window, o.zero_extend(bit, 32, 64), 64)
            values.append(o.low_bits(o.truncate(shifted, 64, 32), width, 32))
        return (from_dwords(o, pack(o, values, width)),)

    return evaluate


def _windows(o: Ops[V], a: V) -> list[V]:
    """Four bytes from each of the four byte positions of a 64-bit value."""
    return [o.truncate(o.lshr(a, o.const(8 * k, 64), 64), 64, 32) for k in range(4)]


def sliding_sums(masked: bool) -> Function:
    """Sums of differences for four positions, 16 bits each, added to those of the third operand."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        totals = []
        for position, window in enumerate(_windows(o, a)):
            old = o.truncate(o.lshr(c, o.const(16 * position, 64), 64), 64, 32)
            total = _differences(o, window, b, o.low_half(old), 8, masked)
            totals.append(o.low_half(total))
        return (from_dwords(o, pack(o, totals, 16)),)  # type: ignore[return-value]

    return evaluate


def sliding_wide_sums(o: Ops[V], a: V, b: V, c: tuple[V, ...]) -> tuple[tuple[V, ...]]:
    """The masked form with 32 bits each."""
    windows = _windows(o, a)
    return (
        tuple(
            _differences(o, w, b, old, 8, masked=True) for w, old in zip(windows, c, strict=True)
        ),
    )


def average_bytes(o: Ops[V], a: V, b: V, rounds: V) -> tuple[V]:
    """(a + b + lowest bit of the third operand's byte) / 2, byte by byte."""
    results = []
    for x, y, z in zip(*(elements(o, [value], 8, 4) for value in (a, b, rounds)), strict=True):
        total = o.add(o.add(x, y, 32), o.low_bits(z, 1, 32), 32)
        results.append(o.lshr(total, o.const(1, 32), 32))
    return tuple(pack(o, results, 8))  # type: ignore[return-value]


# cube maps: the face a direction points at, and where


def _axes(o: Ops[V], x: V, y: V, z: V) -> tuple[V, V]:
    """Conditions: z is the major axis; y is, if z is not."""
    ax, ay, az = (o.f_absolute(value, F32) for value in (x, y, z))

    def reaches(a: V, b: V) -> V:
        return o.or_(SINGLE.less(o, b, a), SINGLE.equal(o, a, b), 1)

    return o.and_(reaches(az, ax), reaches(az, ay), 1), reaches(ay, ax)


def _negative(o: Ops[V], a: V) -> V:
    return SINGLE.less(o, a, o.zero(32))


def _pick(o: Ops[V], axes: tuple[V, V], of_z: V, of_y: V, of_x: V) -> tuple[V]:
    return (o.select(axes[0], of_z, o.select(axes[1], of_y, of_x, 32), 32),)


def cube_face(o: Ops[V], x: V, y: V, z: V) -> tuple[V]:
    """0 to 5 for +x, -x, +y, -y, +z, -z."""

    def face(a: V, number: int) -> V:
        down, up = (o.f_from_int(o.const(k, 32), 32, False, F32) for k in (number + 1, number))
        return o.select(_negative(o, a), down, up, 32)

    return _pick(o, _axes(o, x, y, z), face(z, 4), face(y, 2), face(x, 0))


def cube_s(o: Ops[V], x: V, y: V, z: V) -> tuple[V]:
    of_z = o.select(_negative(o, z), o.f_negate(x, F32), x, 32)
    of_x = o.select(_negative(o, x), z, o.f_negate(z, F32), 32)
    return _pick(o, _axes(o, x, y, z), of_z, x, of_x)


def cube_t(o: Ops[V], x: V, y: V, z: V) -> tuple[V]:
    of_y = o.select(_negative(o, y), o.f_negate(z, F32), z, 32)
    return _pick(o, _axes(o, x, y, z), o.f_negate(y, F32), of_y, o.f_negate(y, F32))


def cube_major(o: Ops[V], x: V, y: V, z: V) -> tuple[V]:
    """Twice the major coordinate."""
    (major,) = _pick(o, _axes(o, x, y, z), z, y, x)
    return (SINGLE.add(o, major, major),)


OCTETS: dict[str, Function] = {
    "v_sad_u8": sum_of_differences(8),
    "v_sad_u16": sum_of_differences(16),
    "v_sad_u32": sum_of_differences(32),
    "v_msad_u8": sum_of_differences(8, masked=True),
    "v_sad_hi_u8": high_sum_of_differences,
    "v_qsad_pk_u16_u8": sliding_sums(masked=False),
    "v_mqsad_pk_u16_u8": sliding_sums(masked=True),
    "v_mqsad_u32_u8": sliding_wide_sums,
    "v_lerp_u8": average_bytes,
    "v_cubeid_f32": cube_face,
    "v_cubesc_f32": cube_s,
    "v_cubetc_f32": cube_t,
    "v_cubema_f32": cube_major,
    **{f"v_perm_pk16_b{width}_u4": look_up(width) for width in (4, 6, 8)},
}
"""Row name -> semantics."""
