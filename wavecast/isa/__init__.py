"""What AMD machine code says: opcode table, parser, control flow, liveness, def-use."""

from wavecast.isa.decode import print_instruction
from wavecast.isa.defuse import DefUse, definitions
from wavecast.isa.liveness import Liveness, liveness
from wavecast.isa.parser import parse
from wavecast.isa.targets import TARGETS, isa_target
from wavecast.isa.waits import wait_counters

__all__ = [
    "TARGETS",
    "DefUse",
    "Liveness",
    "definitions",
    "isa_target",
    "liveness",
    "parse",
    "print_instruction",
    "wait_counters",
]
