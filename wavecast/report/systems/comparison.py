"""One model on several systems, and what its tokens cost, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast.documents.system_changes import (
    ComparedServingJson,
    ComparedSystemJson,
    EnergyPriceJson,
    TokenCostJson,
)
from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import columns
from wavecast.report.systems import serving_words

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer
    from wavecast.systems.comparison import ComparedSystem, SystemRatio
    from wavecast.systems.economy import TokenCost
    from wavecast.systems.intervals import Interval


def render(systems: Sequence[ComparedSystem], console: Console, *, detail: str = "normal") -> None:
    """Print the ratios of the last load, or with `full` of each."""
    loads = max(len(system.servings) for system in systems)
    for number in range(loads) if detail == "full" else range(max(0, loads - 1), loads):
        console.print(_table(systems, number))
    note = "  ratios to the first system that fits; errors that both share cancel in part"
    console.print(Text(note, style="dim"))
    console.print()


def _table(systems: Sequence[ComparedSystem], number: int) -> Table:
    first = next(system.servings[number] for system in systems if system.servings)
    figures = ("TTFT", "TPOT", "tok/s/GPU", "ratio", "80%")
    table = columns(
        (f"  {serving_words.load(first.serving.load)}", "left"),
        *((title, "right") for title in figures),
        ("bound by", "wrap"),
    )
    for system in systems:
        if not system.servings:
            table.add_row(f"  {serving_words.short(system.answer)}", Text("does not fit", "red"))
            continue
        compared = system.servings[number]
        serving, bound = compared.serving, compared.bound
        per_gpu = serving.output_rate.value / system.answer.parallel.gpus
        table.add_row(
            f"  {serving_words.short(system.answer)}",
            units.seconds(serving.ttft.value),
            units.seconds(serving.tpot.value),
            serving_words.rate(per_gpu),
            Text(f"{compared.rate_per_gpu.value:.2f}x", style="bold"),
            _ends(compared.rate_per_gpu),
            f"{bound.cause} {units.percent(bound.share, 1.0)}",
        )
    return table


def _ends(ratio: SystemRatio) -> str:
    return f"{ratio.low:.2f}–{ratio.high:.2f}"


def render_costs(answer: ModelAnswer, costs: Sequence[TokenCost], console: Console) -> None:
    """Print energy and price of a million output tokens under each load."""
    if not costs:
        return
    names = [name for name in ("energy", "price") if getattr(costs[0], name) is not None]
    titles = [("  a million output tokens", "left")]
    for name in names:
        titles += [(f"{name}{' (kWh)' if name == 'energy' else ''}", "right"), ("80%", "right")]
    table = columns(*titles)
    for serving, cost_ in zip(answer.servings, costs, strict=True):
        cells = []
        for name in names:
            interval = getattr(cost_, name)
            ends = (units.significant(interval.low), units.significant(interval.high))
            cells += [units.significant(interval.value), "–".join(ends)]
        table.add_row(f"  {serving_words.load(serving.load)}", *cells)
    console.print()
    console.print(table)


def entry(system: ComparedSystem) -> ComparedSystemJson:
    """The part of the document."""
    return ComparedSystemJson(
        system=system.answer.system.name,
        servings=[
            ComparedServingJson(
                concurrency=serving.serving.load.concurrency,
                rate=serving.serving.load.rate,
                ttft=serving.ttft,
                tpot=serving.tpot,
                rate_per_gpu=serving.rate_per_gpu,
                bound=serving.bound,
            )
            for serving in system.servings
        ],
    )


def cost(token_cost: TokenCost) -> TokenCostJson:
    """The part of the document."""

    def interval(value: Interval | None) -> EnergyPriceJson | None:
        return None if value is None else EnergyPriceJson.of(value)

    return TokenCostJson(energy=interval(token_cost.energy), price=interval(token_cost.price))


__all__ = ["cost", "entry", "render", "render_costs"]
