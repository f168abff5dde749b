"""A `.pt2` file of `torch.export.save` as a graph. Only its JSON is read.

The file also has weights, constants and example inputs, some of them pickled; unpickling can run
any code, so they are not read. The graph's JSON has the sizes of all tensors and is enough: its
operators run on fake tensors. A graph that needs more is refused: objects of classes, graphs inside
of graphs, operators of other libraries.
"""

from __future__ import annotations

import operator
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensorMode

from wavecast import files
from wavecast.errors import CaptureError, InputError, WavecastError
from wavecast.runtimes.operator_recorder import GpuChoices, OperatorRecorder
from wavecast.runtimes.torch_graph.module import in_one_line, unlogged_failures
from wavecast.systems.sources.calls import ModuleGraph

_GRAPH: Final = "models/model.json"
_LARGEST: Final = 1 << 28
"""Bytes of the JSON of a graph."""
_MAJOR: Final = 8
"""Major version of PyTorch's schema (torch/_export/serde/schema.py) that is understood."""

_LARGEST_SIZE: Final = 1 << 63
_MOST_BITS: Final = 63
_DAMAGED: Final = (LookupError, TypeError, ValueError, AttributeError, StopIteration)
"""What a document raises that lacks a part, or has one of another form."""
_DTYPES: Final = {
    1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64,
    6: torch.float16, 7: torch.float32, 8: torch.float64, 10: torch.complex64,
    11: torch.complex128, 12: torch.bool, 13: torch.bfloat16, 28: torch.uint16,
    29: torch.float8_e4m3fn, 30: torch.float8_e5m2, 31: torch.float8_e4m3fnuz,
    32: torch.float8_e5m2fnuz,
}  # fmt: skip
_FORMATS: Final = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
_PLAIN: Final = frozenset(
    f"as_{name}"
    for name in ("int", "ints", "float", "floats", "string", "strings", "bool", "bools")
)
_ARITHMETIC: Final = {
    f"_operator.{name}": getattr(operator, name)
    for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "getitem", "truediv", "pow")
} | {f"_operator.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def archive_graph(path: str | Path) -> ModuleGraph:
    """The calls of the program in a `.pt2` file. Dynamic sizes have the values of the example.

    Raises InputError for a file that is not such an archive or of another version, and for a graph
    that cannot be read without unpickling; CaptureError where an operator fails.
    """
    path = Path(path)
    document = _document(path)
    try:
        version = document["schema_version"]["major"]
        if version != _MAJOR:
            raise InputError(f"{path.name}: version {version} of exported graphs, not {_MAJOR}")
        graph = document["graph_module"]["graph"]
        specs = document["graph_module"]["signature"]["input_specs"]
        return _Program(path.name, graph, specs).run()
    except _DAMAGED as error:
        raise InputError(
            f"{path.name}: the graph is damaged or has a form that is not known: "
            f"{in_one_line(error)}"
        ) from error


def _document(path: Path) -> Mapping[str, Any]:
    files.check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(_GRAPH)]
            if len(names) != 1:
                raise InputError(
                    f"{path.name} has no {_GRAPH}",
                    hint="torch.export.save of PyTorch 2.8 or newer writes it",
                )
            if archive.getinfo(names[0]).file_size > _LARGEST:
                raise InputError(f"{path.name}: the graph has more than {_LARGEST:,} bytes")
            text = archive.read(names[0])
    # zipfile raises RuntimeError for an encrypted file, and what its decompressors raise.
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not an archive that can be read: {error}") from error
    try:
        document = files.parse_json(text)
    except ValueError as error:
        raise InputError(f"{path.name}: {_GRAPH} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path.name}: {_GRAPH} is not an object")
    return document


