"""The data flow against counters that complete operations in every order the hardware may.

Random programs of loads, stores, waits, uses and branches are also run by a small model that knows
nothing of distances: it keeps every set of operations that can be outstanding, completes any of
them that is the oldest of its kind (any at all where there is no order), and lets a wait pass in
those sets alone whose counters are low enough. A use is early where some set still holds the load.
"""

from __future__ import annotations

import random
from itertools import count

import pytest

from tests.analyze.support import program
from wavecast.analyze.sync import missing_waits

REGISTERS = 6
STEPS = 12
TIMES_ROUND = 2
PROGRAMS = 120
OPEN_AT_MOST = 7


class TooManyOpen(Exception):
    """The sets of the model grow too fast; the program is not compared."""


Operation = tuple[int, str, str, int]
"""Issue number, kind, counter, register it writes or -1. Kinds with a `*` keep no order."""

FORMS = {
    "gfx942": {
        "load": ("global_load_dword v{r}, v9, s[0:1]", "vector", ("vmcnt",)),
        "store": ("global_store_dword v9, v8, s[0:1]", "vector", ("vmcnt",)),
        "lds": ("ds_read_b32 v{r}, v9", "lds", ("lgkmcnt",)),
        "lds store": ("ds_write_b32 v9, v8", "lds", ("lgkmcnt",)),
        "scalar": ("s_load_dword s{s}, s[0:1], 0x0", "scalar*", ("lgkmcnt",)),
        "flat": ("flat_load_dword v{r}, v[10:11]", "flat*", ("vmcnt", "lgkmcnt")),
    },
    "gfx1100": {
        "load": ("global_load_b32 v{r}, v9, s[0:1]", "load", ("vmcnt",)),
        "store": ("global_store_b32 v9, v8, s[0:1]", "store", ("vscnt",)),
        "lds": ("ds_load_b32 v{r}, v9", "lds", ("lgkmcnt",)),
        "scalar": ("s_load_b32 s{s}, s[0:1], 0x0", "scalar*", ("lgkmcnt",)),
    },
    "gfx1201": {
        "load": ("global_load_b32 v{r}, v9, s[0:1]", "load", ("loadcnt",)),
        "store": ("global_store_b32 v9, v8, s[0:1]", "store", ("storecnt",)),
        "lds": ("ds_load_b32 v{r}, v9", "lds", ("dscnt",)),
        "scalar": ("s_load_b32 s{s}, s[0:1], 0x0", "scalar*", ("kmcnt",)),
    },
}
WAITS = {
    "gfx942": ("s_waitcnt vmcnt({n})", "s_waitcnt lgkmcnt({n})"),
    "gfx1100": ("s_waitcnt vmcnt({n})", "s_waitcnt lgkmcnt({n})", "s_waitcnt_vscnt null, {n}"),
    "gfx1201": ("s_wait_loadcnt {n}", "s_wait_dscnt {n}", "s_wait_kmcnt {n}"),
}
SCALAR_BASE = 16
"""Register number of the model from which on registers are scalar."""


def random_lines(target: str, chooser: random.Random) -> list[tuple[str, object]]:
    """Instructions as (text, what the model does): an issue, a wait, a use, a branch, a label."""
    lines: list[tuple[str, object]] = []
    forms, waits = FORMS[target], WAITS[target]
    used: set[int] = set()
    for _ in range(STEPS):
        kind = chooser.choices(("issue", "wait", "use", "branch"), (5, 4, 4, 1))[0]
        register = chooser.randrange(REGISTERS)
        if kind == "issue":
            text, order, counters = forms[chooser.choice(list(forms))]
            written = register if "{r}" in text else SCALAR_BASE + register if "{s}" in text else -1
            # one load per register: overwriting is the subject of other tests
            if written in used:
                continue
            if written >= 0:
                used.add(written)
            spelled = text.format(r=register, s=SCALAR_BASE + register)
            lines.append((spelled, ("issue", order, counters, written)))
        elif kind == "wait":
            value = chooser.randrange(3)
            text = chooser.choice(waits).format(n=value)
            counter = text.split()[0].removeprefix("s_wait_").removeprefix("s_waitcnt_")
            counter = text.split()[1].split("(")[0] if counter == "s_waitcnt" else counter
            lines.append((text, ("wait", counter, value)))
        elif kind == "use":
            known = sorted(used) or [register]
            register = chooser.choice(known)
            text = "s_mov_b32 s40, s{0}" if register >= SCALAR_BASE else "v_mov_b32_e32 v12, v{0}"
            lines.append((text.format(register), ("use", register)))
        else:
            lines.append(("branch", None))
    for position in [i for i, line in enumerate(lines) if line[1] is None]:
        to = chooser.randrange(len(lines) + 1)
        lines[position] = (f"s_cbranch_scc1 .L{to}", ("branch", to))
    return lines


