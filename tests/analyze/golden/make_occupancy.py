"""Writes occupancy.csv: what LLVM says the occupancy of small kernels is.

    python tests/analyze/golden/make_occupancy.py > tests/analyze/golden/occupancy.csv

Each kernel is an LLVM IR function whose inline assembly clobbers the highest register wanted and
that touches a static LDS array; the answer is LLVM's own `; Occupancy:` comment. It needs Triton
3.9, whose wheel carries LLVM 24's AMDGPU back end (LLVM 22 predates the rounding of LDS to its
granule and the trap handler's scalar registers).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

CDNA = ("gfx90a", "gfx942", "gfx950")
TARGETS = (*CDNA, "gfx1100", "gfx1151", "gfx1201", "gfx1250")
COLUMNS = "target,vgpr,agpr,sgpr,lds,threads,total_vgprs,occupancy"


class Case(NamedTuple):
    """Registers clobbered, static LDS bytes, and the exact number of threads of a workgroup."""

    vgprs: int
    agprs: int
    sgprs: int
    lds: int
    threads: int


def cases(target: str) -> Iterator[Case]:
    """The grid: every resource swept around its granules with the others small."""
    most_vgprs = 1024 if target == "gfx1250" else 256
    for vgprs in range(8, most_vgprs + 1, most_vgprs // 32):
        yield Case(vgprs, 0, 0, 0, 64)
        if vgprs < most_vgprs:
            yield Case(vgprs + 1, 0, 0, 0, 64)
    lds_steps = [4, 512, 1280, 2048, 4096, 6000, 8192, 10240, 16384, 20480, 21845, 32768, 65536]
    lds_steps += {"gfx950": [40960, 81920, 163840], "gfx1250": [81920, 163840, 327680]}.get(
        target, []
    )
    for lds in lds_steps:
        for threads in (32, 64, 128, 192, 256, 320, 512, 1024):
            yield Case(8, 0, 0, lds, threads)
    for threads in (32, 64, 96, 128, 192, 256, 320, 512, 640, 768, 1024):
        yield Case(48, 0, 0, 0, threads)
        yield Case(100, 0, 0, 16384, threads)
    if target in CDNA:
        for agprs in (1, 4, 17, 64, 128, 256):
            for vgprs in (5, 33, 64, 128, 253):
                yield Case(vgprs, agprs, 0, 0, 64)
        for sgprs in (8, 16, 40, 64, 72, 80, 88, 96, 100):
            yield Case(8, 0, sgprs, 0, 64)


def kernel(case: Case) -> str:
    """LLVM IR of a kernel that needs at least what `case` says."""
    clobbers = [f"~{{v{case.vgprs - 1}}}"]
    clobbers += [f"~{{a{case.agprs - 1}}}"] if case.agprs else []
    clobbers += [f"~{{s{case.sgprs - 1}}}"] if case.sgprs else []
    body = f'  call void asm sideeffect "", "{",".join(clobbers)}"()\n'
    array = ""
    if case.lds:
        array = f"@array = internal addrspace(3) global [{case.lds} x i8] poison, align 16\n"
        body += "  store volatile i8 0, ptr addrspace(3) @array\n"
    size = f'"amdgpu-flat-work-group-size"="{case.threads},{case.threads}"'
    return (
        f"{array}define amdgpu_kernel void @kernel() #0 {{\n{body}  ret void\n}}\n"
        f'attributes #0 = {{ {size} "amdgpu-waves-per-eu"="1,16" nounwind }}\n'
    )


def assemble(source: str, target: str) -> str:
    """Assembly text of LLVM IR, from the LLVM inside Triton."""
    from triton._C.libtriton import amd
    from triton.backends.amd.compiler import compile_amdgpu

    triple = amd.get_target_triple(target)
    return compile_amdgpu(
        f'target triple = "{triple}"\n{source}',
        triple,
        target,
        "",
        flags=[],
        enable_fp_fusion=True,
        disable_optimization=False,
        canonicalize_gep=False,
        disabled_passes="",
        dump_ir=False,
        enable_timing=False,
    )


def comment(assembly: str, name: str) -> int:
    """The integer of LLVM's comment `; name: 12`, 0 when it is absent."""
    match = re.search(rf"; {name}\s*:\s*(\d+)", assembly)
    return int(match[1]) if match else 0


def row(case: Case, target: str) -> str:
    """One line of the table, with the register counts LLVM arrived at."""
    assembly = assemble(kernel(case), target)
    values = [comment(assembly, name) for name in ("NumVgprs", "NumAgprs", "TotalNumSgprs")]
    values += [comment(assembly, "LDSByteSize"), case.threads]
    values += [comment(assembly, "TotalNumVgprs") or values[0], comment(assembly, "Occupancy")]
    return ",".join(map(str, (target, *values)))


def main() -> None:
    print(COLUMNS)
    for target in TARGETS:
        for case in dict.fromkeys(cases(target)):
            try:
                print(row(case, target), flush=True)
            except Exception as error:  # a combination this target cannot encode
                print(f"{target} {case}: {str(error)[:80]}", file=sys.stderr)


if __name__ == "__main__":
    main()
