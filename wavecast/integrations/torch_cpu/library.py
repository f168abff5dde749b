"""Custom operators registered for `cuda`: registered for the CPU, and run with `cuda` emulated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from wavecast.integrations.patching import Patches
from wavecast.integrations.torch_cpu.mode import CudaOnCpu


def install(patches: Patches, mode: CudaOnCpu) -> None:
    """Replace `torch.library.custom_op`, `register_kernel` and `Library.impl` for the time."""
    import torch

    library = torch.library
    inside = functools.partial(_inside, mode)

    custom_op = library.custom_op

    @functools.wraps(custom_op)
    def any_device_op(name: Any, fn: Any = None, /, **kwargs: Any) -> Any:
        if kwargs.get("device_types") is not None:
            kwargs["device_types"] = _cpu_types(kwargs["device_types"])

        def define(function: Callable) -> Any:
            # The wrapper's globals do not know the names of the function's annotations.
            writes = kwargs.get("mutates_args", ())
            schema = kwargs.get("schema") or library.infer_schema(function, mutates_args=writes)
            return custom_op(name, inside(function), **{**kwargs, "schema": schema})

        return define if fn is None else define(fn)

    patches.attribute(library, "custom_op", any_device_op)

    register: Any = library.register_kernel

    @functools.wraps(register)
    def register_kernel(op: Any, device_types: Any, func: Any = None, /, **kwargs: Any) -> Any:
        types = _cpu_types(device_types)
        if func is not None:
            return register(op, types, inside(func), **kwargs)
        return lambda function: register(op, types, inside(function), **kwargs)

    patches.attribute(library, "register_kernel", register_kernel)

    impl = library.Library.impl

    @functools.wraps(impl)
    def impl_on_cpu(
        self: Any, op_name: Any, fn: Any, dispatch_key: str = "", *args: Any, **kwargs: Any
    ) -> Any:
        key = "CPU" if dispatch_key == "CUDA" else dispatch_key
        return impl(self, op_name, inside(fn) if callable(fn) else fn, key, *args, **kwargs)

    patches.attribute(library.Library, "impl", impl_on_cpu)


def _cpu_types(types: Any) -> Any:
    if types == "cuda":
        return "cpu"
    if isinstance(types, (list, tuple)):
        return tuple(dict.fromkeys("cpu" if item == "cuda" else item for item in types))
    return types


def _inside(mode: CudaOnCpu, function: Callable) -> Callable:
    """The dispatcher calls operators with function modes off; switch ours on again."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return function(*args, **kwargs)

    return run
