"""The module that a function of a user's script makes: `script.py:factory`."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch

from wavecast.errors import CaptureError, InputError, UnknownName, UsageError, WavecastError
from wavecast.runtimes.function_mode import FunctionMode
from wavecast.runtimes.torch_cpu.mode import CudaOnCpu
from wavecast.runtimes.torch_graph.module import module_graph
from wavecast.runtimes.triton.program import ending
from wavecast.systems.sources.calls import ModuleGraph


@contextlib.contextmanager
def script_module(path: str | Path, factory: str) -> Iterator[tuple[Any, Any, str]]:
    """The module that `factory()` of a script returns, its inputs, and a name. What the module
    imports and prints in the block is the script's.

    The script runs as a module in this process. In the function random, empty and constant tensors
    have sizes and no values (`torch.device("meta")`), so weights take no memory. It returns
    `(module, inputs)`; inputs are a tensor, a tuple, or a mapping by name.

    Raises InputError without such a script, UnknownName without such a function, UsageError for
    what it returns, CaptureError where the script or the module fails, with its line.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such script: {path}")
    with _output_to_stderr(), _importable(path.resolve().parent):
        function = _function(path, factory)
        try:
            with _WithoutValues(), CudaOnCpu(torch):
                result = function()
        except WavecastError:
            raise
        except (Exception, SystemExit) as error:  # of any kind: the script is somebody else's
            raise CaptureError(f"{factory}() fails: {ending(error, path)}") from error
        if not (isinstance(result, tuple | list) and len(result) == 2):
            raise UsageError(
                f"{factory}() returns a {type(result).__name__}", hint="return (module, inputs)"
            )
        yield (*result, f"{path.name}:{factory}")


def script_graph(
    path: str | Path, factory: str, *, train: bool = False, optimizer: str = ""
) -> ModuleGraph:
    """The graph of the module of a script. Raises as `script_module` and `module_graph`."""
    with script_module(path, factory) as (module, inputs, name):
        return module_graph(module, inputs, train=train, optimizer=optimizer, name=name)


class _WithoutValues(FunctionMode):
    """Makes tensors on the device meta, but for those whose values a constructor may need:
    `tensor`, `arange`, `linspace`."""

    _MAKERS: Final = frozenset(
        {
            *(torch.empty, torch.zeros, torch.ones, torch.full, torch.eye, torch.rand),
            *(torch.randn, torch.randint, torch.empty_strided, torch.randperm),
        }
    )

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]  # without values it is on every device
        if func in self._MAKERS:
            kwargs["device"] = "meta"
            kwargs.pop("generator", None)
            kwargs.pop("pin_memory", None)
        return func(*args, **kwargs)


def _function(path: Path, factory: str) -> Callable[[], Any]:
    spec = importlib.util.spec_from_file_location(f"wavecast_script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # of any kind: the script is somebody else's
        sys.modules.pop(spec.name, None)
        raise CaptureError(f"{path.name} fails: {ending(error, path)}") from error
    function = getattr(module, factory, None)
    if not callable(function):
        names = [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]
        raise UnknownName(f"function of {path.name}", factory, names)
    return function


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """What the script prints does not belong to the answer."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


__all__ = ["script_graph", "script_module"]
