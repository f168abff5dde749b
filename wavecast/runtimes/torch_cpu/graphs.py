"""`torch.cuda.CUDAGraph` on a GPU that is not there: calls of operators and launches, kept and
executed again on the same memory.

As on a GPU a capture changes no memory that was there before, and whatever waits for a result is an
error. Every tensor counts as one of the GPU. What a capture allocates lives as long as its graph.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from wavecast.errors import CaptureError
from wavecast.launch import graph_capture

_HIDDEN_WRITES: Final = {"aten::native_batch_norm": ("running_mean", "running_var")}
"""Operator -> the arguments that it writes without saying so in its schema."""
_ALLOCATIONS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    )
)  # fmt: skip
_CAPTURE_MODES: Final = ("global", "thread_local", "relaxed")
_pools: Final = itertools.count(1)


class GraphCapture(TorchDispatchMode):
    """Adds every call of an operator in a block to `calls`, and puts back what it wrote."""

    def __init__(self, calls: list[Callable[[], object]]) -> None:
        super().__init__()
        self._calls = calls

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        inputs = _tensors((args, kwargs))
        if not all(_is_memory(tensor) for tensor in inputs):
            return func(*args, **kwargs)
        if _waits(func, args, kwargs):
            raise RuntimeError(
                f"CUDA error: {graph_capture.NOT_PERMITTED} ({func} waits for values)"
            )
        if func._schema.name in _ALLOCATIONS:  # the memory is there at every replay
            return func(*args, **kwargs)
        modes = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        with (
            graph_capture.suspend(),
            _put_back(_written(func, args, kwargs)) as writes,
            _same_numbers(func, kwargs),
        ):
            result = func(*args, **kwargs)
        outputs = _tensors(result)
        if not all(_is_memory(tensor) for tensor in outputs):
            return result
        storages = {tensor.untyped_storage().data_ptr() for tensor in inputs}
        fresh = [tensor.untyped_storage().data_ptr() not in storages for tensor in outputs]
        if not (writes or any(fresh)):
            return result
        operands: tuple = tree_map(_data, args)
        options: dict[str, Any] = tree_map(_data, kwargs)
        kept = [_data(tensor) for tensor in outputs]

        def call() -> None:
            with torch.inference_mode(modes[0]), torch.set_grad_enabled(modes[1]):
                results = _tensors(func(*operands, **options))
                for to, tensor, copied in zip(kept, results, fresh, strict=True):
                    if copied and to.numel():
                        to.copy_(tensor)

        self._calls.append(call)
        return result


class EmulatedGraph:
    """A graph: what was called between `capture_begin` and `capture_end`, in this order."""

    def __init__(self, keep_graph: bool = False) -> None:
        del keep_graph
        self._pool = (0, next(_pools))
        self._mode: GraphCapture | None = None
        self._calls: list[Callable[[], object]] | None = None

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", *_: Any, **__: Any
    ) -> None:
        """Capture this thread's calls. Raises RuntimeError inside a capture, for a graph that has
        one, or another mode."""
        graph_capture.check_may_wait()
        if self._calls is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                "create a new instance."
            )
        if capture_error_mode not in _CAPTURE_MODES:
            raise RuntimeError(f"Unknown capture error mode {capture_error_mode!r}")
        self._pool = self._pool if pool is None else pool
        self._calls = []
        self._mode = GraphCapture(self._calls)
        self._mode.__enter__()
        graph_capture.begin(self._calls)

    def capture_end(self) -> None:
        """End the capture. Raises RuntimeError where none has begun."""
        if self._mode is None:
            raise RuntimeError("capture_end of a graph whose capture has not begun")
        graph_capture.end()
        self._mode.__exit__(None, None, None)
        self._mode = None

    def instantiate(self) -> None:
        """There is nothing to prepare."""

    def replay(self) -> None:
        """Execute the calls again. Raises RuntimeError before a capture, and what they raise."""
        if self._calls is None or self._mode is not None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        around = graph_capture.current()
        if around is not None:  # a graph in a graph
            around.extend(self._calls)
            return
        with torch._C.DisableTorchFunction(), torch._C._DisableAutocast():
            for call in self._calls:
                call()

    def reset(self) -> None:
        """Forget the calls."""
        self._calls = None

    def pool(self) -> tuple[int, int]:
        """The name of the memory pool, which all graphs share here."""
        return self._pool

    def enable_debug_mode(self) -> None:
        """There is nothing to switch on."""

    def register_generator_state(self, generator: Any) -> None:
        """Generators give new numbers at every replay."""
        del generator

    def raw_cuda_graph(self, *_: Any, **__: Any) -> int:
        """Raises CaptureError: there is no graph of a driver."""
        raise CaptureError("graphs of an emulated GPU have no nodes of a driver")

    raw_cuda_graph_exec = debug_dump = get_graph_data = raw_cuda_graph


def is_capturing(*_: Any, **__: Any) -> bool:
    """Whether this thread captures a graph."""
    return graph_capture.current() is not None


def _waits(func: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether the host waits for values of an operator's operands."""
    waits = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    if waits.isdisjoint(func.tags):
        return False
    if func._schema.name == "aten::index":  # of masks only
        masks = (torch.bool, torch.uint8)
        return any(index.dtype in masks for index in _tensors(args[1:]))
    return func._schema.name != "aten::repeat_interleave" or kwargs.get("output_size") is None


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def _is_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor is memory of the emulated GPU: not one that only describes another. Raises
    CaptureError for a class of tensors made of others."""
    if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.device.type == "meta":
        return False
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
        raise CaptureError(
            f"graphs with tensors of {type(tensor).__name__} ({tensor.layout}) are not captured"
        )
    return True


def _data(value: Any) -> Any:
    """A tensor of the same memory that autograd does not follow; anything else as it is."""
    return value.data if isinstance(value, torch.Tensor) else value


def _written(func: Any, args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that a call writes."""
    hidden = _HIDDEN_WRITES.get(func._schema.name, ())
    written = []
    for index, argument in enumerate(func._schema.arguments):
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes or argument.name in hidden:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            written += _tensors(value)
    return written


@contextlib.contextmanager
def _same_numbers(func: Any, kwargs: dict[str, Any]) -> Iterator[None]:
    """Give the generator of an operator its state back: a capture draws no numbers."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        yield
        return
    generator = kwargs.get("generator") or torch.default_generator
    state = generator.get_state()
    try:
        yield
    finally:
        generator.set_state(state)


@contextlib.contextmanager
def _put_back(tensors: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Give the memory of tensors the content back that it had before the block."""
    ranges = [_bytes(tensor) for tensor in tensors if tensor.numel()]
    before = [memory.clone() for memory in ranges]
    try:
        yield tensors
    finally:
        for memory, content in zip(ranges, before, strict=True):
            memory.copy_(content)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """uint8 of the memory between the first and the last element."""
    size = tensor.element_size()
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    memory: Any = torch.empty(0, dtype=torch.uint8)
    return memory.set_(tensor.untyped_storage(), tensor.storage_offset() * size, (reach * size,))


__all__ = ["EmulatedGraph", "GraphCapture", "is_capturing"]
