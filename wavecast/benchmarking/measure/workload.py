"""What is measured: an operator of the library, or a Python function, at values of its axes."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from wavecast.benchmarking.records import BenchSubject, Scalar
from wavecast.errors import InputError, UsageError, WavecastError
from wavecast.kernels import registry
from wavecast.kernels.operator import Operator
from wavecast.perfmodel.bounds import Work


class Workload(ABC):
    """One subject that can be called again and again."""

    subject: BenchSubject

    @abstractmethod
    def prepare(self, seed: int, *, values: bool = True, device: str = "cpu") -> Callable[[], Any]:
        """A call with its own inputs on `device`. Without `values` nothing reads them: they may
        be only allocated."""

    @abstractmethod
    def verify(self) -> tuple[float | None, tuple[str, ...]]:
        """(largest error as a multiple of the tolerance, None where there is no reference; what is
        wrong), run on the local GPU with its own inputs and outputs full of NaN before. Raises
        what the call raises."""

    @abstractmethod
    def work(self) -> Work | None:
        """Useful FLOPs and least bytes, None where nobody said."""

    @abstractmethod
    def problems(self, arch: str | None, *, check: bool) -> tuple[float | None, tuple[str, ...]]:
        """(largest error as a multiple of the tolerance, what is wrong), run on an emulated device,
        or on the local GPU where `arch` is None; (None, ()) where there is no reference. `check`
        watches emulated launches for races, missing waits and more."""


class OperatorWorkload(Workload):
    """An operator at sizes, which are its axes."""

    def __init__(self, operator: Operator, sizes: Mapping[str, Scalar]) -> None:
        operator.check_sizes(sizes)
        self.operator = operator
        self.sizes = operator.complete_sizes(sizes)
        self.subject = BenchSubject("operator", operator.name, self.sizes)

    def prepare(self, seed: int, *, values: bool = True, device: str = "cpu") -> Callable[[], Any]:
        from wavecast.launch.inputs import Make
        from wavecast.runtimes.gpu.inputs import MakeThere

        make = Make(seed, values=values) if device == "cpu" else MakeThere(seed, device)
        inputs = self.operator.call_inputs(make, self.sizes)
        return lambda: self.operator.call(**inputs)

    def verify(self) -> tuple[float | None, tuple[str, ...]]:
        from wavecast.frameworks.torch.verifying import operator_problems

        return operator_problems(self.operator, self.sizes)

    def work(self) -> Work | None:
        return self.operator.work(**self.sizes)

    def problems(self, arch: str | None, *, check: bool) -> tuple[float | None, tuple[str, ...]]:
        from wavecast.frameworks.torch import verify

        verdict = verify.verify(self.operator, self.sizes, arch, check=check, seed=1)
        return verdict.error, verdict.problems


class FunctionWorkload(Workload):
    """`module:function`. The function takes axes by name and returns what is called and timed: it
    makes the inputs, the function it returns uses them."""

    def __init__(self, path: str, axes: Mapping[str, Scalar]) -> None:
        module, _, name = path.partition(":")
        try:
            namespace = import_module(module)
        except Exception as error:
            raise InputError(f"cannot import {module}: {_error_text(error)}") from error
        if not hasattr(namespace, name):
            raise InputError(f"{module} has no function {name!r}")
        self._make = getattr(namespace, name)
        self._axes = dict(axes)
        self.subject = BenchSubject("callable", path, self._axes)

    def prepare(self, seed: int, *, values: bool = True, device: str = "cpu") -> Callable[[], Any]:
        del values, device
        from wavecast.runtimes.gpu.inputs import seed as seeded

        seeded(seed)
        try:
            inspect.signature(self._make).bind(**self._axes)
        except TypeError as error:
            raise UsageError(f"{self.subject.name}: {error}") from None
        function = self._wrap_errors(lambda: self._make(**self._axes))()
        if not callable(function):
            raise UsageError(f"{self.subject.name} returns {type(function).__name__}, no function")
        return self._wrap_errors(function)

    def _wrap_errors(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """`call`, whose errors are those of the user's function."""

        def run() -> Any:
            try:
                return call()
            except WavecastError:
                raise
            except Exception as error:
                raise InputError(f"{self.subject.name}: {_error_text(error)}") from error

        return run

    def verify(self) -> tuple[float | None, tuple[str, ...]]:
        from wavecast.frameworks.torch.verifying import unwritten

        wrong = unwritten(lambda: self.prepare(1, device="cuda"))
        return None, (wrong,) if wrong else ()

    def work(self) -> Work | None:
        return None

    def problems(self, arch: str | None, *, check: bool) -> tuple[float | None, tuple[str, ...]]:
        if arch is None or not check:
            return None, ()
        from wavecast.emulate.check.collected import Reports
        from wavecast.runtimes.triton import device

        reports = Reports()
        with device(arch, check=reports):
            self.prepare(1)()
        return None, tuple(f"check: {report}" for report in reports.errors)


def _error_text(error: Exception) -> str:
    """An error of somebody else's code, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def workload(name: str, axes: Mapping[str, Scalar]) -> Workload:
    """What a user names: an operator, or `module:function`. Raises UnknownName, InputError,
    UsageError for axes it does not have."""
    if ":" in name:
        return FunctionWorkload(name, axes)
    return OperatorWorkload(registry.operator(name), axes)


__all__ = ["FunctionWorkload", "OperatorWorkload", "Workload", "workload"]
