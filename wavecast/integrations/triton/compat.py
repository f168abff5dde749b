"""Where Triton's versions (3.6 to 3.9) differ, and what is read out of its compiled kernels."""

from __future__ import annotations

import struct
from typing import Any

from wavecast.isa import elf, metadata

_REGISTER_COUNT = b"\x04\x2f\x08\x00"
"""EIATTR_REGCOUNT of `.nv.info`, as `cuobjdump -elf` names it: symbol index, count."""


def allocator() -> Any:
    """The program's allocator for scratch memory (`triton.set_allocator`)."""
    from triton.runtime import _allocation

    current = _allocation._allocator
    return current.get() if hasattr(current, "get") else current


def jit_function(kernel: Any) -> Any:
    """The JITFunction under autotuners and heuristics."""
    from triton.runtime.jit import JITFunction

    while not isinstance(kernel, JITFunction) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def register_usage(kernel: Any) -> tuple[int, int]:
    """(registers per thread, spilled registers) as the compiler recorded them; 0 if it did not."""
    if kernel.metadata.target.backend == "cuda":
        return _cubin_registers(kernel.asm["cubin"]), 0
    found = metadata.descriptors_from_assembly(kernel.asm["amdgcn"])[kernel.name]
    return found.vgprs + found.agprs, found.vgpr_spills


def _cubin_registers(data: bytes) -> int:
    """Registers of the kernel of a cubin: Triton writes one per file, its helpers use fewer."""
    section = elf.read(data).section(".nv.info")
    content = section.data if section else b""
    counts = [0]
    start = content.find(_REGISTER_COUNT)
    while start >= 0:
        counts.append(struct.unpack_from("<I", content, start + 8)[0])
        start = content.find(_REGISTER_COUNT, start + 12)
    return max(counts)


def compiler() -> str:
    """`triton 3.9.0`: the compiler as code objects and tables name it."""
    import triton

    return f"triton {triton.__version__}"


def warm_up() -> None:
    """Compute what every process that compiles needs, before such processes are forked: the hash
    over Triton's own files takes about a second."""
    from triton.compiler import compiler
    from triton.runtime import cache

    key = getattr(cache, "triton_key", None) or getattr(compiler, "triton_key", None)
    if key is not None:
        key()


def active_device() -> tuple[str, str]:
    """(compiler target, marketing name) of the device Triton runs on."""
    import torch
    import triton

    from wavecast.compile.triton import target_name

    target = target_name(triton.runtime.driver.active.get_current_target())
    return target, torch.cuda.get_device_name() if torch.cuda.is_available() else ""
