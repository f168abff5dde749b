"""Global memory in check mode: races within and between workgroups.

Ranges no instruction of the kernel may store to have no records. The shadow function of an access:
quickly recorded where no access conflicts (`global_quick.py`), else compared with the records
(`global_races.py`), then told to the clocks (`global_releases.py`). Accesses that also touch LDS
use its records (`lds_records.py`).
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check.global_memory.access import SCALAR, GlobalAccess
from wavecast.emulate.check.global_memory.quick import QuickRecords
from wavecast.emulate.check.global_memory.races import GlobalRaces
from wavecast.emulate.check.global_memory.releases import synchronise
from wavecast.emulate.check.lds.shadow import Dwords
from wavecast.emulate.check.lds.tags import TAGGED, LdsTags
from wavecast.emulate.check.shadow import Watched
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, resolve
from wavecast.emulate.values import I1, I32, I64, element, load


def build(out: Outlined) -> None:
    """Check an access of global memory and record it."""
    shadow = Watched(out)
    lanes = _scalar(out) if out.access.mode == SCALAR else resolve(out)
    builder = out.builder
    access = GlobalAccess(shadow, lanes)
    races, quick = GlobalRaces(access), QuickRecords(access)
    into_lds = Dwords(shadow, stores=True) if shadow.kind == "tolds" else None
    flat = Dwords(shadow) if out.access.mode == "flat" else None
    left = lanes.live
    if flat is None:  # most ranges that are only loaded have no records
        nothing = access.has_no_records()
        left = builder.select(nothing, out.mask(0), left)
    with out.each_lane(left) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        with builder.if_then(builder.not_(quick.record(address)), likely=False):
            races.touch(lane, address)
        if flat is not None:
            _touch_lds(shadow, flat, lane, address)
    synchronise(access)
    races.log()
    if flat is not None:
        flat.log()
    if into_lds is not None:
        offset = builder.ptrtoint(out.rows, I64)
        limit = shadow.word(state.LDS_BYTES)

        def locate(lane: Any) -> Any:
            return builder.add(offset, builder.mul(lane, I64(out.access.lds_step)))

        filled: Any = out.exec
        if TAGGED in shadow.traits:
            end = locate(I64(out.lanes - 1))
            end = builder.add(end, I64(4 * out.access.dwords))
            tags, fits = LdsTags(into_lds.records), builder.icmp_unsigned("<=", end, limit)
            filled = tags.lanes_left(out.exec, locate, fits)
        with out.each_lane(filled) as lane:
            inset = locate(lane)
            end = builder.add(inset, I64(4 * out.access.dwords))
            first = builder.lshr(inset, I64(2))
            with (
                builder.if_then(builder.icmp_unsigned("<=", end, limit), likely=True),
                builder.if_then(builder.not_(into_lds.quick.record(inset, first)), likely=False),
            ):
                for index in range(out.access.dwords):
                    into_lds.touch(lane, builder.add(first, I64(index)), I64(0xF), I1(1))
        into_lds.log()
    builder.ret(I32(0))


def _scalar(out: Outlined) -> Resolved:
    """The dwords from `base` on, one per lane."""
    builder = out.builder
    addresses = out.array(I64)
    with out.each_lane(out.exec) as lane:
        address = builder.add(out.base, builder.shl(lane, I64(2)))
        builder.store(address, element(builder, addresses, lane, I64), align=8)
    last = builder.add(out.base, I64(4 * (out.lanes - 1)))
    return Resolved(addresses, out.exec, out.mask(0), I1(1), out.base, last)


def _touch_lds(shadow: Watched, dwords: Dwords, lane: Any, address: Any) -> None:
    """The LDS side of a flat access, where a lane's address lies in LDS."""
    builder = shadow.out.builder
    inset = builder.sub(address, shadow.word(state.LDS_BASE))
    in_bounds = builder.icmp_unsigned("<", inset, shadow.word(state.LDS_BYTES))
    with builder.if_then(in_bounds, likely=False):
        dwords.access(lane, address, inset)


__all__ = ["build"]
