"""A module as `torch.compile` runs it: the kernels that Inductor generates for a GPU and the calls
of libraries between them, in the order they are launched.

The compiled module runs on tensors of the CPU without values, under the name of the GPU. Launches
of Triton kernels are captured, and operators are recorded instead of computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map_only

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.dtypes import lookup
from wavecast.errors import CaptureError, UsageError, WavecastError
from wavecast.runtimes.operator_recorder import OperatorRecorder, mutated_arguments
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_graph.module import attributes, called_with, in_one_line
from wavecast.runtimes.triton import capture
from wavecast.systems.sources.calls import ModuleGraph, OperatorCall, TensorSizes

_SETTINGS: Final = {"triton.autotune_pointwise": False}
"""Settings of Inductor. To time configurations of every element-wise kernel takes longer than the
rest."""
_READS_VALUES: Final = frozenset({"_local_scalar_dense", "nonzero", "equal", "is_nonzero"})
"""Operators whose result depends on values."""
_EXECUTED: Final = frozenset({"inductor", "prim", "prims", "profiler", "prims_only"})
"""Namespaces of what Inductor's own code calls: views of buffers, seeds."""
_ALLOCATORS: Final = ("_empty_strided_cpu", "_empty_strided_cuda", "_empty_strided_cpu_pinned")
"""Functions of `torch._C._dynamo.guards` by which Inductor's code makes buffers: no dispatch mode
sees them."""
_active: list[LaunchRecorder] = []
"""The recorder of the compilation that runs. Code that Inductor keeps refers to the allocators of
the compilation that loaded it, which ask this list."""


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """The calls of libraries and of generated kernels in order; `launches` has the launch of those
    calls that are generated kernels, by their number. `buffers` is the graph without the optimizer,
    with the storages of compiled code."""

    graph: ModuleGraph
    launches: Mapping[int, Launch]
    buffers: ModuleGraph


