"""A module with example inputs as a graph: it runs on fake tensors, which have sizes only."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map_only

from wavecast.errors import CaptureError, UnknownName, UsageError, WavecastError
from wavecast.runtimes.operator_recorder import GpuChoices, OperatorRecorder
from wavecast.runtimes.torch_cpu.mode import CudaOnCpu
from wavecast.systems.sources.calls import ModuleGraph

_LONGEST = 200
"""Characters of another library's message."""
_LOSS = "loss of training: {}"

OPTIMIZERS: Final = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, foreach=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, foreach=True),
    "adam": lambda parameters: torch.optim.Adam(parameters, foreach=True),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, foreach=True),
    "fused_adamw": lambda parameters: torch.optim.AdamW(parameters, fused=True),
}
"""What `optimizer=` names: PyTorch's own, as they run on a GPU by default (lists of tensors)."""


def module_graph(
    module: nn.Module,
    inputs: Sequence[Any] | Mapping[str, Any] | torch.Tensor,
    *,
    train: bool = False,
    optimizer: str = "",
    name: str = "",
) -> ModuleGraph:
    """The calls of `module(*inputs)` (a mapping: by name).

    With `train` those of the backward pass follow, and of a step of `optimizer`, a key of
    `OPTIMIZERS` ("": none).

    Modules and inputs may be of any device, fake or meta; nothing is computed, and neither is
    changed. Without `train` the module runs in its own mode without gradients. The loss is the
    `loss` of the output, or the sum of its floating-point tensors.

    Raises UsageError for arguments that are not a module and its inputs, UnknownName for an
    optimizer, CaptureError where the module cannot run without values, with its own error in one
    line.
    """
    if not isinstance(module, nn.Module):
        raise UsageError(f"a {type(module).__name__} is not a torch.nn.Module")
    if optimizer and optimizer not in OPTIMIZERS:
        raise UnknownName("optimizer", optimizer, OPTIMIZERS)
    if optimizer and not train:
        raise UsageError("an optimizer needs training", hint="train=True, or --train")
    args, kwargs = called_with(inputs)
    name = name or type(module).__name__
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    recorder = OperatorRecorder()
    choices = GpuChoices(recorder)
    with fake:
        weights = _fakes(dict(module.named_parameters()))
        buffers = _fakes(dict(module.named_buffers()))
        args, kwargs = tree_map_only(torch.Tensor, _fake, (args, kwargs))
    parameter_bytes = recorder.keep((*weights.values(), *buffers.values()))
    input_bytes = recorder.keep(
        leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
    )
    notes: list[str] = []
    state_bytes = 0.0
    try:
        with unlogged_failures(), _following(module, recorder), _fake_tensors(module, fake):
            with fake, CudaOnCpu(torch), choices, recorder, torch.set_grad_enabled(train):
                output = functional_call(module, {**weights, **buffers}, args, kwargs)
            if train:
                loss, words = _loss(output, fake)
                notes.append(_LOSS.format(words))
                recorder.phase = "backward"
                with fake, recorder:
                    loss.backward()
        if optimizer:
            state_bytes = _step(optimizer, weights, recorder)
    except WavecastError:
        raise
    except Exception as error:  # of any kind: the module is somebody else's
        raise CaptureError(
            f"{name} does not run on tensors without values: {in_one_line(error)}"
        ) from error
    return ModuleGraph(
        name=name,
        calls=tuple(recorder.calls),
        parameters=sum(weight.numel() for weight in weights.values()),
        parameter_bytes=parameter_bytes,
        input_bytes=input_bytes,
        state_bytes=state_bytes,
        stored=frozenset(recorder.stored),
        classes={path: type(submodule).__name__ for path, submodule in module.named_modules()},
        notes=(*notes, *sorted(choices.notes)),
    )


def called_with(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, by position and by name. Raises UsageError for other objects."""
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), {str(key): value for key, value in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(inputs), {}
    raise UsageError(
        f"inputs are a tensor, a tuple or a mapping by name, not a {type(inputs).__name__}"
    )


def _fakes(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: _fake(tensor) for name, tensor in tensors.items()}


def _fake(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of these sizes on the CPU of the fake mode that is active."""
    empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return empty.requires_grad_(tensor.requires_grad)


@contextlib.contextmanager
def unlogged_failures() -> Iterator[None]:
    """PyTorch logs the traceback of an operator that fails on fake tensors; it raises it, too."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextlib.contextmanager
def _following(module: nn.Module, recorder: OperatorRecorder) -> Iterator[None]:
    """Tell the recorder which module runs."""
    paths = {submodule: path for path, submodule in module.named_modules()}
    stack: list[str] = []

    def enter(submodule: nn.Module, _args: Any) -> None:
        stack.append(recorder.module)
        recorder.module = paths.get(submodule, recorder.module)

    def leave(_submodule: nn.Module, _args: Any, _output: Any) -> None:
        recorder.module = stack.pop()

    hooks = [
        hook
        for submodule in paths
        for hook in (
            submodule.register_forward_pre_hook(enter, prepend=True),
            submodule.register_forward_hook(leave),
        )
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def _fake_tensors(module: nn.Module, fake: FakeTensorMode) -> Iterator[None]:
    def to_fake(tensor: torch.Tensor) -> torch.Tensor:
        with fake:
            return _fake(tensor)

    with attributes(module, to_fake):
        yield


@contextlib.contextmanager
def attributes(
    module: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[None]:
    """Replace the tensors that modules keep as plain attributes by what is `convert` of them."""
    originals = [
        (vars(submodule), name, value)
        for submodule in module.modules()
        for name, value in vars(submodule).items()
        if isinstance(value, torch.Tensor)
    ]
    for values, name, value in originals:
        values[name] = convert(value)
    try:
        yield
    finally:
        for values, name, value in originals:
            values[name] = value


def _loss(output: Any, fake: FakeTensorMode) -> tuple[torch.Tensor, str]:
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        return loss, "the module's own"
    parts = [
        leaf
        for leaf in tree_leaves(output)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if not parts:
        raise UsageError("the output has no tensor with a gradient")
    if len(parts) == 1 and parts[0].numel() == 1:
        return parts[0], "the module's output"
    with fake:
        return torch.stack([part.float().sum() for part in parts]).sum(), "the sum of the output"


def _step(optimizer: str, weights: Mapping[str, torch.Tensor], recorder: OperatorRecorder) -> float:
    """Record the second step of an optimizer, when its states exist; their bytes.

    Outside of the fake mode, so that the number of the step has a value."""
    parameters = [weight for weight in weights.values() if weight.grad is not None]
    instance = OPTIMIZERS[optimizer](parameters)
    instance.step()
    states = [
        value
        for state in instance.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.numel() > 1
    ]
    state_bytes = recorder.keep(states)
    recorder.phase = "optimizer"
    with recorder:
        instance.step()
    return state_bytes


def in_one_line(error: BaseException) -> str:
    """Class and message of another library's error."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message[:_LONGEST]}{' …' if len(message) > _LONGEST else ''}"


__all__ = ["OPTIMIZERS", "attributes", "called_with", "in_one_line", "module_graph"]
