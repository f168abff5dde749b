"""A module with the kernel library in it: the calls that `wavecast.ops` answers, priced by the
machine code of its kernels, compiled for the GPU and not run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from wavecast.arch.systems import System
from wavecast.dtypes import lookup
from wavecast.errors import UsageError
from wavecast.pipeline.library.library import (
    Call,
    Surveyed,
    survey,
    survey_arguments,
    survey_call,
)
from wavecast.systems.graph import Node
from wavecast.systems.pricing import Priced
from wavecast.systems.sources.answer import ModuleAnswer, added_up, answer
from wavecast.systems.sources.calls import ModuleGraph, OperatorCall, TensorSizes
from wavecast.systems.sources.described import DescribedModel
from wavecast.systems.sources.framework import framework
from wavecast.systems.sources.kernels import CallKernel
from wavecast.systems.sources.price import CallTime
from wavecast.systems.sources.products import tensor

ENGINE: Final = "wavecast"
_OWN: Final = "wavecast."
"""What names of the library's operators begin with in a graph."""
_FLOATS: Final = ("fp32", "fp16", "bf16")
"""Dtypes that the library replaces calls in (`ops.replace`)."""

Chosen = tuple[str, Mapping[str, Any]]
"""An operator of the library and the sizes of a call."""


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """What the library changes in one module: seconds of its forward kernels `before` and `after`,
    and the operators of the library. `left` says why some calls stay as they are."""

    module: str
    kind: str
    operators: tuple[str, ...]
    before: float
    after: float
    left: tuple[str, ...] = ()

    @property
    def speedup(self) -> float:
        """Time before over time after."""
        return self.before / self.after if self.after else 1.0


@dataclass(frozen=True, slots=True)
class ReplacedModule:
    """A module as PyTorch runs it (`before`) and with the library (`after`), and what changes, by
    module, the most seconds saved first."""

    before: ModuleAnswer
    after: ModuleAnswer
    changes: tuple[ModuleChange, ...]

    def __str__(self) -> str:
        """One line per module, then the total."""
        lines = [
            f"{change.module or '(itself)'} ({change.kind}): {change.before * 1e6:,.1f} -> "
            f"{change.after * 1e6:,.1f} us, {change.speedup:.2f}x"
            + (f" by {', '.join(change.operators)}" if change.operators else "")
            + (f"; left: {'; '.join(change.left)}" if change.left else "")
            for change in self.changes
        ]
        before, after = self.before.total.value, self.after.total.value
        total = f"{before * 1e3:,.3f} -> {after * 1e3:,.3f} ms, {before / after:.2f}x"
        return "\n".join([*lines, f"{self.before.graph.name} on {self.before.device.id}: {total}"])


def replace_calls(
    graph: ModuleGraph | DescribedModel, system: System, *, jobs: int = 1
) -> ReplacedModule:
    """The forward calls of a graph that the library answers, by its own kernels. Every different
    call is compiled for the GPU (seconds each), with `jobs` in processes.

    A call whose kernel does not compile or has no prediction stays as it was, with the reason.
    Raises UsageError for a description, which has no calls, and as `answer`.
    """
    if isinstance(graph, DescribedModel):
        raise UsageError(
            f"{graph.graph.name}: a YAML file lists kernels; engine {ENGINE} replaces calls"
        )
    before = answer(graph, system)
    replacements = {
        number: chosen
        for number, call in enumerate(graph.calls)
        if (chosen := library_call(call)) is not None
    }
    return _changed(before, before, _surveyed(replacements, system, survey_call, jobs))


def compare_replaced(
    graph: ModuleGraph, replaced: ModuleGraph, system: System, *, jobs: int = 1
) -> ReplacedModule:
    """A module before (`graph`) and after `ops.replace` (`replaced`): the calls of the library in
    it, by its own kernels. The rest, and errors, are those of `replace_calls`."""
    calls: dict[int, Chosen] = {
        number: (call.name.removeprefix(_OWN), call.arguments)
        for number, call in enumerate(replaced.calls)
        if call.name.startswith(_OWN) and call.phase == "forward"
    }
    before, base = answer(graph, system), answer(replaced, system)
    return _changed(before, base, _surveyed(calls, system, survey_arguments, jobs))


