"""Where an undefined register comes from: the load of private memory or LDS nobody has written."""

from __future__ import annotations

from wavecast.emulate.check.lds.unwritten import loads_lds, masks_copies
from wavecast.emulate.scratch_accesses import may_load_scratch
from wavecast.isa.defuse import ENTRY, DefUse, bits_of
from wavecast.isa.program import Kernel
from wavecast.isa.registers import AGPRS, VGPRS


def unwritten_load(kernel: Kernel, index: int, position: int) -> int | None:
    """The nearest load from scratch, or of LDS where that may be unwritten, that a vector register
    of an instruction depends on, None without one."""
    program = kernel.program
    copies = masks_copies(program)
    chains = DefUse(program)
    work, nodes = [(index, position)], {(index, position)}
    while work:
        following: list[tuple[int, int]] = []
        for item in work:
            for definition in sorted(chains.definitions(*item) - {ENTRY}):
                writer = program.instructions[definition]
                if may_load_scratch(kernel, writer.decoded) or (
                    copies and loads_lds(writer.decoded)
                ):
                    return definition
                if writer.memory is not None:
                    continue
                reads = bits_of(writer.reads & (VGPRS | AGPRS))
                following += [(definition, bit) for bit in reads]
        work = [item for item in dict.fromkeys(following) if item not in nodes]
        nodes |= set(work)
    return None


__all__ = ["unwritten_load"]
