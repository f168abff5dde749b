"""A search of configurations of a served model as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.system_search import ModelSearchDocument, SearchedModelJson
from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import columns
from wavecast.report.kit.terminal import safe
from wavecast.report.systems import serving_words
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.tuning.model_search import ModelSearch, SearchedModel

_REASONS = 6
"""The most reasons that the text has."""


def render(model_search: ModelSearch, console: Console, *, slo: str, top: int = 10) -> None:
    """Print the best configurations, the frontier, and what was skipped."""
    from_state = f", {model_search.known:,} of them from the state" if model_search.known else ""
    console.print(Text(f"{model_search.tried:,} configurations{from_state}", style="bold"))
    objective = f" under {safe(slo)}" if slo else ""
    if model_search.ranked:
        _table(f"the best{objective}, by throughput per GPU", model_search.ranked[:top], console)
    else:
        console.print(Text(f"  no configuration meets {safe(slo) or 'it'}", style="red"))
    if model_search.frontier:
        _table(
            "the frontier of throughput per GPU and speed per user", model_search.frontier, console
        )
    if model_search.missed:
        console.print(Text(f"  {model_search.missed:,} run but miss an objective", style="dim"))
    reasons = list(model_search.skipped.items())
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
    for candidate in rows:
        # Parallelism says what tp, dp, ep and dp-attention are.
        others = [v for n, v in candidate.values.items() if n in ("dtype", "kv-dtype", "engine")]
        name = " ".join([candidate.parallelism, *others, f"batch {candidate.concurrency}"])
        if len(systems) > 1:
            name = f"{candidate.system} {name}"
        table.add_row(
            f"  {safe(name)}",
            Text(serving_words.rate(candidate.per_gpu), style="bold"),
            f"{serving_words.rate(candidate.per_gpu_low)}–{serving_words.rate(candidate.per_gpu_high)}",
            serving_words.rate(candidate.per_user),
            units.seconds(candidate.ttft),
            units.seconds(candidate.tpot),
        )
    console.print(table)


def document(model_search: ModelSearch, *, model: str, slo: str) -> dict[str, Any]:
    """The search as plain dicts, lists, strings and numbers."""
    search = ModelSearchDocument.of(
        model_search,
        wavecast=__version__,
        model=model,
        slo=slo,
        ranked=[SearchedModelJson.of(row) for row in model_search.ranked],
        frontier=[SearchedModelJson.of(row) for row in model_search.frontier],
    )
    return json_objects.values(search)


__all__ = ["document", "render"]
