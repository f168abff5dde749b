"""Where Triton's versions (3.6 to 3.9) differ, and what is read out of its compiled kernels."""

from __future__ import annotations

import importlib
from typing import Any, Final

from wavecast.compile import cubin
from wavecast.isa import elf
from wavecast.isa.assembly_metadata import descriptors_from_assembly

_REGISTER_BYTES: Final = 4


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
    """(registers per thread, spilled registers) as the GPU's loader would say: CUDA's takes all
    local memory for spilled registers."""
    if kernel.metadata.target.backend == "cuda":
        registers, local = cubin.usage(elf.read(kernel.asm["cubin"]))
        return registers, local // _REGISTER_BYTES
    descriptor = descriptors_from_assembly(kernel.asm["amdgcn"])[kernel.name]
    return descriptor.vgprs + descriptor.agprs, descriptor.vgpr_spills


def compiler() -> str:
    """`triton 3.9.0`: the compiler as code objects and tables name it."""
    import triton

    return f"triton {triton.__version__}"


def release() -> tuple[int, int]:
    """Major and minor number of the installed Triton."""
    import triton

    major, minor = triton.__version__.split(".")[:2]
    return int(major), int(minor)


def translated_to_assembly(text: str, target: str, *, fuse: bool) -> str:
    """The assembly that Triton's core LLVM makes of LLVM IR; from 3.8 on it also takes whether
    addresses are made canonical."""
    llvm: Any = importlib.import_module("triton._C.libtriton").llvm
    llvm.init_targets()
    triple = next(
        line.split('"')[1] for line in text.split("\n") if line.startswith("target triple")
    )
    tail = (fuse, False) if release() < (3, 8) else (fuse, False, False)
    return llvm.translate_to_asm(text, triple, target, "", [], *tail)


def add_shared_allocation(manager: Any, target: str) -> None:
    """Add AMD's pass that allocates shared memory; before Triton 3.8 it does not take a target."""
    from triton._C.libtriton import amd

    add = amd.passes.ttgpuir.add_allocate_shared_memory
    add(manager) if release() < (3, 8) else add(manager, target)


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
