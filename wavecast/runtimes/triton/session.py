"""Capture inside the calling process: `with capture(arch="gfx942") as launches: …`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wavecast import arch as devices
from wavecast.compile.codeobject import Launch
from wavecast.errors import UsageError
from wavecast.runtimes.devices import DeviceFacts, facts_of
from wavecast.runtimes.triton.profiles import CapturedLaunches
from wavecast.runtimes.triton.recorder import Configurations, Recorder

if TYPE_CHECKING:
    from wavecast.arch import Device


@contextlib.contextmanager
def capture(
    arch: str | Device | DeviceFacts = "gfx942",
    *,
    kernels: str = "",
    configs: Configurations = "first",
    sample: bool = False,
    run: bool = False,
    on_launch: Callable[[Launch], None] | None = None,
) -> Iterator[CapturedLaunches]:
    """Record Triton launches of the block instead of running them.

    The list yielded grows by one per distinct launch. With `sample` some workgroups of every new
    launch for an AMD GPU are executed, for predictions, in the memory its arguments have then, and
    the list's `profiles` have the result. Kernels whose arguments are all indices run to their end,
    as later ones may depend on them; with `run` all kernels do. `on_launch` gets every launch,
    equal ones included.

    Tensors may live on the CPU, and code that says `device="cuda"` gets CPU tensors where PyTorch
    has no GPU. Raises UnknownName for an unknown `arch`, CompileError for a kernel that does not
    compile, UsageError inside another capture.
    """
    from wavecast.runtimes.torch_cpu import emulated_cuda, has_gpu
    from wavecast.runtimes.triton.hooks import Hooks

    facts = device_facts(arch)
    recorder = Recorder(facts.target, kernels=kernels, configurations=configs, strict=True)
    recorder.every_launch = on_launch
    real = has_gpu()
    hooks = Hooks(recorder, facts, torch_device="cuda:0")
    if sample and facts.is_amd:
        from wavecast.runtimes.triton.sampling import Sampler

        device_id = devices.nearest(facts.name, facts.target).id
        hooks.sampler = Sampler([device_id], recorder.note, run_all=run)
    hooks.install()
    try:
        with (
            contextlib.nullcontext()
            if real
            else emulated_cuda(
                facts,
                recorder.note,
                heard=recorder.launches.add_call,
                on_address=hooks.tensors.add,
            )
        ):
            yield recorder.launches
    finally:
        hooks.remove()


def capture_call(
    kernel: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
    device: Device | DeviceFacts,
    configs: Configurations = "first",
) -> list[Launch]:
    """The launches of `kernel[grid](*args, **kwargs)` on `device`: one, or one per configuration.

    Raises CompileError for a kernel that does not compile, UsageError if `kernel` is not a
    Triton kernel.
    """
    if not hasattr(kernel, "run") or not hasattr(kernel, "__getitem__"):
        raise UsageError(
            f"{getattr(kernel, '__name__', kernel)!r} is not a Triton kernel",
            hint="pass a function decorated with @triton.jit",
        )
    with capture(device, configs=configs) as launches:
        kernel[grid if callable(grid) else tuple(grid)](*args, **kwargs)
    return launches


def device_facts(arch: str | Device | DeviceFacts) -> DeviceFacts:
    """What Triton and PyTorch are told about a GPU. Raises UnknownName."""
    if isinstance(arch, DeviceFacts):
        return arch
    if isinstance(arch, str):
        return facts_of(devices.load(arch))
    return facts_of(arch)
