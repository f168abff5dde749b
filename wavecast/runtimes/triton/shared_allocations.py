"""Where Triton puts the shared allocations of a kernel.

The stages that Triton keeps are from before and after that. Its own passes up to the allocation are
run once more on the TTGIR, in the order of its backend: adding the allocation ends the list.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from wavecast.compile.codeobject import CodeObject
from wavecast.compile.shared_allocations import ALLOCATED, is_gluon
from wavecast.errors import CompileError
from wavecast.runtimes.patching import Patches

_ALLOCATION: Final = "add_allocate_shared_memory"
_TOTAL: Final = re.compile(r"\bttg\.shared = (\d+) : i32")


class _Allocated(Exception):
    """The list of passes is complete."""


def with_allocations(code: CodeObject, kernel: Any) -> CodeObject:
    """A kernel with its TTGIR after the allocation as a stage; as it is where its source leaves
    shared memory to the compiler.

    Raises CompileError where this Triton allocates in another way.
    """
    if not is_gluon(code):
        return code
    try:
        text = _run_allocation(str(code.stages["ttgir"]), kernel)
    except Exception as error:
        raise CompileError(
            f"{code.kernel}: the offsets of its shared allocations are not known: {error}"
        ) from error
    total = _TOTAL.search(text)
    if total is None or int(total[1]) != code.dynamic_lds:
        raise CompileError(f"{code.kernel}: allocated again, its shared memory has another size")
    return replace(code, stages={**code.stages, ALLOCATED: text})


def _run_allocation(text: str, kernel: Any) -> str:
    from triton._C.libtriton import amd, ir
    from triton.compiler import make_backend

    backend: Any = make_backend(kernel.metadata.target)
    options = backend.parse_options(kernel.metadata._asdict())
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ttgir"
        path.write_text(text, encoding="utf-8")
        module = ir.parse_mlir_module(str(path), context)
    module.context = context  # it does not keep the context alive
    passes: list[Any] = []
    allocate = getattr(amd.passes.ttgpuir, _ALLOCATION, None)
    if allocate is None:
        raise CompileError(f"this Triton has no pass {_ALLOCATION}")

    def complete(manager: Any, *options: object) -> NoReturn:
        allocate(manager, *options)
        passes.append(manager)
        raise _Allocated

    patches = Patches()
    patches.attribute(amd.passes.ttgpuir, _ALLOCATION, complete)
    try:
        backend.make_llir(module, dict(kernel.metadata._asdict()), options)
    except _Allocated:
        passes[0].run(module, "allocation")
        return str(module)
    finally:
        patches.restore()
    raise CompileError(f"this Triton does not run {_ALLOCATION}")


__all__ = ["with_allocations"]
