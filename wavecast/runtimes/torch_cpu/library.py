"""Custom operators registered for `cuda`: registered for the CPU, and run with `cuda` emulated.

So run the functions that describe their results, and PyTorch's comparison of both (`opcheck`).
"""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.mode import CudaOnCpu

current_mode: CudaOnCpu | None = None
"""What emulates `cuda` now."""


def install(patches: Patches, mode: CudaOnCpu) -> None:
    """Replace `torch.library.custom_op`, `register_kernel`, `register_fake` and `Library.impl` for
    the time, and what `torch.library.opcheck` compares real and fake results with."""
    import torch
    from torch._subclasses import CrossRefFakeMode

    library = torch.library
    patches.attribute(sys.modules[__name__], "current_mode", mode)

    custom_op = library.custom_op

    @functools.wraps(custom_op)
    def any_device_op(name: Any, fn: Any = None, /, **kwargs: Any) -> Any:
        if kwargs.get("device_types") is not None:
            kwargs["device_types"] = _cpu_types(kwargs["device_types"])

        def define(function: Callable) -> Any:
            # The wrapper's globals do not know the names of the function's annotations.
            writes = kwargs.get("mutates_args", ())
            schema = kwargs.get("schema") or library.infer_schema(function, mutates_args=writes)
            return custom_op(name, _in_mode(function), **{**kwargs, "schema": schema})

        return define if fn is None else define(fn)

    patches.attribute(library, "custom_op", any_device_op)

    register: Any = library.register_kernel

    @functools.wraps(register)
    def register_kernel(op: Any, device_types: Any, func: Any = None, /, **kwargs: Any) -> Any:
        types = _cpu_types(device_types)
        if func is not None:
            return register(op, types, _in_mode(func), **kwargs)
        return lambda function: register(op, types, _in_mode(function), **kwargs)

    patches.attribute(library, "register_kernel", register_kernel)

    register_fake: Any = library.Library._register_fake

    @functools.wraps(register_fake)
    def fake_in_mode(
        self: Any, op_name: Any, fn: Callable, _stacklevel: int = 1, **kwargs: Any
    ) -> Any:
        return register_fake(self, op_name, _in_mode(fn), _stacklevel + 1, **kwargs)

    patches.attribute(library.Library, "_register_fake", fake_in_mode)

    compare = _in_mode(CrossRefFakeMode.__torch_dispatch__)
    patches.attribute(CrossRefFakeMode, "__torch_dispatch__", compare)

    impl = library.Library.impl

    @functools.wraps(impl)
    def impl_on_cpu(
        self: Any, op_name: Any, fn: Any, dispatch_key: str = "", *args: Any, **kwargs: Any
    ) -> Any:
        for_cuda = (dispatch_key or self.dispatch_key) == "CUDA"
        if callable(fn):
            fn = _in_mode(fn)
            if for_cuda and not (args or kwargs.get("with_keyset")):
                fn = _numbers_apart(f"{self.ns}::{_name(op_name).split('::')[-1]}", fn)
        key = "CPU" if for_cuda else dispatch_key
        with warnings.catch_warnings():
            # operators with kernels for `cuda` and for the CPU
            warnings.filterwarnings("ignore", "Warning only once for all operators")
            return impl(self, op_name, fn, key, *args, **kwargs)

    patches.attribute(library.Library, "impl", impl_on_cpu)


def _cpu_types(types: Any) -> Any:
    if types == "cuda":
        return "cpu"
    if isinstance(types, (list, tuple)):
        return tuple(dict.fromkeys("cpu" if item == "cuda" else item for item in types))
    return types


def _name(operator: Any) -> str:
    """`add.Tensor` of a name or of an operator of `torch.ops`."""
    return operator if isinstance(operator, str) else operator.name()


def _numbers_apart(name: str, function: Callable) -> Callable:
    """Calls whose tensors are all numbers go to the operator's own kernel.

    PyTorch makes CPU tensors of numbers, also with a GPU, so that a kernel for `cuda` never sees
    a call with nothing else. An operator without a kernel keeps the new one.
    """
    import torch

    try:
        original: Any = torch.library.get_kernel(name, "CPU")
        schema = torch._C._get_schema(*_overload(name))
    except RuntimeError:
        return function
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    tensors = {index for index, item in enumerate(schema.arguments) if str(item.type) == "Tensor"}

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        numbers = [index for index in tensors if index < len(args)]
        if not numbers or not all(isinstance(args[index], _NUMBERS) for index in numbers):
            return function(*args, **kwargs)
        dtype = kwargs.get("dtype")
        values = [
            torch.tensor(item, dtype=dtype) if index in tensors else item
            for index, item in enumerate(args)
        ]
        return original.call_boxed(cpu, *values, **kwargs)

    return run


_NUMBERS = (bool, int, float, complex)


def _overload(name: str) -> tuple[str, str]:
    base, _, overload = name.partition(".")
    return base, overload


def _in_mode(function: Callable) -> Callable:
    """The dispatcher calls operators with function modes off; switch ours on again. Operators stay
    when GPUs are emulated no more, or others are."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with current_mode or contextlib.nullcontext():
            return function(*args, **kwargs)

    return run
