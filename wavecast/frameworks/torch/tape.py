"""One call of an operator as steps to repeat: what it allocates, what PyTorch computes, what it
launches.

A step reads and writes numbered tensors: first the arguments of the call, then what its steps made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from triton import knobs
from triton.runtime.driver import driver
from triton.tools.tensor_descriptor import TensorDescriptor

from wavecast.launch import recording
from wavecast.launch.recording import RecordedLaunch

Tensors = list[Any]
"""The numbered tensors of a replay."""
Run = Callable[[Tensors], None]

_EMPTY: Final = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")
)
_ZEROS: Final = frozenset({"aten::zeros", "aten::zeros_like", "aten::new_zeros"})
_SAME_TENSOR: Final = frozenset({"aten::detach", "aten::alias"})
_READS_DATA: Final = frozenset({"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"})


@dataclass(frozen=True, slots=True)
class Unreplayable:
    """Why a call cannot be replayed."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Step:
    """`run` after the tensors `reads` are there; it makes `makes`. `pure`: it may be left out where
    nothing reads what it makes."""

    run: Run
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    pure: bool


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The steps of a call. `device` is the index of the GPU it was recorded on, -1 on the CPU.
    `doubtful` are the tensors that may be the negative of their memory, as parts of complex tensors
    are: those without neighbouring elements."""

    steps: tuple[Run, ...]
    spare: tuple[None, ...]
    result: int | tuple[int, ...] | None
    device: int
    doubtful: tuple[int, ...]

    def is_here(self) -> bool:
        """Whether the current GPU is the one of the call."""
        return self.device < 0 or self.device == torch._C._cuda_getDevice()

    def run(self, tensors: Sequence[Tensor]) -> Any:
        """Repeat the call with other tensors of its signature; the result is a new tensor, a tuple
        of them, or None."""
        numbered: Tensors = [*tensors, *self.spare]
        for step in self.steps:
            step(numbered)
        result = self.result
        if result.__class__ is int:
            return numbered[result]  # pyright: ignore[reportArgumentType, reportCallIssue]
        return None if result is None else tuple(numbered[number] for number in result)  # pyright: ignore[reportGeneralTypeIssues]


def record(
    call: Callable[..., Any], arguments: Mapping[str, Any], tensors: Sequence[Tensor]
) -> tuple[Any, RecordedCall | Unreplayable]:
    """(the result of `call(**given)`, its recording); `tensors` are those among `arguments`."""
    tape = _Tape(tensors)
    with recording.recording(tape.on_launch) as launches:
        tape.launches = launches
        with tape:
            result = call(**arguments)
    outcome = tape.recorded_call(result)
    tape.launches = None  # which refers to the tape: its tensors end with this call
    return result, outcome


@dataclass
class _Tape(TorchDispatchMode):
    """Writes down what PyTorch computes and what is launched. Tensors are kept while it records,
    so that the identity of each stays its own."""

    arguments: Sequence[Tensor]
    steps: list[_Step] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    roots: dict[int, int] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)
    kept: list[Tensor] = field(default_factory=list)
    reason: str = ""
    launches: Any = None

    def __post_init__(self) -> None:
        super().__init__()
        for tensor in self.arguments:
            self._number(tensor)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        kwargs = dict(kwargs or {})
        result = func(*args, **kwargs)
        if not self.launches.paused and not self.reason:
            self._record_operator(func, args, kwargs, result)
        return result

    def on_launch(self, launch: RecordedLaunch) -> None:
        """Write a launch down."""
        if self.reason:
            return
        values, filled, descriptors = list(launch.values), [], []
        for at, value in enumerate(values):
            descriptor = isinstance(value, TensorDescriptor)
            tensor = value.base if descriptor else value
            if not isinstance(tensor, Tensor):
                continue
            number = self.numbers.get(id(tensor))
            if number is None:
                self.reason = f"{launch.kernel.name} reads a tensor the call did not make"
                return
            number = self.same.get(number, number)
            if descriptor:
                values[at] = copy.copy(value)
                values[at].base = None
                descriptors.append((at, number))
            else:
                values[at] = None
                filled.append((at, number))
        reads = tuple(number for _, number in (*filled, *descriptors))
        run = _launching(launch, values, tuple(filled), tuple(descriptors))
        self.steps.append(_Step(run, reads, (), pure=False))

    def recorded_call(self, result: Any) -> RecordedCall | Unreplayable:
        """The call, once it has ended with `result`."""
        reason = self.reason or self.launches.refused
        results = result if isinstance(result, tuple) else () if result is None else (result,)
        numbers = [self.numbers.get(id(tensor)) for tensor in results]
        if not reason and None in numbers:
            reason = "a result that the call did not make"
        if reason:
            return Unreplayable(reason)
        live = {number for number in numbers if number is not None}
        steps: list[Run] = []
        for step in reversed(self.steps):
            if not step.pure or live.intersection(step.makes):
                live.update(step.reads)
                steps.append(step.run)
        returned: Any = tuple(numbers)
        if not isinstance(result, tuple):
            returned = None if result is None else numbers[0]
        device = next((tensor.get_device() for tensor in self.tensors), -1)
        spare = (None,) * (len(self.tensors) - len(self.arguments))
        doubtful = tuple(at for at, tensor in enumerate(self.arguments) if _is_doubtful(tensor))
        return RecordedCall(tuple(reversed(steps)), spare, returned, device, doubtful)

    def _number(self, tensor: Tensor) -> int:
        number = self.numbers.get(id(tensor))
        if number is None:
            number = self.numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return number

    def _record_operator(self, func: Any, args: tuple, kwargs: dict[str, Any], result: Any) -> None:
        name = func._schema.name
        leaves, spec = tree_flatten((args, kwargs))
        reads = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if name in _READS_DATA or any(id(tensor) not in self.numbers for tensor in reads):
            why = "looks at data" if name in _READS_DATA else "is of a tensor the call did not make"
            self.reason = f"{name} {why}"
            return
        results = [result] if isinstance(result, Tensor) else result
        if not isinstance(results, (list, tuple)) or not all(
            isinstance(tensor, Tensor) for tensor in results
        ):
            self.reason = f"{name} returns something else than tensors"
            return
        if name in _SAME_TENSOR:
            self.numbers[id(results[0])] = self._number(reads[0])
            self.kept.append(results[0])
            return
        if name == "aten::as_strided" and _offset(args, kwargs) is not None:
            self.reason = "aten::as_strided at an offset into memory"
            return
        mutable = func._schema.is_mutable
        before = tuple(self._number(tensor) for tensor in reads)
        outputs = tuple(self._number(tensor) for tensor in results)
        if not mutable and reads and all(_is_view(tensor, reads[0]) for tensor in results):
            for number, view in zip(outputs, results, strict=True):
                self._record_view(number, view, before[0])
            return
        if name in _EMPTY:
            run = _allocating(outputs[0], results[0], torch.empty, torch.empty_strided)
        elif name in _ZEROS and results[0].is_contiguous():
            run = _allocating(outputs[0], results[0], torch.zeros, None)
        else:
            filled = [
                (at, self.numbers[id(leaf)])
                for at, leaf in enumerate(leaves)
                if isinstance(leaf, Tensor)
            ]
            static = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
            run = _computing(func, static, spec, filled, outputs, isinstance(result, Tensor))
        pure = not mutable and torch.Tag.nondeterministic_seeded not in func.tags
        self.steps.append(_Step(run, before if name not in _EMPTY | _ZEROS else (), outputs, pure))

    def _record_view(self, number: int, view: Tensor, of: int) -> None:
        """Make a view of the tensor that a tensor is a view of itself, in one step. A kernel gets
        the same address from either where the view has all of its elements."""
        root = self.roots.get(of, of)
        self.roots[number] = root
        tensor = self.tensors[root]
        if view.data_ptr() == tensor.data_ptr() and view.numel() == tensor.numel():
            self.same[number] = root
        shape, stride = tuple(view.shape), view.stride()
        shift = view.storage_offset() - tensor.storage_offset()

        def run(numbered: Tensors) -> None:
            of = numbered[root]
            numbered[number] = of.as_strided(shape, stride, of.storage_offset() + shift)

        self.steps.append(_Step(run, (root,), (number,), pure=True))


def _offset(args: tuple, kwargs: Mapping[str, Any]) -> Any:
    return args[3] if len(args) > 3 else kwargs.get("storage_offset")


def _is_doubtful(tensor: Tensor) -> bool:
    """Whether a tensor of floats has no two neighbouring elements."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.is_floating_point() and not any(n > 1 and step == 1 for n, step in steps)


