"""Calls of libraries by code of `torch.compile`: what Inductor generates no kernel for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from wavecast.runtimes.model_lines import model_lines
from wavecast.runtimes.operator_recorder import OperatorRecorder
from wavecast.systems.sources.calls import OperatorCall, TensorSizes
from wavecast.systems.sources.kernels import launches_nothing

Heard = Callable[[OperatorCall, tuple[str, ...]], None]
"""Told of a call and its lines in the model."""


def with_listener(call: Callable[..., Any], heard: Heard) -> Callable[..., Any]:
    """The function of a module of generated code, whose calls of libraries are `heard`."""

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _Listener(heard):
            return call(*args, **kwargs)

    return run


def unheard(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls are not heard: an autotuner's copies of arguments are none of the
    graph's."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        _Listener.deaf += 1
        try:
            return function(*args, **kwargs)
        finally:
            _Listener.deaf -= 1

    return run


class _Listener(OperatorRecorder):
    """Hears PyTorch's operators; those of the library launch kernels, which are captured."""

    deaf: ClassVar[int] = 0
    """How many functions that are not heard are running."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        keywords = dict(kwargs or {})
        result = func(*args, **keywords)
        if func.namespace == "aten" and not func.is_view and not self.deaf:
            read = {key: value for key, value in keywords.items() if key != "out"}
            self.record(func, args, read, result)
            for call in self.calls:
                if not launches_nothing(call):
                    self._heard(_alone(call), model_lines())
            for collection in (self.calls, self._alive, self._storages, self._writer):
                collection.clear()  # memory of the graph is not kept longer than it keeps it
        return result


def _alone(call: OperatorCall) -> OperatorCall:
    """The call with its storages numbered from 0, so that equal calls are equal."""
    numbers: dict[int, int] = {}

    def renumber(value: Any) -> Any:
        if isinstance(value, TensorSizes):
            return replace(value, storage=numbers.setdefault(value.storage, len(numbers)))
        return tuple(map(renumber, value)) if isinstance(value, tuple) else value

    return replace(
        call,
        inputs=renumber(call.inputs),
        outputs=renumber(call.outputs),
        arguments={name: renumber(value) for name, value in call.arguments.items()},
        after=(),
    )


__all__ = ["Heard", "unheard", "with_listener"]
