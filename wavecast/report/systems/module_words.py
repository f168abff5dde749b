"""Modules on GPUs in words and rows, for text, JSON and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavecast.report.kit.kernel_tables import KernelRow
from wavecast.wording import count

if TYPE_CHECKING:
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.sources.price import CallTime


@dataclass(frozen=True, slots=True)
class EqualCalls:
    """Equal kernels of a phase: the first of them, their number, and the modules that launch
    them."""

    first: CallTime
    count: int
    modules: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """The time of all of them."""
        return self.first.seconds * self.count


def description(answer: ModuleAnswer) -> str:
    """Parameters, engine, kernels and calls in one line."""
    parameters = f"{answer.graph.parameters / 1e6:,.1f} M parameters · "
    return (
        f"{parameters if answer.graph.parameters else ''}{answer.framework.version}"
        f" · {count(len(answer.times), 'kernel')} of {count(len(answer.graph.calls), 'call')}"
    )


def equal(answer: ModuleAnswer) -> list[EqualCalls]:
    """Equal kernels of a phase as one, the longest together first."""
    counts: dict[tuple[str, str, object], tuple[CallTime, list[str]]] = {}
    for time in answer.times:
        key = (time.kernel.operator, time.kernel.phase, time.priced.node.op)
        counts.setdefault(key, (time, []))[1].append(time.kernel.module)
    groups = [
        EqualCalls(first, len(modules), tuple(dict.fromkeys(modules)))
        for first, modules in counts.values()
    ]
    return sorted(groups, key=lambda group: -group.seconds)


def in_order(answer: ModuleAnswer) -> list[KernelRow]:
    """Every kernel of a run, in the order of launches."""
    return [_row(EqualCalls(time, 1, (time.kernel.module,))) for time in answer.times]


def rows(answer: ModuleAnswer) -> list[KernelRow]:
    """The kernels of a run by phase, the longest together first."""
    return [_row(group) for group in equal(answer)]


def _row(group: EqualCalls) -> KernelRow:
    return KernelRow(
        group.first.kernel.operator.removeprefix("aten."),
        group.count,
        group.first.priced,
        group.seconds,
        group.first.kernel.phase,
    )


__all__ = ["EqualCalls", "description", "equal", "in_order", "rows"]
