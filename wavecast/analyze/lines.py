"""What each source line became: instructions by class and cycles by pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wavecast.analyze.charges import Charge
from wavecast.analyze.pipes import Residency, Tally
from wavecast.analyze.result import LineCost
from wavecast.isa.instruction import Instruction, SourceLocation

LineKey = tuple[str, int]


def line_costs(
    instructions: Sequence[Instruction], charges: Sequence[Charge], residency: Residency
) -> tuple[tuple[LineCost, ...], tuple[LineCost, ...]]:
    """Costs by line of the kernel's own body, and by line of the functions inlined into it.

    In the first, inlined code counts for its outermost call site; the second holds only inlined
    code, under its own line. `charges` holds one charge per instruction. Every instruction counts
    once, however often it runs; cycles are those of one SIMD with all resident waves. Instructions
    without a line are left out.
    """
    body: dict[LineKey, Tally] = {}
    inlined: dict[LineKey, Tally] = {}
    locations = {id(i.location): i.location for i in instructions}
    numbers = [id(i.location) for i in instructions]
    for (number, charge), count in Counter(zip(numbers, charges, strict=True)).items():
        location = locations[number]
        if location is None:
            continue
        outer, inner = _line_keys(location)
        body.setdefault(outer, Tally()).count(charge, count)
        if inner is not None:
            inlined.setdefault(inner, Tally()).count(charge, count)
    return _costs(body, residency), _costs(inlined, residency)


def _line_keys(location: SourceLocation) -> tuple[LineKey, LineKey | None]:
    outer = location.outermost
    inner = None if location.inlined_at is None else (location.file, location.line)
    return (outer.file, outer.line), inner


def _costs(tallies: dict[LineKey, Tally], residency: Residency) -> tuple[LineCost, ...]:
    costs = []
    for (file, line), tally in sorted(tallies.items()):
        cycles = {pipe: value for pipe, value in tally.cycles(residency).items() if value}
        costs.append(LineCost(file, line, tally.classes(), cycles))
    return tuple(costs)
