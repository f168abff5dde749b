"""Configurations that cannot run well are refused before LLVM, which takes most of compiling.

Two bounds are read off the TritonGPU IR: the LDS its allocation takes, and the vector registers
that values carried around a loop take at least.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any, Final

from wavecast.integrations.patching import Patches
from wavecast.integrations.triton.complaints import Refused

_REGISTERS: Final = {
    "gfx9": (512, 512),
    "gfx10": (256, 1024),
    "gfx11": (256, 1536),
    "gfx120": (256, 1536),
}
"""32-bit vector registers per lane, by target: the most of one wave, AGPRs included, and those of a
SIMD for all its waves (AMD CDNA3 ISA, 3.6.4; RDNA3 ISA, 3.3.2; LLVM "User Guide for AMDGPU")."""
_SIMDS: Final = 4
"""SIMDs the waves of a workgroup spread over: of a CU (CDNA), of a WGP (RDNA)."""

_TENSOR = re.compile(r"tensor<([0-9x]+)xb?f(\d+)[ ,>]")


def refuse_early(patches: Patches, lds_bytes: int) -> None:
    """Have compilations for AMD targets raise Refused before LLVM for what takes more than
    `lds_bytes` of LDS or more registers than there are."""
    from triton.backends.amd.compiler import HIPBackend

    lower = HIPBackend.make_llir

    def make_llir(module: Any, metadata: Any, options: Any) -> Any:
        text = module.str_nodebug()
        carried = carried_registers(text, options.num_warps * options.warp_size)
        most = _most(options.arch, options.num_warps)
        if most is not None and carried > most:
            raise Refused(f"a loop carries {carried} registers per lane, {most} are there")
        lds = _allocated(text, module.context, options)
        if lds > lds_bytes:
            raise Refused(f"takes {lds:,} bytes of LDS, a workgroup can have {lds_bytes:,}")
        return lower(module, metadata, options)

    patches.attribute(HIPBackend, "make_llir", staticmethod(make_llir))


def _most(target: str, waves: int) -> int | None:
    """Registers per lane that each wave of a workgroup can have; None where that is not known."""
    for prefix, (of_wave, of_simd) in _REGISTERS.items():
        if target.startswith(prefix):
            return min(of_wave, of_simd // -(-waves // _SIMDS))
    return None


def carried_registers(ttgir: str, threads: int) -> int:
    """32-bit registers per lane that the floating-point tensors carried around a loop take at
    least, spread over `threads`: of the loop that carries the most."""
    most = 0
    for line in ttgir.splitlines():
        if "scf.for" not in line or "iter_args" not in line:
            continue
        carried = line.rpartition("-> (")[2]
        bits = 0
        for shape, width in _TENSOR.findall(carried):
            elements = 1
            for size in shape.split("x"):
                elements *= int(size)
            bits += elements * int(width)
        most = max(most, bits // 32 // threads)
    return most


def _allocated(ttgir: str, context: Any, options: Any) -> int:
    """Bytes of LDS the allocation pass gives a copy of the module."""
    from triton._C.libtriton import amd, ir

    with tempfile.NamedTemporaryFile("w", suffix=".ttgir", delete=False) as file:
        file.write(ttgir)
    try:
        copy = ir.parse_mlir_module(file.name, context)
    finally:
        os.unlink(file.name)
    manager = ir.pass_manager(context)
    amd.passes.ttgpuir.add_allocate_shared_memory(manager, options.arch)
    manager.run(copy, "allocate_shared_memory")
    return int(copy.get_int_attr("ttg.shared") or 0)
