"""Small kernels to analyse: a body of assembly becomes a program, a descriptor, a code object."""

from __future__ import annotations

from wavecast import arch, isa
from wavecast.analyze import CodeAnalysis, analyze
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.program import KernelDescriptor, Program

DEVICES = {
    "gfx942": "mi300x",
    "gfx950": "mi355x",
    "gfx1100": "rx7900xtx",
    "gfx1201": "rx9070xt",
    "gfx1250": "mi455x",
}


def program(body: str, target: str = "gfx942", file: str = "") -> Program:
    """The program of a kernel `k` with this body; lines of `file` are its locations."""
    text = f"\t.text\n\t.type k,@function\nk:\n{body}\n\ts_endpgm\n.Lfunc_end0:\n"
    return isa.parse(text, target, file, is_source=bool(file)).functions["k"]


def descriptor(wave_size: int = 64, **changes: int) -> KernelDescriptor:
    """A kernel of 32 VGPRs and workgroups of 256 threads, unless changed."""
    values = {"vgprs": 32, "agprs": 0, "sgprs": 16, "lds_bytes": 0, "scratch_bytes": 0, **changes}
    return KernelDescriptor(
        vgprs=values["vgprs"],
        agprs=values["agprs"],
        sgprs=values["sgprs"],
        lds_bytes=values["lds_bytes"],
        scratch_bytes=values["scratch_bytes"],
        vgpr_spills=values.get("vgpr_spills", 0),
        sgpr_spills=values.get("sgpr_spills", 0),
        wave_size=wave_size,
        max_workgroup_size=256,
        kernarg_bytes=0,
        arguments=(),
    )


def code(target: str = "gfx942", threads: int = 256, dynamic_lds: int = 0) -> CodeObject:
    """A code object without stages, for analyses that read the program."""
    return CodeObject(
        kernel="k",
        target=target,
        origin="assembly",
        stages={},
        parameters=(),
        options={},
        workgroup_size=threads,
        dynamic_lds=dynamic_lds,
        source="",
        source_line=0,
        source_text="",
        compiler="",
        digest="",
    )


def read(
    body: str,
    target: str = "gfx942",
    *,
    threads: int = 256,
    dynamic_lds: int = 0,
    launch: Launch | None = None,
    **registers: int,
) -> CodeAnalysis:
    """The analysis of a body of assembly on the device of its target."""
    wave_size = 64 if target.startswith("gfx9") else 32
    return analyze(
        code(target, threads, dynamic_lds),
        arch.load(DEVICES[target]),
        program(body, target),
        descriptor(wave_size, **registers),
        launch,
    )
