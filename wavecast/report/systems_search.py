"""A search of configurations of a served model as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from wavecast.documents import base
from wavecast.documents.system_search import ModelSearchDocument, SearchedModelJson
from wavecast.report import systems_words, units
from wavecast.report.kernel_tables import columns
from wavecast.report.terminal_text import safe
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.tune.model_search import ModelSearch, SearchedModel

_REASONS = 6
"""The most reasons that the text has."""


def render(found: ModelSearch, console: Console, *, slo: str, top: int = 10) -> None:
    """Print the best configurations, the frontier, and what was skipped."""
    known = f", {found.known:,} of them from the state" if found.known else ""
    console.print(Text(f"{found.tried:,} configurations{known}", style="bold"))
    asked = f" under {safe(slo)}" if slo else ""
    if found.ranked:
        _table(f"the best{asked}, by throughput per GPU", found.ranked[:top], console)
    else:
        console.print(Text(f"  no configuration meets {safe(slo) or 'it'}", style="red"))
    if found.frontier:
        _table("the frontier of throughput per GPU and speed per user", found.frontier, console)
    if found.missed:
        console.print(Text(f"  {found.missed:,} run but miss an objective", style="dim"))
    reasons = list(found.skipped.items())
    for reason, count in reasons[:_REASONS]:
        console.print(Text(f"  {count:,} skipped: {safe(reason)}", style="dim"))
    rest = reasons[_REASONS:]
    if rest:
        count = sum(number for _, number in rest)
        text = f"  {count:,} skipped for {len(rest)} other reasons, which the JSON has"
        console.print(Text(text, style="dim"))


def _table(title: str, rows: Sequence[SearchedModel], console: Console) -> None:
    systems = {row.system for row in rows}
    where = f", {safe(rows[0].system)}" if len(systems) == 1 else ""
    console.print(Text(f"  {title}{where}:"))
    figures = ("tok/s/GPU", "80%", "tok/s/user", "TTFT", "TPOT")
    table = columns(("  configuration", "wrap"), *((name, "right") for name in figures))
    for one in rows:
        # Parallelism says what tp, dp, ep and dp-attention are.
        others = [v for n, v in one.values.items() if n in ("dtype", "kv-dtype", "engine")]
        name = " ".join([one.parallelism, *others, f"batch {one.concurrency}"])
        if len(systems) > 1:
            name = f"{one.system} {name}"
        table.add_row(
            f"  {safe(name)}",
            Text(systems_words.rate(one.per_gpu), style="bold"),
            f"{systems_words.rate(one.per_gpu_low)}–{systems_words.rate(one.per_gpu_high)}",
            systems_words.rate(one.per_user),
            units.seconds(one.ttft),
            units.seconds(one.tpot),
        )
    console.print(table)


def document(found: ModelSearch, *, model: str, slo: str) -> dict[str, Any]:
    """The search as plain dicts, lists, strings and numbers."""
    search = ModelSearchDocument.of(
        found,
        wavecast=__version__,
        model=model,
        slo=slo,
        ranked=[SearchedModelJson.of(one) for one in found.ranked],
        frontier=[SearchedModelJson.of(one) for one in found.frontier],
    )
    return base.values(search)


__all__ = ["document", "render"]
