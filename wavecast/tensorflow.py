"""`wavecast.tensorflow`: the kernel library as functions on tensors of TensorFlow.

    import wavecast.tensorflow as wt

    y = wt.rms_norm(x, weight)          # the reference, in PyTorch on the CPU
    with wt.device("gfx942"):
        y = wt.rms_norm(x, weight)      # the machine code of a GPU, executed

Functions are those of `wavecast.ops`; `names()` lists them. They work in eager mode, under
`tf.function` and with `tf.GradientTape`. A traced function keeps the device of its trace. `layers`
has layers of Keras made of them.

Import this module before tensorflow: a process that loads TensorFlow's LLVM before Triton's aborts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint

if "tensorflow" in sys.modules and "triton._C.libtriton" not in sys.modules:
    raise UsageError(
        "wavecast.tensorflow is imported after tensorflow, and Triton cannot be loaded after it",
        hint="import wavecast.tensorflow before tensorflow",
    )

from wavecast.kernels import registry

try:
    from wavecast.frameworks.host_calls.binding import device, names
    from wavecast.frameworks.tensorflow import layers
    from wavecast.frameworks.tensorflow.functions import function
except ModuleNotFoundError as error:
    if error.name not in ("tensorflow", "keras", "torch", "ml_dtypes"):
        raise
    hint = install_hint("tensorflow")
    raise MissingTool(f"{error.name} is not installed", hint=hint) from None

_function = cache(function)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or name not in registry.operators():
        raise AttributeError(f"module 'wavecast.tensorflow' has no operator {name!r}")
    return _function(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *names()])


__all__ = ["device", "layers", "names"]
