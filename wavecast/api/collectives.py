"""`wavecast model --collectives`: collectives on machines, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wavecast.api.machines import MachineOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import UsageError
from wavecast.options import Progress, option, silent
from wavecast.options.values import OUTPUT_FILE, Integers, Numbers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.systems.collectives.search import CollectiveAnswer

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_EXPERTS: Final = 256
"""Experts of a token: all routed experts of DeepSeek-V3, which no model sends a token to."""
_SIZE: Final = re.compile(r"(\d{1,15})\s*(?:([KMG])(?:iB)?)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class CollectivesOptions(MachineOptions):
    """Options of collectives that are simulated instead of a model."""

    collectives: str = option(
        "",
        "Simulate collectives instead of a model: all_reduce:64M,all_to_all:1G, or exchanges of "
        "tokens with their experts, by the bytes of a GPU's tokens: dispatch:14M:8.",
        metavar="NAME:SIZE[:EXPERTS][,…]",
    )
    oversubscription: float = option(
        1.0,
        "Collectives: bandwidth of NICs over that of the uplinks of leaf switches.",
        values=Numbers(1, 1e3),
    )
    leaf: int = option(32, "Collectives: nodes of a leaf switch.", values=Integers(1))
    msccl: Path | None = option(
        None, "Collectives: write the fastest all-reduce as XML for MSCCL.", values=OUTPUT_FILE
    )
    what_if: str = option(
        "", 'Predict changes: "hbm*1.5; attention free; tp 4; host 0".', metavar="CHANGE[;CHANGE]"
    )

    def sizes(self) -> list[tuple[str, int, int]]:
        """Function, bytes and experts of a token of each collective. Raises UsageError."""
        return [_parse_collective(text.strip()) for text in self.collectives.split(",")]


@dataclass(frozen=True, slots=True, repr=False)
class CollectivesReport(ShownResult):
    """Collectives on machines: `answers`. The document is `wavecast.collectives/1`."""

    answers: Sequence[CollectiveAnswer]

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import collectives

        collectives.render(self.answers, console, full=detail == "full")

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import collectives

        return collectives.document(self.answers)

    def subject(self) -> str:
        machines = few([str(answer.system) for answer in self.answers])
        return f"{few([answer.function for answer in self.answers])} on {machines}"


def collectives(
    options: CollectivesOptions,
    progress: Progress = silent,  # noqa: ARG001
) -> CollectivesReport:
    """Simulate collectives on machines. Raises UnknownName for a function or a machine, UsageError
    for sizes and changes that are none, InputError for a file that cannot be written."""
    from wavecast.files import write_text
    from wavecast.report.systems.msccl import msccl_xml
    from wavecast.systems.collectives.search import answer

    answers = [
        answer(
            *(function, size, machine),
            topk=topk,
            oversubscription=options.oversubscription,
            leaf=options.leaf,
            changes=options.what_if,
        )
        for machine in options.machines()
        for function, size, topk in options.sizes()
    ]
    if options.msccl is not None:
        if len(answers) > 1:
            raise UsageError("--msccl writes one collective on one system")
        best = answers[0].best
        write_text(options.msccl, msccl_xml(best.schedule, best.protocol))
    return CollectivesReport(answers)


def _parse_collective(text: str) -> tuple[str, int, int]:
    function, _, rest = text.partition(":")
    size, colon, topk = rest.partition(":")
    match = _SIZE.fullmatch(size.strip())
    misses = colon and not re.fullmatch(r"[1-9]\d{0,5}", topk)
    if match is None or not int(match[1]) or misses:
        raise UsageError(f"{text!r} is not a collective: NAME:SIZE[:EXPERTS], all_reduce:64M")
    if int(topk or 0) > _MOST_EXPERTS:
        raise UsageError(
            f"{text}: {topk} experts of a token; at most {_MOST_EXPERTS} are simulated"
        )
    return function, int(match[1]) * _UNITS[(match[2] or "").upper()], int(topk or 0)


__all__ = ["CollectivesOptions", "CollectivesReport", "collectives"]
