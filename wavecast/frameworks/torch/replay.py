"""Calls of operators that are replayed instead of prepared again.

Preparing a call takes hundreds of microseconds: checks of the arguments, the choice of a
configuration, Triton's own search for the compiled kernel. All of it depends on the call's
signature alone: dtypes, shapes, strides, devices and the alignment of tensors, and all other
arguments. So the second call of a signature is recorded (`tape`), and later ones allocate the
results and launch.

Calls whose Python reads data, or uses tensors that are neither arguments nor made by the call, are
not replayed; `refusals` has the reasons. Recorded calls belong to Triton's active driver.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]
from torch.autograd import forward_ad
from torch.nn import Parameter
from triton.runtime.driver import driver

from wavecast.frameworks.torch.tape import RecordedCall, Unreplayable, record
from wavecast.kernels.operator import Operator
from wavecast.launch import recording

_SIGNATURES: Final = 512
"""Signatures remembered per operator; the oldest is forgotten first."""
_POINTER_ALIGNMENT: Final = 16
"""Bytes: Triton compiles other code for pointers that are aligned to them."""
_PLAIN: Final = frozenset({int, float, bool, str, type(None), torch.dtype})
_SEEN: Final = object()
MISSED: Final = object()
"""The answer where no recorded call can be replayed."""

_function_modes: Final = torch._C._len_torch_function_stack
_dispatch_modes: Final = torch._C._len_torch_dispatch_stack
_transforms: Final = _functorch.peek_interpreter_stack
_jit_traces: Final = torch._C._get_tracing_state
_is_profiled: Final = torch.autograd._profiler_enabled  # pyright: ignore[reportPrivateImportUsage]
_records_gradients: Final = torch.is_grad_enabled

_repeated: Final[dict[str, RepeatedCalls]] = {}
_owner: Any = None
"""The driver of Triton that all recorded calls belong to."""


def refusals() -> Mapping[str, frozenset[str]]:
    """Why calls are not replayed, by operator."""
    by_operator = {name: calls.refusals() for name, calls in _repeated.items()}
    return {name: reasons for name, reasons in by_operator.items() if reasons}


def repeated_calls(name: str) -> RepeatedCalls:
    """The recorded calls of an operator. Raises KeyError for a name that is not defined."""
    return _repeated[name]


def forget() -> None:
    """Forget all recorded calls."""
    for calls in _repeated.values():
        calls.clear()


recording.on_forget(forget)


class RepeatedCalls:
    """The recorded calls of one operator."""

    def __init__(self, operator: Operator, call: Callable[..., Any]) -> None:
        parameters = inspect.signature(operator.call).parameters
        self.names = tuple(parameters)
        self._defaults = {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty
        }
        self._tail = tuple(self._defaults.get(name) for name in self.names)
        self._call = call
        self._mutates = bool(operator.mutates)
        self._calls: dict[tuple[Any, ...] | None, Any] = {}
        _repeated[operator.name] = self

    def clear(self) -> None:
        """Forget what was recorded."""
        self._calls.clear()

    def refusals(self) -> frozenset[str]:
        """Why signatures are not replayed."""
        return frozenset(entry for entry in self._calls.values() if isinstance(entry, str))

    def __len__(self) -> int:
        return sum(isinstance(entry, RecordedCall) for entry in self._calls.values())

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in the order of its parameters."""
        count = len(args)
        if not kwargs:
            return (*args, *self._tail[count:])
        rest = zip(self.names[count:], self._tail[count:], strict=True)
        return (*args, *(kwargs.get(name, default) for name, default in rest))

    def eager(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a recorded call where PyTorch's dispatcher has nothing else to do for these
        arguments, else `MISSED`."""
        if (
            driver._active is not _owner
            or recording.blocked
            or _function_modes()
            or _dispatch_modes()
            or _transforms() is not None
            or _jit_traces() is not None
            or forward_ad._current_level >= 0
            or _is_profiled()
            or self._mutates
        ):
            return MISSED
        tensors: list[Tensor] = []
        call: Any = self._calls.get(_signature(self.values(args, kwargs), tensors))
        if call.__class__ is not RecordedCall:
            return MISSED
        for at in call.doubtful:
            if tensors[at].is_neg():
                return MISSED
        if _records_gradients():
            for tensor in tensors:
                if tensor.requires_grad:
                    return MISSED
        return call.run(tensors) if call.device < 0 or call.is_here() else MISSED

    def replayable(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...] | None, list[Tensor]]:
        """(the key of a call below the dispatcher, its tensors); None where it may be neither
        recorded nor replayed."""
        if recording.blocked or _function_modes() or _dispatch_modes():
            return None, []
        tensors: list[Tensor] = []
        return _signature(self.values(args, kwargs), tensors), tensors

    def below(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a recorded call, or `MISSED`, for tensors that need nothing but a kernel of
        their device."""
        key, tensors = self.replayable(args, kwargs)
        call = None if key is None else self.find(key)
        return MISSED if call is None else call.run(tensors)

    def find(self, key: tuple[Any, ...]) -> RecordedCall | None:
        """The call recorded under a key, if Triton's driver is the one it was recorded for."""
        call = self._calls.get(key)
        if isinstance(call, RecordedCall) and driver._active is _owner and call.is_here():
            return call
        return None

    def call(
        self, key: tuple[Any, ...] | None, tensors: list[Tensor], arguments: Mapping[str, Any]
    ) -> Any:
        """Run a call that was not found; the second of a signature is recorded."""
        global _owner
        if key is None:
            return self._call(**arguments)
        if driver._active is not _owner:
            forget()
            _owner = driver._active
        entry = self._calls.get(key)
        if entry is None:
            while len(self._calls) >= _SIGNATURES:
                self._calls.pop(next(iter(self._calls)), None)
            self._calls[key] = _SEEN
        distinct = len({id(tensor) for tensor in tensors}) == len(tensors)
        if entry is not _SEEN or driver._active is None or not distinct:
            return self._call(**arguments)
        result, recorded = record(self._call, arguments, tensors)
        self._calls[key] = recorded.reason if isinstance(recorded, Unreplayable) else recorded
        return result


def _signature(values: Sequence[Any], tensors: list[Tensor]) -> tuple[Any, ...] | None:
    """What the preparation of a call depends on; its tensors are added to `tensors`. None for
    arguments of other types."""
    parts: list[Any] = []
    try:
        _sign(values, parts, tensors)
    except (TypeError, RuntimeError):  # a type that is not plain, a tensor without strides
        return None
    return tuple(parts)


def _sign(values: Sequence[Any], parts: list[Any], tensors: list[Tensor]) -> None:
    for value in values:
        kind = value.__class__
        if kind is Tensor or kind is Parameter:
            tensors.append(value)
            parts += (
                value.dtype,
                value.shape,
                value.stride(),
                value.data_ptr() % _POINTER_ALIGNMENT,
                value.get_device(),
            )
        elif kind in _PLAIN:
            parts.append(value)
        elif kind is list or kind is tuple:
            parts.append(len(value))
            _sign(value, parts, tensors)
        else:
            raise TypeError(kind)


__all__ = ["MISSED", "RepeatedCalls", "forget", "refusals", "repeated_calls"]
