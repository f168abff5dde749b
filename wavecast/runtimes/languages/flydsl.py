"""FlyDSL: its compiler asks for the target by variables, and links with ROCm's linker.

Its code objects have arguments without names. A tensor is a pointer and, where its shape is not
constant, its shape and strides by value (`-fly-rewrite-func-signature`, FlyDSL 0.5.0).
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

from wavecast.runtimes.hip_host.argument_names import NamedArgument, argument_names
from wavecast.runtimes.languages.rocm_folder import use_rocm_folder

_POINTERS: Final = ("!fly.memref<", "!fly.ptr<", "!llvm.ptr")
_OWN_TYPES: Final = "!fly."
_DYNAMIC: Final = "?"
"""What a type has that is not known when a kernel is compiled."""


def prepare(target: str) -> None:
    """Let FlyDSL compile for a target. Source: `flydsl/runtime/device.py`, FlyDSL 0.5.0; its
    kernels ask `ARCH`, too."""
    use_rocm_folder(target)
    os.environ["FLYDSL_GPU_ARCH"] = os.environ["ARCH"] = target
    os.environ.setdefault("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")  # source lines


def watch_kernels(target: str) -> None:
    """Learn the names of arguments of the kernels that FlyDSL compiles from now on."""
    del target
    argument_names.in_use = True
    _watch_emission()


@functools.cache
def _watch_emission() -> None:
    module: Any = sys.modules["flydsl.compiler.kernel_function"]
    original = module.KernelFunction._emit_kernel

    @functools.wraps(original)
    def emit(
        function: Any, context: Any, args: tuple, kwargs: dict, *rest: Any, **more: Any
    ) -> Any:
        result = original(function, context, args, kwargs, *rest, **more)
        bound = function._sig.bind(*args, **kwargs)
        bound.apply_defaults()
        argument_names.add(result[0], [*_arguments(bound, result[1])])
        return result

    module.KernelFunction._emit_kernel = emit


def _arguments(bound: inspect.BoundArguments, passed: tuple[Any, ...]) -> Iterator[NamedArgument]:
    """The arguments of a kernel from its parameters, of which some are `passed`, in their order."""
    protocol: Any = sys.modules["flydsl.compiler.protocol"]
    waiting = list(passed)
    for name, value in bound.arguments.items():
        if not waiting or waiting[0] is not value:
            continue  # a constant of the compilation
        waiting.pop(0)
        types = [str(kind) for kind in protocol.get_ir_types(value)]
        for number, text in enumerate(types):
            label = name if len(types) == 1 else f"{name}[{number}]"
            yield from _of_type(label, text)


def _of_type(name: str, text: str) -> Iterator[NamedArgument]:
    """The arguments that a value of a type is passed as."""
    if text.startswith(_POINTERS):
        yield NamedArgument(name, True)
        name = f"{name}.layout"
    if not text.startswith((_OWN_TYPES, *_POINTERS)) or _DYNAMIC in text:
        yield NamedArgument(name, False)


__all__ = ["prepare", "watch_kernels"]