def compiled_graph(
    module: nn.Module,
    inputs: Any,
    plain: ModuleGraph,
    device: Device,
    *,
    train: bool = False,
) -> CompiledGraph:
    """What `torch.compile(module)(*inputs)` launches on a device (a mapping of inputs: by name).

    `plain` is the graph of the module without compilation: it has the sizes of the weights and the
    calls of the optimizer, which is not compiled. With `train` the backward pass follows. Modules
    and inputs may be of any device, fake or meta.

    Raises UsageError for an output without gradients, CompileError for a kernel that does not
    compile, CaptureError where the module does not compile or looks at values.
    """
    args, kwargs = called_with(inputs)
    recorder = LaunchRecorder()
    weights = {
        name: _empty(tensor)
        for tensors in (module.named_parameters(), module.named_buffers())
        for name, tensor in tensors
    }
    args, kwargs = tree_map_only(torch.Tensor, _empty, (args, kwargs))

    def run(state: Mapping[str, torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(module, dict(state), args, kwargs)

    try:
        with (
            capture(device, on_launch=recorder.on_launch),
            _without_trials(recorder),
            attributes(module, _empty),
            torch.set_grad_enabled(train),
        ):
            compiled = torch.compile(run)
            leaves = (*weights.values(), *tree_leaves((args, kwargs)))
            recorder.keep(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
            with recorder:
                output = compiled(weights, *args, **kwargs)
                if train:
                    results, gradients = _gradients(output)
                    recorder.phase = "backward"
                    torch.autograd.backward(results, gradients)
    except WavecastError:
        raise
    except Exception as error:  # of any kind: the module is somebody else's
        raise CaptureError(
            f"{plain.name} does not compile for {device.id}: {in_one_line(error)}"
        ) from error
    step = tuple(call for call in plain.calls if call.phase == "optimizer")
    calls = tuple(recorder.calls)
    return CompiledGraph(
        graph=replace(plain, calls=(*calls, *step)),
        launches=recorder.launches,
        buffers=replace(plain, calls=calls, stored=frozenset(recorder.stored)),
    )


class LaunchRecorder(OperatorRecorder):
    """Records operators without computing them, and launches between them. While `trial` is true
    both are an autotuner's and are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: dict[int, Launch] = {}
        self.trial = False
        self._addresses: dict[int, int] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compilation does not see the mode; what is compiled runs under it."""
        return True

    def spec(self, tensor: torch.Tensor) -> TensorSizes:
        """As of any recorder. Launches name storages by their address."""
        sizes = super().spec(tensor)
        self._addresses[tensor.untyped_storage().data_ptr()] = sizes.storage
        return sizes

    def on_launch(self, launch: Launch) -> None:
        """Record a launch, after the calls so far."""
        if self.trial:
            return
        tensors = tuple(
            TensorSizes(
                argument.shape,
                lookup(argument.dtype).short,
                argument.strides,
                self._addresses.setdefault(argument.storage, -1 - len(self._addresses)),
            )
            for argument in launch.arguments
            if argument.kind == "tensor"
        )
        self.launches[len(self.calls)] = launch
        self.calls.append(OperatorCall(launch.code.kernel, tensors, tensors, phase=self.phase))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        keywords = dict(kwargs or {})
        if func.namespace in _EXECUTED:
            return func(*args, **keywords)
        if func.is_view:
            return super().__torch_dispatch__(func, types, args, keywords)
        if func.overloadpacket.__name__ in _READS_VALUES:
            raise CaptureError(f"{func} looks at values, which the tensors do not have")
        result = _empty_results(func, args, keywords)
        if self.trial:
            return result
        read = {key: value for key, value in keywords.items() if key != "out"}
        self.record(func, args, read, result)
        return result


def _empty_results(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The result of an operator, with the sizes it has and without values."""
    written = mutated_arguments(func, args, kwargs)
    if written:
        return written[0] if len(func._schema.returns) == 1 else tuple(written)
    # Compilation asks the same mode for layouts.
    with FakeTensorMode():
        fakes, by_name = tree_map_only(torch.Tensor, _empty, (args, dict(kwargs)))
        result = func(*fakes, **by_name)
    return tree_map_only(torch.Tensor, _empty, result)


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of these sizes on the CPU. Nobody touches its memory."""
    empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    return empty.requires_grad_(tensor.requires_grad)


def _gradients(output: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What has a gradient: the loss of the output, else every result; and gradients of them."""
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    leaves = [loss] if isinstance(loss, torch.Tensor) else tree_leaves(output)
    roots = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not roots:
        raise UsageError("the output has no tensor with a gradient")
    return roots, [torch.empty_like(root) for root in roots]


@contextlib.contextmanager
def _without_trials(recorder: LaunchRecorder) -> Iterator[None]:
    """Have Inductor choose configurations without their launches being recorded, and match patterns
    on the CPU where a graph has no tensors (else it asks a GPU)."""
    from torch._inductor import compile_fx, config
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    autotune = CachingAutotuner.autotune_to_one_config
    devices: Any = vars(compile_fx)["get_inputs_devices"]

    def autotune_without_recording(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.trial = True
        try:
            return autotune(self, *args, **kwargs)
        finally:
            recorder.trial = False

    def or_cpu(inputs: Any, graph: Any) -> list[torch.device]:
        return [device for device in devices(inputs, graph) if device] or [torch.device("cpu")]

    patches = Patches()
    guards: Any = vars(torch._C)["_dynamo"].guards
    for name in _ALLOCATORS:
        if hasattr(guards, name):
            patches.attribute(guards, name, _keep_buffers(getattr(guards, name)))
    patches.attribute(CachingAutotuner, "autotune_to_one_config", autotune_without_recording)
    patches.attribute(compile_fx, "get_inputs_devices", or_cpu)
    _active.append(recorder)
    try:
        with config.patch(_SETTINGS):
            yield
    finally:
        _active.pop()
        patches.restore()


def _keep_buffers(allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The allocator, whose buffers the active recorder keeps, so that no two have one address."""

    def allocate_and_keep(*args: Any, **kwargs: Any) -> torch.Tensor:
        tensor = allocate(*args, **kwargs)
        if _active and not _active[-1].trial:
            _active[-1].spec(tensor)
        return tensor

    return allocate_and_keep


__all__ = ["CompiledGraph", "LaunchRecorder", "compiled_graph"]
