"""A module with the kernel library in it: the calls that `wavecast.ops` answers, priced by the
machine code of its kernels, compiled for the GPU and not run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from wavecast.arch.systems import System
from wavecast.dtypes import lookup
from wavecast.errors import UsageError
from wavecast.pipeline.library.library import Surveyed, survey
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
    device = system.device
    replacements: dict[int, Chosen] = {}
    for number, call in enumerate(graph.calls):
        replacement = library_call(call)
        if replacement is not None:
            replacements[number] = replacement
    keys = {_key(candidate): candidate for candidate in replacements.values()}
    requests = [(name, sizes, device.id) for name, sizes in keys.values()]
    surveyed = {
        _key((survey_result.operator, survey_result.sizes)): survey_result
        for survey_result in survey(requests, jobs=jobs)
    }
    reason_by_call: dict[int, str] = {}
    times: list[CallTime] = []
    call_numbers: set[int] = set()
    for call_time in before.times:
        number = call_time.kernel.call
        survey_entry = surveyed[_key(replacements[number])] if number in replacements else None
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
    notes = [note for note in before.notes if not note.startswith("assumed")]
    for why in dict.fromkeys(reason_by_call.values()):
        names = sorted(
            {graph.calls[number].name for number, reason in reason_by_call.items() if reason == why}
        )
        notes.append(f"left as PyTorch runs it: {', '.join(names)}, because {why}")
    after = added_up(graph, device, framework(ENGINE), times, tuple(notes))
    return ReplacedModule(before, after, _changes(before, after, replacements, reason_by_call))


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
    return (name, *sorted(sizes.items()))


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
    replacements: Mapping[int, Chosen],
    reason_by_call: Mapping[int, str],
) -> tuple[ModuleChange, ...]:
    calls = before.graph.calls
    modules = {calls[number].module for number in replacements}
    seconds: list[dict[str, float]] = []
    for module_answer in (before, after):
        by_module: dict[str, float] = defaultdict(float)
        for time in module_answer.times:
            if time.kernel.phase == "forward":
                by_module[time.kernel.module] += time.seconds
        seconds.append(by_module)
    changes = []
    for module in modules:
        numbers = [number for number in replacements if calls[number].module == module]
        operators = dict.fromkeys(
            replacements[number][0] for number in numbers if number not in reason_by_call
        )
        reasons = dict.fromkeys(
            reason_by_call[number] for number in numbers if number in reason_by_call
        )
        kind = before.graph.classes.get(module, "")
        here, there = (module_seconds[module] for module_seconds in seconds)
        changes.append(ModuleChange(module, kind, tuple(operators), here, there, tuple(reasons)))
    return tuple(sorted(changes, key=lambda change: change.after - change.before))


__all__ = ["ENGINE", "ModuleChange", "ReplacedModule", "library_call", "replace_calls"]
