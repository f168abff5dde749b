"""Work, bounds and time of kernels and operations.

The package is callable: `wavecast.model("Llama-3.3-70B", system="8xMI300X")` predicts a whole
model, as `wavecast.models.model`, and `wavecast.model(module, inputs, system="mi300x")` a module of
PyTorch, as `wavecast.models.module`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """This package. Python makes a package an attribute of its parent when it is imported, so the
    function of the same name must be a call of the package."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        models = sys.modules["wavecast"].models
        return models.any_model(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
