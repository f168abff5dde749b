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
from wavecast.pipeline.library import Surveyed, survey
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
            f"{one.module or '(itself)'} ({one.kind}): {one.before * 1e6:,.1f} -> "
            f"{one.after * 1e6:,.1f} us, {one.speedup:.2f}x"
            + (f" by {', '.join(one.operators)}" if one.operators else "")
            + (f"; left: {'; '.join(one.left)}" if one.left else "")
            for one in self.changes
        ]
        before, after = self.before.total.value, self.after.total.value
        total = f"{before * 1e3:,.3f} -> {after * 1e3:,.3f} ms, {before / after:.2f}x"
        return "\n".join([*lines, f"{self.before.graph.name} on {self.before.device.id}: {total}"])


def replaced(
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
    chosen: dict[int, Chosen] = {}
    for number, call in enumerate(graph.calls):
        found = library_call(call)
        if found is not None:
            chosen[number] = found
    keys = {_key(one): one for one in chosen.values()}
    asked = [(name, sizes, device.id) for name, sizes in keys.values()]
    surveyed = {_key((one.operator, one.sizes)): one for one in survey(asked, jobs=jobs)}
    left: dict[int, str] = {}
    times: list[CallTime] = []
    done: set[int] = set()
    for one in before.times:
        number = one.kernel.call
        known = surveyed[_key(chosen[number])] if number in chosen else None
        if known is None or known.seconds is None:
            times.append(one)
            if known is not None:
                left[number] = known.failure or next(
                    (kernel.why_not for kernel in known.kernels if kernel.why_not), "no prediction"
                )
        elif number not in done:
            done.add(number)
            times += _of_library(one, known)
    notes = [note for note in before.notes if not note.startswith("assumed")]
    for why in dict.fromkeys(left.values()):
        names = sorted({graph.calls[number].name for number, one in left.items() if one == why})
        notes.append(f"left as PyTorch runs it: {', '.join(names)}, because {why}")
    after = added_up(graph, device, framework(ENGINE), times, tuple(notes))
    return ReplacedModule(before, after, _changes(before, after, chosen, left))


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
    found = table.get(call.name)
    if found is None or call.phase != "forward":
        return None
    if any(spec.dtype not in _FLOATS for spec in call.inputs):
        return None
    return found(call)


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
    given = call.arguments
    if given.get("transposed") or any(given.get("output_padding") or ()):
        return None
    rank = len(source.shape) - 2
    if rank != 2:
        return None

    def joined(values: Any) -> str:
        found = tuple(values) * rank if len(values) == 1 else values
        return "x".join(map(str, found))

    return "convolution", {
        "batch": source.shape[0],
        "channels": source.shape[1],
        "filters": weight.shape[0],
        "size": joined(source.shape[2:]),
        "kernel": joined(weight.shape[2:]),
        "stride": joined(given["stride"]),
        "padding": joined(given["padding"]),
        "dilation": joined(given["dilation"]),
        "groups": int(given["groups"]),
        "dtype": _dtype(source),
        **({"bias": True} if isinstance(given.get("bias"), TensorSizes) else {}),
    }


def _key(chosen: Chosen) -> tuple[Any, ...]:
    name, sizes = chosen
    return (name, *sorted(sizes.items()))


def _of_library(one: CallTime, known: Surveyed) -> list[CallTime]:
    """The kernels of the library for a call, instead of those PyTorch launches."""
    found = []
    for facts in known.kernels:
        assert facts.seconds is not None
        low, high = facts.low or facts.seconds, facts.high or facts.seconds
        node = Node(f"ops.{known.operator}", one.kernel.module, one.priced.node.op)
        priced = Priced(node, facts.seconds, low, high, facts.limiter, facts.kernel)
        kernel = CallKernel(
            one.kernel.part, one.kernel.call, f"wavecast.{known.operator}",
            one.kernel.module, one.kernel.phase,
        )  # fmt: skip
        found += [CallTime(kernel, priced)] * facts.count
    return found


def _changes(
    before: ModuleAnswer, after: ModuleAnswer, chosen: Mapping[int, Chosen], left: Mapping[int, str]
) -> tuple[ModuleChange, ...]:
    calls = before.graph.calls
    modules = {calls[number].module for number in chosen}
    seconds: list[dict[str, float]] = []
    for one in (before, after):
        by_module: dict[str, float] = defaultdict(float)
        for time in one.times:
            if time.kernel.phase == "forward":
                by_module[time.kernel.module] += time.seconds
        seconds.append(by_module)
    found = []
    for module in modules:
        own = [number for number in chosen if calls[number].module == module]
        operators = dict.fromkeys(chosen[number][0] for number in own if number not in left)
        reasons = dict.fromkeys(left[number] for number in own if number in left)
        kind = before.graph.classes.get(module, "")
        here, there = (one[module] for one in seconds)
        found.append(ModuleChange(module, kind, tuple(operators), here, there, tuple(reasons)))
    return tuple(sorted(found, key=lambda one: one.after - one.before))


__all__ = ["ENGINE", "ModuleChange", "ReplacedModule", "library_call", "replaced"]
