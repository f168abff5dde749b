# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# JAX is optional; a checker without it takes this package for it.
"""Pallas kernels on the GPU of a capture or of `wavecast.device`.

On the CPU a `pallas_call` is lowered to Triton's IR, as JAX does for GPUs, and becomes a callback
that launches the compiled code: it is captured or executed like any kernel of Triton. Without a
capture and a device, JAX lowers it as ever. Importing this module registers the lowering.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
import torch
from jax._src.pallas import pallas_call
from jax._src.pallas.triton import core, lowering
from jax.interpreters import mlir

from wavecast.errors import UsageError
from wavecast.frameworks.host_calls import arrays
from wavecast.runtimes.triton.driver import CaptureDriver

_LOCK: Final = threading.Lock()
"""XLA runs callbacks on several threads; a capture and an emulated GPU belong to the process."""
_UNKNOWN: Final = re.compile(r"^(#loc\d*) = loc\(unknown\)$", re.MULTILINE)
_FUNCTION: Final = re.compile(r".* at (?P<file>.*):(?P<line>\d+)")


@dataclass(frozen=True, slots=True)
class PallasKernel:
    """A `pallas_call` as Triton's IR for one target. `names` are those of the parameters,
    `options` the compiler's; `source` is the file of the kernel and its first line. `results` are
    shape and dtype of the results, `aliases` pairs of an argument and the result that shares its
    memory."""

    text: str
    grid: tuple[int, int, int]
    names: tuple[str, ...]
    options: tuple[tuple[str, int], ...]
    source: tuple[str, int]
    results: tuple[tuple[tuple[int, ...], Any], ...]
    aliases: tuple[tuple[int, int], ...]

    def launch(self, *operands: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """Launches the kernel on the device at hand; its results."""
        driver = _active()
        if driver is None:
            raise UsageError(
                "a Pallas kernel that was traced for a GPU of wavecast runs without one",
                hint="trace and run it within the same wavecast.device or wavecast run",
            )
        with _LOCK:
            inputs = [arrays.tensor(np.array(array)) for array in operands]
            outputs = [
                torch.empty(shape, dtype=arrays.torch_dtype(dtype)) for shape, dtype in self.results
            ]
            for argument, result in self.aliases:
                outputs[result] = inputs[argument]
            _compile_kernel(self, driver)[self.grid](*inputs, *outputs)
        return tuple(arrays.array(output) for output in outputs)


def _lower(ctx: Any, *nodes: Any, **parameters: Any) -> Any:
    """JAX's lowering rule for the CPU."""
    driver = _active()
    settings = parameters["compiler_params"]
    plain = settings is None or isinstance(settings, core.CompilerParams)
    if driver is None or parameters["interpret"] or not plain:
        return pallas_call._pallas_call_lowering(ctx, *nodes, **parameters)
    kernel = _kernel(ctx, driver, settings or core.CompilerParams(), parameters)
    results = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_out]
    return mlir.lower_fun(
        lambda *operands: jax.pure_callback(kernel.launch, tuple(results), *operands),
        multiple_results=True,
    )(ctx, *nodes)


def _kernel(
    ctx: Any, driver: CaptureDriver, settings: Any, parameters: dict[str, Any]
) -> PallasKernel:
    amd = driver.facts.is_amd
    capability = None if amd else 10 * driver.facts.capability[0] + driver.facts.capability[1]
    jaxpr, mapping = parameters["jaxpr"], parameters["grid_mapping"]
    if mapping.num_dynamic_grid_bounds or mapping.num_index_operands or parameters["mesh"]:
        raise UsageError(
            "Pallas for Triton has no dynamic grid, scalar prefetch or mesh of devices"
        )
    result = lowering.lower_jaxpr_to_triton_module(
        jaxpr, mapping, "rocm" if amd else "cuda", capability, mlir_ctx=ctx.module_context
    )
    about = jaxpr.debug_info
    x, y, z, *_ = (*result.grid, 1, 1, 1)
    where = _FUNCTION.match(about.func_src_info or "")
    source = (where["file"], int(where["line"])) if where else ("", 0)
    stages = settings.num_stages or (1 if amd else 3)
    return PallasKernel(
        text=_generic_text(result.module.operation, source),
        grid=(x, y, z),
        names=tuple(about.arg_names or ()),
        options=(("num_warps", settings.num_warps or 4), ("num_stages", stages)),
        source=source,
        results=tuple((tuple(aval.shape), np.dtype(aval.dtype)) for aval in ctx.avals_out),
        aliases=tuple(parameters["input_output_aliases"]),
    )


def _generic_text(module: Any, source: tuple[str, int]) -> str:
    """The module in MLIR's generic form, which all versions of Triton read. What has no location
    gets that of the kernel: Triton takes the file of all lines from the function's."""
    text = module.get_asm(enable_debug_info=True, print_generic_op_form=True)
    file, line = source
    if not file:
        return text
    return _UNKNOWN.sub(lambda match: f"{match[1]} = loc({json.dumps(file)}:{line}:0)", text)


_kernels: Final[dict[tuple[str, int], Any]] = {}


def _compile_kernel(kernel: PallasKernel, driver: CaptureDriver) -> Any:
    """The kernel compiled by Triton for a device, once."""
    digest = hashlib.sha256(repr((kernel.text, kernel.options)).encode()).hexdigest()
    binary = _kernels.get((digest, driver.number))
    if binary is None:
        import triton

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pallas.ttir"
            path.write_text(kernel.text)
            binary = triton.compile(
                str(path), target=driver.get_current_target(), options=dict(kernel.options)
            )
        types = tuple(binary.src.signature.values())
        if len(kernel.names) == len(types):
            binary.src.signature = dict(zip(kernel.names, types, strict=True))
        binary.src.fn = _Function(*kernel.source)
        _kernels[digest, driver.number] = binary
    return binary


class _Function:
    """What Wavecast asks the function of a kernel of Triton: where its source is."""

    def __init__(self, file: str, line: int) -> None:
        self.co_filename, self.starting_line_number = file, line

    @property
    def fn(self) -> _Function:
        """The Python function."""
        return self

    @property
    def __code__(self) -> _Function:
        return self

    @functools.cached_property
    def raw_src(self) -> Sequence[str]:
        """The lines of the function."""
        import inspect
        import linecache

        lines = linecache.getlines(self.co_filename)[self.starting_line_number - 1 :]
        return inspect.getblock(lines) if lines else []


def _active() -> CaptureDriver | None:
    from triton.runtime.driver import driver

    instance = driver.__dict__.get("_active")
    return instance if isinstance(instance, CaptureDriver) else None


jax.config.update("jax_cpu_enable_async_dispatch", False)  # a device ends with its block
mlir.register_lowering(pallas_call.pallas_call_p, _lower, platform="cpu")

__all__ = ["PallasKernel"]
