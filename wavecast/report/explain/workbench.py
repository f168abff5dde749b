"""What the workbench shows of a report: the document of `explain`, and panes of code per launch.

Panes name source lines by their number in the listing of the launch, as the page of `explain` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from wavecast.compile import llvm_ir, ttgir
from wavecast.perfmodel.launches import RATES, launch_timing, scaled_timing
from wavecast.report.explain import json as json_report
from wavecast.report.explain import listing, roofline_plot, source, summary
from wavecast.report.explain.access_plot import drawn_accesses

if TYPE_CHECKING:
    from wavecast.compile.codeobject import CodeObject
    from wavecast.pipeline.explain.result import ExplainReport, Explanation
    from wavecast.report.explain.listing import Listing

EVENTS: Final = 20_000
"""Instructions of a timeline."""
_MLIR: Final = {"ttgir": "TTGIR", "ttir": "TTIR"}
_TEXTS: Final = {"llir": "LLVM IR", "ptx": "PTX"}


def answer(report: ExplainReport) -> dict[str, Any]:
    """The document, and per launch its label, source files, targets with their code, roofline."""
    launches = []
    for group in summary.groups(report):
        kernel_listing = listing.build(group.explanations)
        launches.append(
            {
                "label": group.label,
                "kernel": group.kernel,
                "files": [
                    {
                        "name": file.name,
                        "own": file.own,
                        "lines": [[line.index, line.line, line.text] for line in file.lines],
                    }
                    for file in kernel_listing.files
                ],
                "targets": [
                    {
                        "device": explanation.device.id,
                        "assembly": panes,
                        "stages": list(_stages(explanation.code, kernel_listing)),
                    }
                    for explanation, panes in zip(
                        group.explanations, kernel_listing.targets, strict=True
                    )
                ],
                "roofline": roofline_plot.plot(group.explanations) or "",
                "rates": list(RATES),
            }
        )
    return {"document": json_report.document(report), "launches": launches}


def explanation_at(report: ExplainReport, launch: int, target: int) -> Explanation:
    """An explanation by the numbers of its launch and target in `answer`. Raises IndexError."""
    return summary.groups(report)[launch].explanations[target]


def accesses(explanation: Explanation) -> list[dict[str, Any]]:
    """The pictures of memory instructions: `line` of the source, `title`, `image` (SVG), and the
    numbers of the instructions."""
    return [
        {
            "line": access.group.line,
            "title": access.title,
            "image": access.image,
            "instructions": list(access.group.indices),
        }
        for access in drawn_accesses(explanation)
    ]


def timeline(explanation: Explanation) -> dict[str, Any]:
    """The first instructions of a simulated compute unit: `rows` are wave slots by their names;
    `events` are `[row, start, clocks, instruction]` in clocks of `clock_ghz`.

    Raises UsageError and MissingFact as `changes_of`; {} for a launch that is not predicted.
    """
    profile = explanation.predicted.profile
    if profile is None:
        return {}
    timing = launch_timing(profile, explanation.device, events=EVENTS)
    events = timing.unit.events.tolist()
    slots = sorted({(int(simd), int(slot)) for _, simd, slot, *_ in events})
    row = {slot: number for number, slot in enumerate(slots)}
    instructions = profile.program.instructions
    return {
        "clock_ghz": timing.clock / 1e9,
        "rows": [f"SIMD {simd}, slot {slot}" for simd, slot in slots],
        "events": [
            [row[int(simd), int(slot)], start, clocks, int(index)]
            for start, simd, slot, index, clocks in events
        ],
        "names": [instruction.decoded.text for instruction in instructions],
        "classes": [(i.opcode.cost_class or i.opcode.form).split("_", 1)[0] for i in instructions],
        "lines": [
            i.location.outermost.line if i.location is not None else None for i in instructions
        ],
    }


def changed_seconds(explanation: Explanation, factors: dict[str, float]) -> float | None:
    """The predicted seconds with rates of the chip multiplied (`model.launches.RATES`), None for a
    launch that is not predicted. Raises UnknownName for another rate."""
    profile = explanation.predicted.profile
    if profile is None:
        return None
    return scaled_timing(profile, explanation.device, factors).seconds


# --- code ----------------------------------------------------------------------------------------


def _stages(code: CodeObject, kernel_listing: Listing) -> Iterator[dict[str, Any]]:
    """The IR of a kernel, nearest to the machine code first: `text` by line, with the number of its
    source line or None."""
    moved_files = tuple(code.moved_files.items())
    for name, title in _TEXTS.items():
        text = code.stages.get(name)
        if isinstance(text, str):
            lines = text.splitlines()
            positions = llvm_ir.lines_of(lines) if name == "llir" else [None] * len(lines)
            indices = {at: _listing_line(kernel_listing, at, code) for at in set(positions)}
            yield _pane(title, lines, [indices[at] for at in positions])
    for name, title in _MLIR.items():
        text = code.stages.get(name)
        if isinstance(text, str):
            lines = text.splitlines()
            by_line: dict[int, int | None] = {
                operation.line: kernel_listing.index_of(operation.location)
                for operation in ttgir.parse(text, moved_files).operations
            }
            yield _pane(title, lines, [by_line.get(n) for n in range(1, len(lines) + 1)])


def _listing_line(
    kernel_listing: Listing, at: tuple[str, int] | None, code: CodeObject
) -> int | None:
    """The listing's line of a file's name and line."""
    if at is None:
        return None
    new_names = {old.rsplit("/", 1)[-1]: new for old, new in code.moved_files.items()}
    name, line = at
    name = new_names.get(name, name)
    for file in kernel_listing.files:
        if source.same_file(file.name, name) or file.name.endswith("/" + name):
            return next((row.index for row in file.lines if row.line == line), None)
    return None


def _pane(title: str, lines: Sequence[str], positions: Sequence[int | None]) -> dict[str, Any]:
    """Without the definitions of locations, which are links already."""
    rows = [
        (text, index)
        for text, index in zip(lines, positions, strict=True)
        if not text.startswith(("#loc", "!"))
    ]
    return {
        "title": title,
        "text": [text.partition(" loc(")[0] for text, _ in rows],
        "lines": [index for _, index in rows],
    }


__all__ = ["EVENTS", "accesses", "answer", "changed_seconds", "explanation_at", "timeline"]
