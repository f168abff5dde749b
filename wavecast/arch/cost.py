"""What instructions cost: tables per generation under `costs/`, looked up by cost class.

`costs/<generation>.toml` has one table per cost class; `base` names a generation whose tables hold
where this one has none. `costs/matrix.csv` has one row per matrix instruction and target.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from wavecast.arch.facts import Facts
from wavecast.arch.processors import named_in_tables
from wavecast.arch.quantity import Quantity
from wavecast.arch.reader import ROOT, Identity
from wavecast.dtypes import Family, is_dtype, lookup
from wavecast.errors import MissingFact, UnknownName, UsageError

COST_CLASSES = (
    *("valu", "valu_pk32", "valu_f64", "valu_mul32", "valu_mad64", "valu_b64", "valu_cvt"),
    *("valu_dot", "valu_lane", "accvgpr", "trans", "trans_f64", "matrix"),
    *("salu", "salu_f32", "salu_mul64", "smem_load", "smem_store"),
    *("vmem_load", "vmem_store", "vmem_atomic", "vmem_lds"),
    *("lds_load", "lds_store", "lds_atomic", "lds_permute"),
    *("branch", "wait", "barrier", "nop", "hint", "message", "cache", "prefetch", "end"),
)
"""Every cost class an opcode may have."""

PIPES = ("matrix", "valu", "trans", "salu", "smem", "lds", "vmem", "branch", "issue")
"""What instructions occupy."""

_PER_LANE_PIPES = frozenset({"valu", "trans", "lds", "vmem"})
"""Pipes that take a wave wider than native in several passes."""

_FORMATS = {Family.FP8: "f8", Family.FP6: "f6", Family.FP4: "f4"}
"""Operand formats of `f8f6f4` instructions, as `matrix.csv` names them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one instruction of one wave costs, in clocks.

    It occupies `pipe` of its SIMD for `issue_cycles` (for `lds`, `vmem` and `smem` the address part
    only); `shared_by` SIMDs have one such pipe between them. `latency_cycles` is issue to result,
    None where no source is known; for loads it is a hit in the nearest memory, or where `note`
    says. `accumulate_cycles` is issue to issue when the next matrix instruction takes the result as
    its C in the same registers, None for everything else.
    """

    pipe: str
    issue_cycles: float
    latency_cycles: float | None
    status: str
    source: str
    note: str = ""
    shared_by: int = 1
    accumulate_cycles: float | None = None


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Cost of one matrix instruction on one target."""

    cycles: int
    latency: int
    accumulate: int
    latency_status: str
    source: str


@cache
def table(generation: str) -> Mapping[str, Mapping[str, Any]]:
    """Cost class -> its row, for a generation. Raises MissingFact when it has no table."""
    import tomllib

    path = ROOT / "costs" / f"{generation}.toml"
    if not path.is_file():
        raise MissingFact(f"no instruction costs are known for {generation}")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    inherited = table(data.pop("base")) if "base" in data else {}
    return {**inherited, **data}


@cache
def matrix_table() -> Mapping[str, Mapping[tuple[str, int, str, str], MatrixRow]]:
    """Target -> (mnemonic, wave lanes, A format, B format) -> cost."""
    rows: dict[str, dict[tuple[str, int, str, str], MatrixRow]] = {}
    with (ROOT / "costs" / "matrix.csv").open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines):
            key = (row["mnemonic"], int(row["wave"]), row["a_format"], row["b_format"])
            rows.setdefault(row["target"], {})[key] = MatrixRow(
                cycles=int(row["cycles"]),
                latency=int(row["latency"]),
                accumulate=int(row["accumulate"]),
                latency_status=row["latency_status"],
                source=row["source"],
            )
    return rows


def _measured_latency(facts: Facts, row: Mapping[str, Any]) -> Quantity | None:
    """The device's own measurement of a latency, in clocks."""
    fact = facts.find(row["latency_field"]) if "latency_field" in row else None
    if fact is None or fact.unit == "clk":
        return fact
    clock = facts.find("peak_clock")
    if clock is None:
        return None
    cycles = fact.to("s").number * clock.to("Hz").number
    return Quantity(cycles, "clk", "derived", fact.sources, f"{fact.number:g} {fact.unit}")


def class_cost(facts: Facts, identity: Identity, cost_class: str, wave_lanes: int | None) -> Cost:
    """Cost of an instruction of `cost_class` for a wave of `wave_lanes` (native by default).

    A wave64 takes two passes through the vector pipes of a wave32 machine. Raises UnknownName for
    an unknown class, MissingFact on NVIDIA, UsageError for a wave the device does not run.
    """
    rows = table(identity.generation)
    if cost_class not in rows:
        raise UnknownName("cost class", cost_class, rows)
    row = rows[cost_class]
    native = facts.integer("wave_size")
    lanes = native if wave_lanes is None else wave_lanes
    if lanes not in ((32, 64) if native == 32 else (64,)):
        raise UsageError(f"{identity.id} does not run waves of {lanes} lanes")
    issue, latency = row["issue_cycles"], row.get("latency_cycles")
    status, sources = row["status"], row["source"]
    sources = [sources] if isinstance(sources, str) else sources
    measured = _measured_latency(facts, row)
    if measured is not None:
        latency = measured.number
        sources = [*sources, *(source for source in measured.sources if source not in sources)]
    passes = lanes // native if row["pipe"] in _PER_LANE_PIPES else 1
    return Cost(
        pipe=row["pipe"],
        issue_cycles=issue * passes,
        latency_cycles=None if latency is None else latency + issue * (passes - 1),
        status=status,
        source=", ".join(sources),
        note=row.get("note", ""),
        shared_by=row.get("shared_by", 1),
    )


def matrix_row(target: str, mnemonic: str, a_format: str, b_format: str, lanes: int) -> MatrixRow:
    """The row of a matrix instruction for waves of `lanes`, by the mnemonic LLVM prints.

    The formats matter for `f8f6f4` instructions alone. Raises UnknownName for an instruction the
    target does not have or a format that does not exist.
    """
    rows = matrix_table().get(named_in_tables(target), {})
    row = rows.get((mnemonic, lanes, "", ""))
    if row is None:
        row = rows.get((mnemonic, lanes, _operand_format(a_format), _operand_format(b_format)))
    if row is None:
        mnemonics = {name for name, wave, _, _ in rows if wave == lanes}
        raise UnknownName(f"{target} wave{lanes} matrix instruction", mnemonic, mnemonics)
    return row


def _operand_format(name: str) -> str:
    """The format of a modifier, FP8 where there is none. Raises UnknownName."""
    if not name:
        return _FORMATS[Family.FP8]
    if not is_dtype(name) or lookup(name).family not in _FORMATS:
        raise UnknownName("operand format", name, ("fp8", "bf8", "fp6", "bf6", "fp4"))
    return _FORMATS[lookup(name).family]


def matrix_cost(
    facts: Facts,
    identity: Identity,
    mnemonic: str,
    a_format: str,
    b_format: str,
    wave_lanes: int | None,
) -> Cost:
    """Cost of a matrix instruction: see `matrix_row`, which raises the errors."""
    lanes = facts.integer("wave_size") if wave_lanes is None else wave_lanes
    row = matrix_row(identity.target, mnemonic, a_format, b_format, lanes)
    return Cost(
        pipe="matrix",
        issue_cycles=row.cycles,
        latency_cycles=row.latency,
        status="compiler" if row.source == "llvm-schedule" else "spec",
        source=row.source.replace(" ", ", "),
        note=f"latency {row.latency_status}",
        accumulate_cycles=row.accumulate,
    )
