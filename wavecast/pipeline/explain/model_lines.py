"""Time by line of a model that `torch.compile` compiled: kernels that Inductor generated, operators
of the library, and calls of other libraries; and what operators of the library would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavecast.arch import Device
from wavecast.errors import WavecastError
from wavecast.pipeline.explain.result import Explanation, ModelLineChange, ModelLineTime

if TYPE_CHECKING:
    from wavecast.systems.sources.calls import GraphLibraryCall


@dataclass(frozen=True, slots=True)
class ModelLines:
    """Times by line on all devices, and what the reader must know about them."""

    times: tuple[ModelLineTime, ...]
    notes: tuple[str, ...] = ()


def model_lines(
    explanations: Sequence[Explanation],
    calls: Mapping[str, Sequence[GraphLibraryCall]],
    devices: Iterable[Device],
) -> ModelLines:
    """The launches, and the `calls` of libraries by target, by their lines in the model. A kernel
    that Inductor fused is of all its lines together. Nothing where no launch has lines."""
    if not any(
        explanation.launch is not None and explanation.launch.model_lines
        for explanation in explanations
    ):
        return ModelLines(())
    from wavecast.systems.sources.answer import price_notes
    from wavecast.systems.sources.kernels import CallKernel, parts_of
    from wavecast.systems.sources.price import GraphPrices

    times: list[ModelLineTime] = []
    notes: dict[str, None] = {}
    for device in devices:
        rows: dict[tuple[str, ...], ModelLineTime] = {}
        for explanation in explanations:
            if explanation.device.id == device.id and explanation.launch is not None:
                prediction = explanation.predicted.prediction
                seconds = (
                    None if prediction is None else prediction.seconds * explanation.launch.count
                )
                _add(rows, device, explanation.launch.model_lines, explanation.code.kernel, seconds)
        prices = GraphPrices(device)
        for call in calls.get(device.target, ()):
            try:
                priced = prices.of(
                    CallKernel(part, 0, call.call.name, "", call.call.phase)
                    for part in parts_of(call.call)
                )
                seconds = call.count * sum(call_time.seconds for call_time in priced)
            except WavecastError as error:
                notes[f"{call.call.name} on {device.id}: not predicted, {error.message}"] = None
                seconds = None
            _add(rows, device, call.lines, _call_text(call), seconds)
        notes |= dict.fromkeys(price_notes(prices))
        rest = rows.pop((), None)
        times += [*rows.values(), *([rest] if rest else [])]
    return ModelLines(tuple(times), tuple(notes))


def line_changes(
    before: Sequence[ModelLineTime], after: Sequence[ModelLineTime]
) -> tuple[ModelLineChange, ...]:
    """What changes where two versions of a model share lines, the most seconds saved first. Rows
    that share a line, in one version or across both, are one change; equal rows are none."""
    changes: list[ModelLineChange] = []
    for device in dict.fromkeys(line_time.device.id for line_time in (*before, *after)):
        groups: list[tuple[set[str], list[ModelLineTime], list[ModelLineTime]]] = []
        for version, rows in enumerate((before, after)):
            for row in rows:
                if row.device.id == device and row.lines:
                    overlapping_groups = [
                        candidate for candidate in groups if not candidate[0].isdisjoint(row.lines)
                    ]
                    lines, rows_of = set(row.lines), ([], [])
                    for group in overlapping_groups:
                        groups.remove(group)
                        lines |= group[0]
                        rows_of[0].extend(group[1])
                        rows_of[1].extend(group[2])
                    rows_of[version].append(row)
                    groups.append((lines, *rows_of))
        for lines, olds, news in groups:
            old, new = _total(olds), _total(news)
            if old is not None and new is not None and old.kernels != new.kernels:
                changes.append(ModelLineChange(tuple(sorted(lines, key=_location)), old, new))
    return tuple(sorted(changes, key=lambda change: -(change.saved or 0.0)))


def _add(
    rows: dict[tuple[str, ...], ModelLineTime],
    device: Device,
    lines: tuple[str, ...],
    kernel: str,
    seconds: float | None,
) -> None:
    new = ModelLineTime(device, lines, (kernel,), seconds)
    row = rows.get(lines)
    rows[lines] = new if row is None else _both(row, new)


def _both(first: ModelLineTime, other: ModelLineTime) -> ModelLineTime:
    kernels = tuple(dict.fromkeys((*first.kernels, *other.kernels)))
    unknown = first.seconds is None or other.seconds is None
    seconds = None if unknown else (first.seconds or 0.0) + (other.seconds or 0.0)
    return replace(first, kernels=kernels, seconds=seconds)


def _total(rows: Sequence[ModelLineTime]) -> ModelLineTime | None:
    total: ModelLineTime | None = None
    for row in rows:
        total = row if total is None else _both(total, row)
    return total


def _location(line: str) -> tuple[str, int]:
    path, _, number = line.rpartition(":")
    return path, int(number)


def _call_text(call: GraphLibraryCall) -> str:
    """`aten.mm (64, 256) (256, 512)`."""
    return " ".join([call.call.name, *(str(tensor.shape) for tensor in call.call.inputs)])


__all__ = ["ModelLines", "line_changes", "model_lines"]