def completions(outstanding: frozenset[Operation]) -> set[frozenset[Operation]]:
    """Every set that operations completing can leave of `outstanding`, itself included."""
    reached = {outstanding}
    pending = [outstanding]
    while pending:
        current = pending.pop()
        for operation in current:
            number, kind, _, _ = operation
            older = any(o[1] == kind and o[0] < number for o in current)
            if older and not kind.endswith("*"):
                continue
            left = current - {operation}
            if left not in reached:
                reached.add(left)
                pending.append(left)
    return reached


def largest(states: set[frozenset[Operation]]) -> frozenset[frozenset[Operation]]:
    """The sets that no other contains: what else can be outstanding follows by completing."""
    return frozenset(s for s in states if not any(s < other for other in states))


def early_uses(lines: list[tuple[str, object]]) -> set[int]:
    """Instructions that use a register some load may still have to write."""
    early: set[int] = set()
    numbers = count()
    start: frozenset[frozenset[Operation]] = frozenset({frozenset()})
    pending: list[tuple[int, frozenset[frozenset[Operation]], tuple[int, ...]]] = [(0, start, ())]
    while pending:
        position, states, taken = pending.pop()
        if position >= len(lines):
            continue
        action = lines[position][1]
        assert isinstance(action, tuple)
        following = [position + 1]
        if action[0] == "issue":
            _, order, counters, written = action
            # a flat access is counted twice, and each count may end before the data arrive
            issued = {(next(numbers), order, counter, written) for counter in counters}
            states = frozenset(state | issued for state in states)
            if max(map(len, states)) > OPEN_AT_MOST:
                raise TooManyOpen
        elif action[0] == "wait":
            _, counter, value = action
            states = largest(
                {
                    left
                    for state in states
                    for left in completions(state)
                    if sum(counter == operation[2] for operation in left) <= value
                }
            )
        elif action[0] == "use":
            if any(operation[3] == action[1] for state in states for operation in state):
                early.add(position)
        elif taken.count(position) < TIMES_ROUND:
            following.append(action[1])
            taken = (*taken, position)
        for place in following:
            pending.append((place, states, taken))
    return early


@pytest.mark.parametrize("target", list(FORMS))
def test_against_every_order_of_completion(target: str) -> None:
    chooser = random.Random(f"waits {target}")
    compared = found = 0
    while compared < PROGRAMS:
        lines = random_lines(target, chooser)
        try:
            expected = early_uses(lines)
        except TooManyOpen:
            continue
        body = "\n".join(f".L{i}:\n\t{text}" for i, (text, _) in enumerate(lines))
        parsed = program(f"{body}\n.L{len(lines)}:", target)
        uses = {i for i, (_, action) in enumerate(lines) if isinstance(action, tuple)
                and action[0] == "use"}  # fmt: skip
        reported = {v.instruction for v in missing_waits(parsed)} & uses
        # one report per register and block: later uses of it there are the same mistake
        assert reported <= expected, body
        first = _first_in_block(parsed, lines, expected)
        assert first <= reported, body
        compared += 1
        found += len(reported)
    assert found > 50


def _first_in_block(parsed, lines: list[tuple[str, object]], uses: set[int]) -> set[int]:
    """Of the uses of one register in one block the first, unless it is loaded again there."""
    first = set()
    for block in parsed.blocks:
        seen: set[int] = set()
        for index in range(block.start, min(block.stop, len(lines))):
            action = lines[index][1]
            assert isinstance(action, tuple)
            if index in uses and action[1] not in seen:
                first.add(index)
                seen.add(action[1])
            elif action[0] == "issue":
                seen.discard(action[3])
    return first
