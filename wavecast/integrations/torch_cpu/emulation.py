"""`emulated_cuda`: while it is active, `cuda` means the CPU, and queries describe another GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from wavecast.errors import MissingTool
from wavecast.integrations.devices import DeviceFacts
from wavecast.integrations.patching import Patches


@contextlib.contextmanager
def emulated_cuda(
    facts: DeviceFacts,
    note: Callable[[str], None],
    in_doubt: Callable[[], bool] = lambda: False,
    *,
    executing: bool = False,
) -> Iterator[None]:
    """Run PyTorch code that says `cuda` on CPU tensors that call themselves `cuda:0`.

    `note` receives lines the user must see. Comparisons of tensors succeed while `in_doubt()` says
    that numbers are missing. With `executing`, launches are executed and events measure them.
    Everything is put back at the end. Raises MissingTool without PyTorch.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingTool(
            "PyTorch is not installed", hint="pip install 'wavecast[torch]'"
        ) from error
    from wavecast.integrations.torch_cpu import (
        checks,
        compiling,
        cuda_api,
        fake,
        library,
        mode,
        products,
    )

    patches = Patches()
    active = mode.CudaOnCpu(torch)
    try:
        compiling.install(patches, facts)
        cuda_api.install(patches, facts, executing=executing)
        checks.install(patches, in_doubt, note)
        fake.install(patches)
        products.install(patches)
        mode.install(patches, active)
        library.install(patches, active)
        with active:
            yield
    finally:
        patches.restore()


def has_gpu() -> bool:
    """Whether PyTorch is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())