class _Program:
    """The nodes of one graph and the values that they have made so far, by name."""

    def __init__(self, name: str, graph: Mapping[str, Any], specs: list[Any]) -> None:
        self._name, self._graph, self._specs = name, graph, specs
        self._values: dict[str, Any] = {}
        self._recorder = OperatorRecorder()
        self._choices = GpuChoices(self._recorder)

    def run(self) -> ModuleGraph:
        parameters = 0
        stored: list[torch.Tensor] = []
        inputs: list[torch.Tensor] = []
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        with fake:
            for argument, spec in zip(self._graph["inputs"], self._specs, strict=True):
                try:
                    value = self._input(argument)
                except RuntimeError as error:  # PyTorch's own, of sizes that no tensor has
                    raise ValueError(in_one_line(error)) from error
                if isinstance(value, torch.Tensor):
                    (inputs if "user_input" in spec else stored).append(value)
                    parameters += value.numel() if "parameter" in spec else 0
        weight_bytes = self._recorder.keep(stored)
        input_bytes = self._recorder.keep(inputs)
        for node in self._graph["nodes"]:
            try:
                with unlogged_failures(), fake, self._recorder, torch.no_grad():
                    self._run(node)
            except (WavecastError, *_DAMAGED):
                raise
            except Exception as error:  # of any kind: PyTorch's own of the operator
                raise CaptureError(
                    f"{self._name}: {node['target']} fails: {in_one_line(error)}"
                ) from error
        return ModuleGraph(
            name=self._name,
            calls=tuple(self._recorder.calls),
            parameters=parameters,
            parameter_bytes=weight_bytes,
            input_bytes=input_bytes,
            stored=frozenset(self._recorder.stored),
        )

    def _input(self, argument: Mapping[str, Any]) -> Any:
        if "as_tensor" in argument:
            name = argument["as_tensor"]["name"]
            meta = self._graph["tensor_values"][name]
            shape, strides = ([_size(n) for n in meta[key]] for key in ("sizes", "strides"))
            self._values[name] = torch.empty_strided(shape, strides, dtype=_DTYPES[meta["dtype"]])
            return self._values[name]
        ((kind, value),) = argument.items()
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool") and "as_name" in value:
            symbol = self._graph[f"{kind.removeprefix('as_')}_values"][value["as_name"]]
            self._values[value["as_name"]] = _size(symbol)
            return None
        return self._argument(argument)

    def _run(self, node: Mapping[str, Any]) -> None:
        function = self._function(node["target"])
        stack = node.get("metadata", {}).get("nn_module_stack", "")
        if stack:
            self._recorder.module = stack.split(";")[-1].split(",")[1]
        args, kwargs = [], {}
        for argument in node["inputs"]:
            value = self._argument(argument["arg"])
            if argument.get("kind") == 2:
                kwargs[argument["name"]] = value
            else:
                args.append(value)
        result = function(*args, **kwargs)
        outputs = node["outputs"]
        results = result if len(outputs) > 1 and isinstance(result, tuple | list) else (result,)
        for output, value in zip(outputs, results, strict=False):
            self._store(output, value)

    def _function(self, target: str) -> Callable[..., Any]:
        if target in _ARITHMETIC:
            return partial(_calculate, _ARITHMETIC[target])
        parts = target.split(".")
        if parts[:3] != ["torch", "ops", "aten"] or len(parts) != 5:
            raise InputError(
                f"{self._name}: operator {target} is not one of PyTorch's own (torch.ops.aten)",
                hint="give the module itself: script.py:factory",
            )
        packet = getattr(torch.ops.aten, parts[3], None)
        overload = getattr(packet, parts[4], None) if isinstance(packet, OpOverloadPacket) else None
        if not isinstance(overload, OpOverload):
            raise InputError(f"{self._name}: PyTorch {torch.__version__} has no {target}")
        return self._choices.of(overload)

    def _argument(self, argument: Mapping[str, Any]) -> Any:
        ((kind, value),) = argument.items()
        match kind:
            case "as_none":
                return None
            case "as_tensor":
                return self._values[value["name"]]
            case "as_tensors":
                return [self._values[tensor["name"]] for tensor in value]
            case "as_optional_tensors":
                return [self._argument(element) for element in value]
            case "as_optional_tensor":
                return self._argument(value)
            case "as_sym_int" | "as_sym_float" | "as_sym_bool":
                return self._symbol(value)
            case "as_sym_ints" | "as_sym_floats" | "as_sym_bools":
                return [self._symbol(symbol) for symbol in value]
            case "as_scalar_type":
                return _DTYPES[value]
            case "as_memory_format":
                return _FORMATS[value]
            case "as_layout":
                return torch.strided
            case "as_device":
                return torch.device("cpu")
            case _ if kind in _PLAIN:
                return value
        raise InputError(
            f"{self._name}: an argument of the form {kind.removeprefix('as_')} is not read from "
            "a file",
            hint="give the module itself: script.py:factory",
        )

    def _symbol(self, value: Mapping[str, Any]) -> Any:
        if "as_name" in value:
            return self._values[value["as_name"]]
        return next(iter(value.values()))

    def _store(self, output: Mapping[str, Any], value: Any) -> None:
        ((kind, name),) = output.items()
        if kind == "as_tensor":
            self._values[name["name"]] = value
        elif kind == "as_tensors":
            for spec, part in zip(name, value, strict=True):
                self._values[spec["name"]] = part
        elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool") and "as_name" in name:
            self._values[name["as_name"]] = value


def _calculate(function: Callable[..., Any], *values: Any) -> Any:
    """Arithmetic of sizes. Raises ValueError for integers that are larger than any size, whose
    powers would take the memory."""
    for value in values:
        if isinstance(value, int) and abs(value) > _LARGEST_SIZE:
            raise ValueError(f"{value} is not a size")
    if function is operator.pow and isinstance(values[1], int) and values[1] > _MOST_BITS:
        raise ValueError(f"a size to the power of {values[1]}")
    return function(*values)


def _size(size: Mapping[str, Any]) -> Any:
    """A size, or that of the example for a dynamic one."""
    if "as_expr" in size:
        return next(iter((size["as_expr"].get("hint") or {"": 0}).values()))
    return next(iter(size.values()))


__all__ = ["archive_graph"]
