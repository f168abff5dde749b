"""Which function evaluates each SASS opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wavecast.analyze.sass import arithmetic as a
from wavecast.analyze.sass import conversions as f
from wavecast.analyze.sass import warp_functions as w
from wavecast.analyze.sass.lanes import Lanes
from wavecast.analyze.sass.operands import SassOperation

Evaluate = Callable[[SassOperation, Lanes], None]

EVALUATED: Final[Mapping[str, Evaluate]] = {
    **dict.fromkeys(("MOV", "UMOV", "MOV32I", "I2I"), a.move),
    **dict.fromkeys(("R2UR",), w.first_lane),
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "UVIADD", "IADD", "IADD32I", "UIADD"), a.add),
    **dict.fromkeys(("IMAD", "UIMAD"), a.multiply_add),
    **dict.fromkeys(("LEA", "ULEA"), a.scaled_add),
    **dict.fromkeys(("LOP3", "ULOP3"), a.logic),
    **dict.fromkeys(("PLOP3", "UPLOP3"), a.predicate_logic),
    **dict.fromkeys(("SHF", "USHF"), a.shift),
    **dict.fromkeys(("ISETP", "UISETP"), a.compare),
    **dict.fromkeys(("SEL", "USEL", "FSEL"), a.select),
    **dict.fromkeys(("IABS", "UIABS"), a.absolute),
    **dict.fromkeys(("IMNMX", "VIMNMX", "UIMNMX", "UVIMNMX"), a.least),
    **dict.fromkeys(("SGXT", "USGXT"), a.extend),
    **dict.fromkeys(("PRMT", "UPRMT"), a.permute),
    **dict.fromkeys(("BMSK", "UBMSK"), a.mask_bits),
    **dict.fromkeys(("POPC", "UPOPC"), a.count_ones),
    **dict.fromkeys(("FLO", "UFLO"), a.leading_one),
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), w.special),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), w.load_constant),
    **dict.fromkeys(("I2F", "I2FP"), f.to_float),
    **dict.fromkeys(("VOTE", "VOTEU"), w.vote),
    "F2I": f.to_integer,
    "HFMA2": f.half_constant,
    "MUFU": f.unary_function,
    "SHFL": w.shuffle,
    "ELECT": w.elect,
    "SYNCS": w.passes,
    "UTCATOMSWS": w.passes,
    "P2R": w.gather_predicates,
    "R2P": w.scatter_predicates,
}

"""Opcode -> what evaluates it. Results of all others are unknown."""


__all__ = ["EVALUATED", "Evaluate"]
