"""Modules that are imported as soon as a program imports one of an optional library.

They use interfaces that not every version of the library has. Where one is missing, the program's
import succeeds and a warning says what does not work.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from wavecast.runtimes.patching import Patches

PALLAS: Final = "jax._src.pallas.pallas_call"
"""The module of JAX that defines what a Pallas kernel is lowered to."""
DTENSOR: Final = "torch.distributed.tensor"
"""DTensor: PyTorch does not import it by itself."""
TRANSFORMERS: Final = "transformers.modeling_utils"
"""The base of all models of transformers."""

DYNAMO: Final = "torch._dynamo.backends.registry"
"""The names of the backends of `torch.compile`."""


def when_imported(patches: Patches, module: str, then: str) -> None:
    """Import the module `then` as soon as `module` is imported, or now if it already is; until
    `patches` are undone."""

    def run() -> None:
        try:
            import_module(then)
        except (ImportError, AttributeError) as error:
            warnings.warn(
                f"{then} does not work with this version of {module}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    if module in sys.modules:
        import_module(then)
    else:
        call_when_imported(patches, module, run)


def call_when_imported(
    patches: Patches, module: str, then: Callable[[], None], *, before: bool = False
) -> None:
    """Call `then` as soon as `module` is imported, or now if it already is; until `patches` are
    undone. With `before`, it is called before the module is executed."""
    if module in sys.modules:
        then()
        return
    finder = _Finder(module, then, before)
    sys.meta_path.insert(0, finder)
    patches.callback(_forget, finder)


def _forget(finder: _Finder) -> None:
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds one module as the other finders do, and calls a function after it, or `before`."""

    def __init__(self, module: str, then: Callable[[], None], before: bool) -> None:
        self._module, self._call, self._before = module, then, before

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called for every import."""
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                loader: Any = spec.loader
                loader.exec_module = _calling(loader.exec_module, self._call, self._before)
                return spec
        return None


def _calling(
    execute: Callable[[ModuleType], None], call: Callable[[], None], before: bool
) -> Callable[[ModuleType], None]:
    def exec_module(module: ModuleType) -> None:
        if before:
            call()
        execute(module)
        if not before:
            call()

    return exec_module


__all__ = ["DTENSOR", "DYNAMO", "PALLAS", "TRANSFORMERS", "call_when_imported", "when_imported"]