def _surveyed(
    calls: Mapping[int, Chosen], system: System, look: Callable[[Call], Surveyed], jobs: int
) -> dict[int, Surveyed]:
    """What calls launch, by number; equal ones are compiled once."""
    distinct = {_key(call): call for call in calls.values()}
    requests = [(name, sizes, system.device.id) for name, sizes in distinct.values()]
    results = {
        _key((result.operator, result.sizes)): result
        for result in survey(requests, jobs=jobs, look=look)
    }
    return {number: results[_key(call)] for number, call in calls.items()}


def _changed(
    before: ModuleAnswer, base: ModuleAnswer, surveyed: Mapping[int, Surveyed]
) -> ReplacedModule:
    """`before` against `base` with the kernels of the library for the calls that are `surveyed`."""
    graph = base.graph
    reason_by_call: dict[int, str] = {}
    times: list[CallTime] = []
    call_numbers: set[int] = set()
    for call_time in base.times:
        number = call_time.kernel.call
        survey_entry = surveyed.get(number)
        if survey_entry is None or survey_entry.seconds is None:
            times.append(call_time)
            if survey_entry is not None:
                reason_by_call[number] = survey_entry.failure or next(
                    (kernel.why_not for kernel in survey_entry.kernels if kernel.why_not),
                    "no prediction",
                )
        elif number not in call_numbers:
            call_numbers.add(number)
            times += _of_library(call_time, survey_entry)
    notes = [note for note in base.notes if not note.startswith(("assumed", _OWN))]
    for why in dict.fromkeys(reason_by_call.values()):
        names = sorted(
            {graph.calls[number].name for number, reason in reason_by_call.items() if reason == why}
        )
        bound = names[0].startswith(_OWN)
        what = "only a bound of the time of" if bound else "left as PyTorch runs it:"
        notes.append(f"{what} {', '.join(names)}, because {why}")
    after = added_up(graph, base.device, framework(ENGINE), times, tuple(notes))
    operators = {number: entry.operator for number, entry in surveyed.items()}
    return ReplacedModule(before, after, _changes(before, after, operators, reason_by_call))


def library_call(call: OperatorCall) -> Chosen | None:
    """The operator of the library for a forward call and its sizes; None for others."""
    table = {
        "aten.mm": _product,
        "aten.addmm": _product,
        "aten.native_layer_norm": _rows,
        "aten._fused_rms_norm": _rows,
        "aten._scaled_dot_product_flash_attention": _attention,
        "aten.convolution": _convolution,
    }
    converter = table.get(call.name)
    if converter is None or call.phase != "forward":
        return None
    if any(spec.dtype not in _FLOATS for spec in call.inputs):
        return None
    return converter(call)


def _dtype(spec: TensorSizes) -> str:
    return lookup(spec.dtype).name


def _product(call: OperatorCall) -> Chosen | None:
    bias = call.name == "aten.addmm"
    a, b = tensor(call, "mat1" if bias else "self"), tensor(call, "mat2")
    layout = "".join("T" if spec.strides[0] == 1 and spec.shape[0] > 1 else "N" for spec in (a, b))
    sizes = {"m": a.shape[0], "n": b.shape[1], "k": a.shape[1], "dtype": _dtype(a)}
    return "matmul", {**sizes, "layout": layout, **({"bias": True} if bias else {})}


def _rows(call: OperatorCall) -> Chosen | None:
    source = tensor(call, "input")
    shape = call.arguments["normalized_shape"]
    if len(shape) != 1:
        return None
    name = "layer_norm" if call.name == "aten.native_layer_norm" else "rms_norm"
    rows = source.elements // shape[0]
    return name, {"rows": rows, "columns": shape[0], "dtype": _dtype(source)}


def _attention(call: OperatorCall) -> Chosen | None:
    query, key, value = (tensor(call, name) for name in ("query", "key", "value"))
    if value.shape[-1] != query.shape[-1]:
        return None
    batch, heads, queries, head = query.shape
    sizes = {"b": batch, "s": queries, "t": key.shape[2], "hq": heads, "hkv": key.shape[1]}
    causal = bool(call.arguments.get("is_causal"))
    return "attention", {**sizes, "d": head, "dtype": _dtype(query), "causal": causal}


