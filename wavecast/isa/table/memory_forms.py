"""What the name of a memory row says beyond its operands, as fields.

Rows of the table carry space, kind and bytes; the rest of a memory instruction's meaning (which
half of the register, one offset or two, which atomic operation) is spelled in the name the table
gives the row. It is read here once so that nobody else looks at names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from wavecast.isa.opcode import Opcode

_ATOMIC = re.compile(
    r"(?:ds|(?:global|flat|buffer)_atomic)_"
    r"(?P<operation>pk_add|add|sub_clamp|cond_sub|rsub|sub|and|or|xor|inc|dec|max_num|max|min_num|"
    r"min|cmpswap|cmpstore|cmpst|swap|storexchg|mskor|append|consume)(?:_|$)"
)
_SAME = {
    "cmpst": "cmpswap", "cmpstore": "cmpswap", "storexchg": "swap",
}  # fmt: skip
_TRANSPOSE = re.compile(r"_tr(?:(?P<new>\d+)_b\d+|_b(?P<old>4|6|8|16)$)")
_EXCHANGE = re.compile(r"ds_(bpermute_fi|bpermute|permute|swizzle)_b32")
_SIGNED_TO_LDS = re.compile(r"_lds_s(byte|short)$|_i(8|16)_lds$")


@dataclass(frozen=True, slots=True)
class MemoryForm:
    """The form of one memory row.

    `high`: sub-dword data lies in the upper half of its register. `places`: 2 where two elements
    have an offset each, counted in elements times `stride`. `operation`: what an atomic does (""
    for other rows and for atomics without a name here). `comparand_first`: the comparand of an LDS
    compare-and-store is its first data operand (gfx9; the second one from gfx11 on). `transpose`:
    bits of the elements a transposing load exchanges between lanes. `exchange`: how lanes exchange
    dwords. `by_lane`: the address is the lane number times four. `formatted`: data is converted by
    the descriptor's format. `block`: M0 chooses registers. `signed_to_lds`: a load to LDS extends
    its data by the sign.
    """

    high: bool = False
    places: int = 1
    stride: int = 1
    operation: str = ""
    comparand_first: bool = False
    transpose: int = 0
    exchange: str = ""
    by_lane: bool = False
    formatted: bool = False
    block: bool = False
    signed_to_lds: bool = False


def memory_form(row: Opcode) -> MemoryForm:
    """The form of a memory row."""
    return _form(row.name)


@cache
def _form(name: str) -> MemoryForm:
    atomic = _ATOMIC.match(name)
    operation = atomic["operation"] if atomic else ""
    transpose = _TRANSPOSE.search(name)
    exchange = _EXCHANGE.match(name)
    return MemoryForm(
        high="_d16_hi" in name,
        places=2 if "_2addr_" in name else 1,
        stride=64 if "_stride64_" in name else 1,
        operation=_SAME.get(operation, operation),
        comparand_first=operation == "cmpst",
        transpose=int(transpose["new"] or transpose["old"]) if transpose else 0,
        exchange=exchange[1] if exchange else "",
        by_lane="_addtid_" in name,
        formatted="_format_" in name,
        block=name.endswith("_block"),
        signed_to_lds=bool(_SIGNED_TO_LDS.search(name)),
    )


__all__ = ["MemoryForm", "memory_form"]
