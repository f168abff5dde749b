"""`torch.compile` with several emulated GPUs: a graph runs on the GPU of its inputs.

Dynamo traces a mode without devices of tensors, as with one GPU; what it makes of the current
GPU's number it makes again for another one. Calls that copy between devices stay out of graphs.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, assign, owner, storage

_IMPORTING: Final = "<frozen importlib._bootstrap>"
"""The file of frames that import a module."""


def install(patches: Patches, gpus: Gpus) -> None:
    """Let dynamo trace the mode, and leave it alone where code runs eagerly; what it compiles is
    for the current GPU, as ranks may be threads that share nothing else."""
    from torch._dynamo import disable, trace_rules
    from torch._dynamo.convert_frame import CatchErrorsWrapper
    from torch._dynamo.eval_frame import skip_code
    from torch._dynamo.output_graph import OutputGraph
    from torch._dynamo.source import GlobalStateSource

    kind = type(gpus.mode)
    skip_code(kind.__torch_function__.__code__)
    patches.attribute(kind, "call", disable(kind.call))
    patches.attribute(gpus, "untraced", disable)
    trace_rules.add("wavecast.runtimes.distributed")
    patches.attribute(
        CatchErrorsWrapper, "__call__", _outside_of_imports(CatchErrorsWrapper.__call__)
    )
    init = OutputGraph.init_ambient_guards

    @functools.wraps(init)
    def init_with_gpu(graph: Any) -> None:
        init(graph)
        number = gpus.current

        def current_gpu(builder: Any, guard: Any) -> None:
            builder.guard_manager.root.add_lambda_guard(
                lambda _: gpus.current == number, [f"the current GPU is {number}"], guard.user_stack
            )

        graph.guards.add(GlobalStateSource().make_guard(current_gpu))

    patches.attribute(OutputGraph, "init_ambient_guards", init_with_gpu)


def _outside_of_imports(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Trace no frame that a module runs while it is imported: another thread that traces may wait
    for the module, and has the lock that tracing needs."""
    from torch._dynamo.types import ConvertFrameReturn

    @functools.wraps(convert)
    def convert_or_skip(self: Any, frame: Any, *args: Any) -> Any:
        caller = sys._getframe(1)
        while caller is not None:
            if caller.f_code.co_filename == _IMPORTING:
                return ConvertFrameReturn()
            caller = caller.f_back
        return convert(self, frame, *args)

    return convert_or_skip


def separate_kernels(patches: Patches, gpus: Gpus) -> None:
    """Let generated modules, which choose configurations while they run, be of one GPU each, and
    one thread at a time compile kernels: Triton's caches are not made for several."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    write = PyCodeCache.write

    def write_for_gpu(text: str, extra: str = "") -> tuple[str, str]:
        return write(f"{text}\n# GPU {gpus.current}\n", extra)

    patches.attribute(PyCodeCache, "write", write_for_gpu)
    compile_kernel, lock = CachingAutotuner.precompile, threading.RLock()

    @functools.wraps(compile_kernel)
    def compile_alone(*args: Any, **kwargs: Any) -> Any:
        with lock:
            return compile_kernel(*args, **kwargs)

    patches.attribute(CachingAutotuner, "precompile", compile_alone)


def current_function(gpus: Gpus) -> Callable[[], int]:
    """A function that gives the calling thread's current GPU: a constant of traced code."""

    def current() -> int:
        return gpus.current

    current._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return current


def exchange_device(gpus: Gpus, index: int) -> int:
    """The device before `index` was chosen in traced code. Raises Unsupported, which ends the
    graph, for another than the current one."""
    from torch._dynamo.exc import Unsupported

    if index not in (-1, gpus.current):
        raise Unsupported("another device is chosen")
    return gpus.current


def run_graphs(module: Any, gpus: Gpus) -> None:
    """Let the generated `module` make its tensors and launch its kernels on the GPU of its
    inputs."""
    module.call = _on_gpu(module.call, gpus)
    make = module.empty_strided_cpu

    @functools.wraps(make)
    def empty_strided(*args: Any) -> Any:
        tensor = make(*args)
        assign(tensor, gpus.current)
        return tensor

    module.empty_strided_cpu = empty_strided


def _on_gpu(call: Callable[[list[Any]], Any], gpus: Gpus) -> Callable[[list[Any]], Any]:
    """`call` on the GPU of its inputs, which gets those of the host as graphs take them: numbers
    as they are, others as copies. Inputs that are all the host's are computed on the current
    GPU, whose they are meanwhile."""

    @functools.wraps(call)
    def run(inputs: list[Any]) -> Any:
        tensors = [x for x in inputs if isinstance(x, torch.Tensor) and storage(x) is not None]
        numbers = {gpus.mode.index(x) for x in tensors} - {HOST}
        if tensors and not numbers:
            return _on_host(call, inputs, tensors, gpus)
        if len(numbers) > 1:
            first, second = sorted(numbers, reverse=True)[:2]
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:{first} and cuda:{second}! (in a compiled graph)"
            )
        gpu = max(numbers, default=gpus.current)
        for index, value in enumerate(inputs):
            if isinstance(value, torch.Tensor) and gpus.mode.index(value) == HOST:
                inputs[index] = value.to(f"cuda:{gpu}")
        with gpus.using(gpu):
            results = call(inputs)
        gpus.wait({gpu}, orders=False)  # PyTorch copies gradients, and calls nothing that waits
        return results

    return run


def _on_host(
    call: Callable[[list[Any]], Any], inputs: list[Any], tensors: Sequence[Any], gpus: Gpus
) -> Any:
    gpu = gpus.current
    for tensor in tensors:
        assign(tensor, gpu)
    try:
        results = call(inputs)
    finally:
        gpus.node.synchronize(gpu)
        for tensor in tensors:
            assign(tensor, HOST)
    for result in results:
        if isinstance(result, torch.Tensor) and owner(result) == gpu:
            assign(result, HOST)
    return results


__all__ = [
    "current_function",
    "exchange_device",
    "install",
    "run_graphs",
]