def _convolution(call: OperatorCall) -> Chosen | None:
    source, weight = tensor(call, "input"), tensor(call, "weight")
    arguments = call.arguments
    if arguments.get("transposed") or any(arguments.get("output_padding") or ()):
        return None
    rank = len(source.shape) - 2
    if rank != 2:
        return None

    def join_sizes(values: Any) -> str:
        extents = tuple(values) * rank if len(values) == 1 else values
        return "x".join(map(str, extents))

    return "convolution", {
        "batch": source.shape[0],
        "channels": source.shape[1],
        "filters": weight.shape[0],
        "size": join_sizes(source.shape[2:]),
        "kernel": join_sizes(weight.shape[2:]),
        "stride": join_sizes(arguments["stride"]),
        "padding": join_sizes(arguments["padding"]),
        "dilation": join_sizes(arguments["dilation"]),
        "groups": int(arguments["groups"]),
        "dtype": _dtype(source),
        **({"bias": True} if isinstance(arguments.get("bias"), TensorSizes) else {}),
    }


def _key(sized_call: Chosen) -> tuple[Any, ...]:
    name, sizes = sized_call
    return name, str(sorted((key, _unstored(value)) for key, value in sizes.items()))


def _unstored(value: Any) -> str:
    """An argument without the number of its memory."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_unstored, value))}]"
    return str(replace(value, storage=-1) if isinstance(value, TensorSizes) else value)


def _of_library(call_time: CallTime, survey_entry: Surveyed) -> list[CallTime]:
    """The kernels of the library for a call, instead of those PyTorch launches."""
    times = []
    for facts in survey_entry.kernels:
        assert facts.seconds is not None
        low, high = facts.low or facts.seconds, facts.high or facts.seconds
        node = Node(
            f"ops.{survey_entry.operator}", call_time.kernel.module, call_time.priced.node.op
        )
        priced = Priced(node, facts.seconds, low, high, facts.limiter, facts.kernel)
        kernel = CallKernel(
            call_time.kernel.part, call_time.kernel.call, f"wavecast.{survey_entry.operator}",
            call_time.kernel.module, call_time.kernel.phase,
        )  # fmt: skip
        times += [CallTime(kernel, priced)] * facts.count
    return times


def _changes(
    before: ModuleAnswer,
    after: ModuleAnswer,
    operators: Mapping[int, str],
    reason_by_call: Mapping[int, str],
) -> tuple[ModuleChange, ...]:
    calls = after.graph.calls
    modules = {calls[number].module for number in operators}
    kernels = {time.kernel.module for time in after.times}
    seconds: list[dict[str, float]] = []
    for module_answer in (before, after):
        by_module: dict[str, float] = defaultdict(float)
        for time in module_answer.times:
            if time.kernel.phase == "forward":
                by_module[_changed_module(time.kernel.module, modules, kernels)] += time.seconds
        seconds.append(by_module)
    changes = []
    for module in modules:
        numbers = [number for number in operators if calls[number].module == module]
        names = dict.fromkeys(
            operators[number] for number in numbers if number not in reason_by_call
        )
        reasons = dict.fromkeys(
            reason_by_call[number] for number in numbers if number in reason_by_call
        )
        kind = before.graph.classes.get(module, "")
        here, there = (module_seconds[module] for module_seconds in seconds)
        changes.append(ModuleChange(module, kind, tuple(names), here, there, tuple(reasons)))
    return tuple(sorted(changes, key=lambda change: change.after - change.before))


def _changed_module(module: str, changed: Collection[str], launching: Collection[str]) -> str:
    """The module that a kernel of the model counts for: one whose kernels are all gone counts for
    the nearest around it that the library has changed."""
    around = module
    while around and module not in launching:
        around = around.rpartition(".")[0]
        if around in changed:
            return around
    return module


__all__ = [
    "ENGINE",
    "ModuleChange",
    "ReplacedModule",
    "compare_replaced",
    "library_call",
    "replace_calls",
]
