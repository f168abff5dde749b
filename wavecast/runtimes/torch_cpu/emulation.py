"""`emulated_cuda`: while it is active, `cuda` means the CPU, and queries describe another GPU."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from wavecast.errors import MissingTool
from wavecast.extras import install_hint
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.patching import Patches

if TYPE_CHECKING:
    from wavecast.emulate.node import GpuNode
    from wavecast.runtimes.library_calls import Heard
    from wavecast.runtimes.torch_cpu.gpus import Gpus
    from wavecast.runtimes.torch_cpu.profiling import ProfiledKernels


@contextlib.contextmanager
def emulated_cuda(
    facts: DeviceFacts,
    note: Callable[[str], None],
    in_doubt: Callable[[], bool] = lambda: False,
    *,
    executing: bool = False,
    node: GpuNode | None = None,
    heard: Heard | None = None,
    on_address: Callable[[Any], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    profiled: ProfiledKernels | None = None,
) -> Iterator[Any]:
    """Run PyTorch code that says `cuda` on CPU tensors that call themselves `cuda:0`.

    `note` receives lines the user must see. Comparisons of tensors succeed while `in_doubt()` says
    that numbers are missing. With `executing`, launches are executed and events measure them by
    `clock` (seconds).
    With a `node` there are its GPUs instead of one, and the block gets the `Gpus`. `heard` gets
    the calls of libraries by compiled graphs, `on_address` tensors whose address is asked for.
    `profiled` has the kernels that profilers see. Everything is put back at the end. Raises
    MissingTool without PyTorch.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingTool("PyTorch is not installed", hint=install_hint("torch")) from error
    from wavecast.runtimes.torch_cpu import (
        checks,
        compiling,
        cuda_api,
        fake,
        histograms,
        library,
        loading,
        mode,
        products,
    )

    patches = Patches()
    gpus = None
    active = mode.CudaOnCpu(torch, on_address)
    if node is not None:
        from wavecast.runtimes.torch_cpu.gpus import Gpus
        from wavecast.runtimes.torch_cpu.gpus_mode import SeveralGpus

        gpus = Gpus(node)
        active = gpus.mode = SeveralGpus(torch, gpus, on_address)
    try:
        compiling.install(patches, facts, active, heard)
        cuda_api.install(patches, facts, clock if executing else None, gpus)
        checks.install(patches, in_doubt, note)
        fake.install(patches, gpus)
        products.install(patches)
        histograms.install(patches)
        if profiled is not None:
            profiled.install(patches)
        mode.install(patches, active)
        loading.install(patches, gpus)
        library.install(patches, active)
        if gpus is None:
            _enter_in_threads(patches, lambda: [active])
        else:
            _follow_threads(patches, gpus)
            gpus.install(patches)
        with active:
            yield gpus
    finally:
        patches.restore()


def _enter_in_threads(
    patches: Patches,
    blocks: Callable[[], list[contextlib.AbstractContextManager[Any]]],
    node: GpuNode | None = None,
) -> None:
    """Run threads that a program starts in `blocks`, as hosts of the `node`: PyTorch's modes
    are per thread."""
    from wavecast.emulate.node import THREAD_PREFIX

    start = threading.Thread.start

    @functools.wraps(start)
    def start_thread(thread: threading.Thread) -> None:
        if not thread.name.startswith(THREAD_PREFIX):
            run, entered = thread.run, blocks()

            def run_in_blocks() -> None:
                try:
                    with contextlib.ExitStack() as stack:
                        for block in entered:
                            stack.enter_context(block)
                        run()
                finally:
                    if node is not None:
                        node.remove_host(thread)

            if node is not None:
                node.add_host(thread)
            thread.run = run_in_blocks
        start(thread)

    patches.attribute(threading.Thread, "start", start_thread)


def _follow_threads(patches: Patches, gpus: Gpus) -> None:
    """Let threads that a program starts use the GPUs."""
    _enter_in_threads(
        patches, lambda: [gpus.mode, *(block() for block in gpus.followed)], gpus.node
    )


def has_gpu() -> bool:
    """Whether PyTorch is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())
