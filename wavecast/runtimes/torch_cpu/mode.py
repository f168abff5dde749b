"""Every PyTorch call while a GPU is emulated: device arguments say `cpu`, tensors say `cuda:0`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode_temporarily,
)
from torch.utils._device import _device_constructors

from wavecast.launch import graph_capture
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.random import CudaGenerator, check_generator

_NAMES = ("cuda", "hip")
_ASKED = "_wavecast_device"
"""Attribute of a `DeviceContext`: the device that the program asked for."""


def is_cuda(device: Any) -> bool:
    """Whether a device argument means a GPU: `"cuda"`, `"cuda:1"`, `torch.device("cuda")`."""
    if isinstance(device, str):
        return device.split(":", 1)[0] in _NAMES
    return getattr(device, "type", None) in _NAMES and hasattr(device, "index")


def default_device() -> Any:
    """The device that `torch.set_default_device` has chosen for the calling thread, None without:
    its mode is called after the others."""
    for mode in _get_current_function_mode_stack():
        device = getattr(mode, _ASKED, None)
        if device is not None:
            return device
    return None


def on_cpu(device: Any) -> Any:
    """The device argument to use instead; bare numbers are GPU ordinals."""
    if is_cuda(device) or (isinstance(device, int) and not isinstance(device, bool)):
        return "cpu"
    return device


class CudaOnCpu(TorchFunctionMode):
    """Rewrites device arguments and answers what a tensor says about its device. `on_address` gets
    tensors whose address is asked for."""

    def __init__(self, torch: ModuleType, on_address: Callable[[Any], None] | None = None) -> None:
        super().__init__()
        self._torch = torch
        tensor = torch.Tensor
        here = torch.device("cuda", 0)
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.device.__get__: lambda *_: here,
            tensor.is_cuda.__get__: lambda *_: True,
            tensor.is_cpu.__get__: lambda *_: False,
            tensor.get_device: lambda *_: 0,
            torch.get_device: lambda *_: 0,
            tensor.cuda: lambda self, *_, **__: self,
            tensor.pin_memory: lambda self, *_, **__: self,
            tensor.is_pinned: lambda *_, **__: False,
            tensor.record_stream: lambda *_, **__: None,
            torch.device: _device,
        }
        if on_address is not None:
            for original in (tensor.data_ptr, tensor.__dlpack__, tensor.untyped_storage):
                self._answers[original] = _telling(original, on_address)
        self._for_host = {tensor.tolist, tensor.numpy, tensor.cpu}
        """What gives the host values, which a capture has not."""
        self._to = tensor.to
        self._type = tensor.type

    @property
    def gpus(self) -> Any:
        """The `Gpus`, where there are several, else None."""
        return None

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """A block with this mode alone: PyTorch calls Python from its dispatcher with modes off,
        and operators of Python with those that are on, several times."""
        with contextlib.ExitStack() as others:
            while _get_current_function_mode_stack():
                others.enter_context(_pop_mode_temporarily())
            others.enter_context(self)
            yield

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        del types
        return self._rewrite(self._answers, func, args, kwargs or {})

    def _rewrite(
        self, answers: dict[Any, Callable[..., Any]], func: Any, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """Answer a call by `answers`, or make it with rewritten arguments."""
        if func in self._for_host:
            graph_capture.check_may_wait()
        answer = answers.get(func)
        if answer is not None and not _is_meta(args):
            return answer(*args, **kwargs)
        if func is self._to:
            args, kwargs = _without_gpu(args, kwargs)
            if len(args) == 1 and not kwargs:
                return args[0]
        elif func is self._type and len(args) == 1 and not kwargs:
            is_on_gpu = answers[torch.Tensor.is_cuda.__get__](*args)  # type: ignore[attr-defined]
            return func(*args).replace("torch.", "torch.cuda." if is_on_gpu else "torch.")
        elif func is self._type and len(args) > 1 and isinstance(args[1], str):
            args = (args[0], args[1].replace("torch.cuda.", "torch."), *args[2:])
        else:
            args = tuple("cpu" if _is_device(item) else item for item in args)
        if kwargs.get("device") is not None:
            if kwargs.get("generator") is not None:
                is_gpu = on_cpu(kwargs["device"]) != kwargs["device"]
                check_generator(kwargs["generator"], is_gpu=is_gpu)
            kwargs = {**kwargs, "device": on_cpu(kwargs["device"])}
        if isinstance(kwargs.get("generator"), CudaGenerator):
            kwargs = {**kwargs, "generator": kwargs["generator"].cpu}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        return func(*args, **kwargs)


def _device(*args: Any, **kwargs: Any) -> torch.device:
    """`torch.device`, where a bare number is the ordinal of a GPU."""
    if len(args) == 1 and isinstance(args[0], int) and not kwargs:
        return torch.device("cuda", args[0])
    return torch.device(*args, **kwargs)


def _telling(original: Callable[..., Any], tell: Callable[[Any], None]) -> Callable[..., Any]:
    """A method of tensors that tells of the tensor first."""

    def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        tell(tensor)
        return original(tensor, *args, **kwargs)

    return call


def install(patches: Patches, mode: CudaOnCpu) -> None:
    """The few places a function mode does not see."""
    from torch.utils import _device, checkpoint

    # `with torch.device("cuda")` and `torch.set_default_device("cuda")`
    init = _device.DeviceContext.__init__

    def init_on_cpu(context: Any, device: Any) -> None:
        init(context, on_cpu(device))
        setattr(context, _ASKED, device)

    patches.attribute(_device.DeviceContext, "__init__", init_on_cpu)
    if mode.gpus is not None:
        call = _device.DeviceContext.__torch_function__
        patches.attribute(_device.DeviceContext, "__torch_function__", _passing_device(call, mode))
    # Recomputed tensors are compared with saved ones, which are asked without modes where they are.
    extract = checkpoint._default_meta_extractor
    checks = checkpoint._allowed_determinism_checks_to_fns
    patches.attribute(
        checkpoint,
        "_allowed_determinism_checks_to_fns",
        {**checks, "default": lambda x: {**extract(x), "device": _where(x)}},
    )
    # Backward functions run inside the engine, where modes are switched off by the caller.
    engine = torch.autograd.graph._engine_run_backward

    @functools.wraps(engine)
    def run_backward(*args: Any, **kwargs: Any) -> Any:
        if _tracing():
            return engine(*args, **kwargs)
        with mode:
            return engine(*args, **kwargs)

    patches.attribute(torch.autograd, "_engine_run_backward", run_backward)
    patches.attribute(torch.autograd.graph, "_engine_run_backward", run_backward)
    # Tensor subclasses that wrap other tensors pass what those say of their device.
    _map_argument(patches, torch.Tensor, "_make_wrapper_subclass", "device")
    patches.attribute(torch, "Generator", _generator(torch.Generator, mode))


def _passing_device(call: Callable[..., Any], mode: CudaOnCpu) -> Callable[..., Any]:
    """What `with torch.device(…)` does with a call: where `mode` comes after it, with the device
    that the program asked for."""

    @functools.wraps(call)
    def with_device(context: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (
            func in _device_constructors()
            and kwargs.get("device") is None
            and mode in _get_current_function_mode_stack()
        ):
            kwargs = {**kwargs, "device": getattr(context, _ASKED)}
        return call(context, func, types, args, kwargs)

    return with_device


def _where(tensor: torch.Tensor) -> str:
    """Where a tensor's memory is, whatever it says."""
    with torch._C.DisableTorchFunction():
        return str(tensor.device)


