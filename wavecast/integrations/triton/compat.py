"""Where Triton's versions (3.6 to 3.9) differ, and what is read out of its compiled kernels."""

from __future__ import annotations

from typing import Any

from wavecast.isa import metadata


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
        return 0, 0
    found = metadata.descriptors_from_assembly(kernel.asm["amdgcn"])[kernel.name]
    return found.vgprs + found.agprs, found.vgpr_spills