def _is_view(result: Tensor, of: Tensor) -> bool:
    """Whether a result is another view of a tensor's memory."""
    shared = result.untyped_storage()._cdata == of.untyped_storage()._cdata
    return shared and result.dtype == of.dtype


def _allocating(number: int, like: Tensor, plain: Any, strided: Any) -> Run:
    """Memory of the shape and dtype of a recorded tensor, on its device."""
    shape, dtype, device = tuple(like.shape), like.dtype, like.device
    if strided is None or like.is_contiguous():

        def contiguous(numbered: Tensors) -> None:
            numbered[number] = plain(shape, dtype=dtype, device=device)

        return contiguous
    stride = like.stride()

    def run(numbered: Tensors) -> None:
        numbered[number] = strided(shape, stride, dtype=dtype, device=device)

    return run


def _computing(
    func: Any,
    static: list[Any],
    spec: TreeSpec,
    filled: Sequence[tuple[int, int]],
    outputs: tuple[int, ...],
    single: bool,
) -> Run:
    """What PyTorch computes, by the same function of its library."""

    def run(numbered: Tensors) -> None:
        leaves = static.copy()
        for at, number in filled:
            leaves[at] = numbered[number]
        args, kwargs = tree_unflatten(leaves, spec)
        result = func(*args, **kwargs)
        for number, tensor in zip(outputs, (result,) if single else result, strict=True):
            numbered[number] = tensor

    return run


def _launching(
    launch: RecordedLaunch,
    values: list[Any],
    filled: tuple[tuple[int, int], ...],
    descriptors: tuple[tuple[int, int], ...],
) -> Run:
    """A launch of a compiled kernel on the current stream, with Triton's hooks."""
    kernel, (x, y, z) = launch.kernel, launch.grid
    active: Any = driver.active
    device, stream_of = active.get_current_device(), active.get_current_stream
    start, function, packed = kernel.run, kernel.function, kernel.packed_metadata
    runtime = knobs.runtime

    def run(numbered: Tensors) -> None:
        arguments = values.copy()
        for at, number in filled:
            arguments[at] = numbered[number]
        for at, number in descriptors:
            arguments[at] = copy.copy(values[at])
            arguments[at].base = numbered[number]
        stream = stream_of(device)
        entering, leaving, metadata = runtime.launch_enter_hook, runtime.launch_exit_hook, None
        if entering is not None and entering.calls:
            metadata = kernel.launch_metadata(launch.grid, stream, *arguments)
        start(x, y, z, stream, function, packed, metadata, entering, leaving, *arguments)

    return run


__all__ = ["RecordedCall", "Unreplayable", "record"]
