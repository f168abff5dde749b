"""Refuses configurations that cannot run well before LLVM, which takes most of the compile time.

Two bounds follow from TTGIR: the LDS its allocation takes, and the least vector registers of values
that a loop carries (AMD CDNA3 ISA, 3.6.4; RDNA3 ISA, 3.3.2; LLVM "User Guide for AMDGPU").
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from wavecast.compile.ttgir import carried_registers
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton.compat import add_shared_allocation
from wavecast.runtimes.triton.complaints import Refused


def refuse_early(patches: Patches, facts: DeviceFacts) -> None:
    """Have compilations for AMD targets raise Refused before LLVM for configurations that need more
    LDS or registers than the device has."""
    from triton.backends.amd.compiler import HIPBackend

    lower = HIPBackend.make_llir

    def make_llir(module: Any, metadata: Any, options: Any) -> Any:
        text = module.str_nodebug()
        carried = carried_registers(text, options.num_warps * options.warp_size)
        most = _most(facts, options.num_warps)
        if carried > most:
            raise Refused(f"a loop carries {carried} registers per lane, {most} are there")
        lds = _lds_bytes(text, module.context, options)
        if lds > facts.shared_bytes:
            most = facts.shared_bytes
            raise Refused(f"takes {lds:,} bytes of LDS, a workgroup can have {most:,}")
        return lower(module, metadata, options)

    patches.attribute(HIPBackend, "make_llir", staticmethod(make_llir))


def _most(facts: DeviceFacts, waves: int) -> int:
    """Registers per lane that each wave of a workgroup of `waves` can have."""
    return min(facts.lane_registers, facts.simd_registers // -(-waves // facts.simds))


def _lds_bytes(ttgir: str, context: Any, options: Any) -> int:
    """Bytes of LDS the allocation pass gives a copy of the module."""
    from triton._C.libtriton import ir

    with tempfile.NamedTemporaryFile("w", suffix=".ttgir", delete=False) as file:
        file.write(ttgir)
    try:
        copy = ir.parse_mlir_module(file.name, context)
    finally:
        os.unlink(file.name)
    manager = ir.pass_manager(context)
    add_shared_allocation(manager, options.arch)
    manager.run(copy, "allocate_shared_memory")
    return int(copy.get_int_attr("ttg.shared") or 0)