def _tracing() -> bool:
    """Whether PyTorch takes a graph out of what runs now; its tensors must say where they are."""
    kinds = torch._C._TorchDispatchModeKey
    return any(
        torch._C._get_dispatch_mode(kind) is not None for kind in (kinds.FUNCTIONAL, kinds.PROXY)
    )


def _generator(original: type, mode: CudaOnCpu) -> type:
    """`torch.Generator` under its own name: still a type, which makes those of the GPU too."""

    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, (original, CudaGenerator))

        def __call__(cls, device: Any = "cpu") -> Any:
            if on_cpu(device) == device:
                return original(device)
            return CudaGenerator(gpu=0 if mode.gpus is None else mode.gpus.index(device))

    return Meta("Generator", (), {})


def _map_argument(patches: Patches, owner: Any, name: str, argument: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call_on_cpu(*args: Any, **kwargs: Any) -> Any:
        if argument in kwargs:
            kwargs[argument] = on_cpu(kwargs[argument])
        args = tuple("cpu" if _is_device(item) else item for item in args)
        return original(*args, **kwargs)

    patches.attribute(owner, name, call_on_cpu)


def _is_device(value: Any) -> bool:
    """Whether a positional argument is a device: a string or a number may be anything."""
    return isinstance(value, torch.device) and is_cuda(value)


def _is_meta(args: tuple) -> bool:
    return bool(args) and bool(getattr(args[0], "is_meta", False))


def _without_gpu(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments of `Tensor.to` without the GPU they name and how to get there."""
    tensor, rest = args[0], args[1:]
    if rest and on_cpu(rest[0]) == "cpu":
        rest = tuple(item for item in rest[1:2] if item is not None and not isinstance(item, bool))
    dropped = {"non_blocking"}
    if on_cpu(kwargs.get("device")) == "cpu":
        dropped.add("device")
    return (tensor, *rest), {name: kwargs[name] for name in kwargs if name not in dropped}
