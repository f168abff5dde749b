"""A `torch.export.ExportedProgram` as a graph: its nodes run on fake tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Interpreter, Node

from wavecast.errors import CaptureError
from wavecast.runtimes.operator_recorder import GpuChoices, OperatorRecorder
from wavecast.runtimes.torch_graph.module import in_one_line, unlogged_failures
from wavecast.systems.sources.calls import ModuleGraph


def exported_graph(program: Any, name: str = "") -> ModuleGraph:
    """The calls of an exported program. Dynamic sizes have the values of the example inputs.

    Raises CaptureError for a program that does not run on tensors without values.
    """
    recorder = OperatorRecorder()
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    signature = program.graph_signature
    weights = {*signature.inputs_to_parameters, *signature.inputs_to_buffers}
    parameters = 0
    stored: list[torch.Tensor] = []
    values: list[Any] = []
    inputs: list[torch.Tensor] = []
    with fake:
        for node in program.graph.nodes:
            if node.op != "placeholder":
                continue
            value = _value(node.meta.get("val"))
            values.append(value)
            if isinstance(value, torch.Tensor):
                (stored if node.name in weights else inputs).append(value)
            if node.name in signature.inputs_to_parameters:
                parameters += value.numel()
    weight_bytes, input_bytes = recorder.keep(stored), recorder.keep(inputs)
    try:
        with unlogged_failures(), fake, recorder, torch.no_grad():
            _Recorded(program.graph_module, recorder).run(*values)
    except Exception as error:  # of any kind: operators may be somebody else's
        raise CaptureError(
            f"the exported program does not run on tensors without values: {in_one_line(error)}"
        ) from error
    return ModuleGraph(
        name=name or "exported program",
        calls=tuple(recorder.calls),
        parameters=parameters,
        parameter_bytes=weight_bytes,
        input_bytes=input_bytes,
        stored=frozenset(recorder.stored),
    )


class _Recorded(Interpreter):
    """Runs the nodes and tells the recorder their modules."""

    def __init__(self, module: torch.fx.GraphModule, recorder: OperatorRecorder) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._recorder, self._choices = recorder, GpuChoices(recorder)

    def run_node(self, n: Node) -> Any:
        modules = n.meta.get("nn_module_stack")
        if modules:
            self._recorder.module = list(modules.values())[-1][0]
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return super().call_function(self._choices.of(target), args, kwargs)


def _value(value: Any) -> Any:
    """A fake tensor of the sizes of an example, a number for a dynamic size."""
    if isinstance(value, torch.Tensor):
        shape, strides = ([_hint(n) for n in sizes] for sizes in (value.shape, value.stride()))
        return torch.empty_strided(shape, strides, dtype=value.dtype)
    return _hint(value) if isinstance(value, torch.SymInt) else value


def _hint(size: Any) -> int:
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


__all__ = ["exported_graph"]
