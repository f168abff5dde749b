"""Software pipelining that was asked for and did not happen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wavecast.compile.ttgir import IrModule, Operation, tensors
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.triton_pipeline import LOADS, DotLoop, dot_loops
from wavecast.rules.triton_slice import TritonSlices, access
from wavecast.rules.triton_stages import module, module_slices
from wavecast.rules.wording import count, join_names

NAME = "num-stages-no-effect"

_SIZE_PER_THREAD = re.compile(r"sizePerThread = \[([\d, ]+)\]")
_BITS = re.compile(r"\d+")
PIPELINED_BITS = 32
"""Triton's AMD pipeliner leaves out loads narrower than this per lane."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    stages = subject.code.options.get("num_stages")
    ir_module, sliced = module(subject, "ttgir"), module_slices(subject, "ttgir")
    if not isinstance(stages, int) or stages < 2 or ir_module is None or sliced is None:
        return
    for candidate in dot_loops(ir_module):
        if candidate.pipelined or not candidate.loads:
            continue
        reason, advice = _reason(ir_module, sliced, candidate)
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"num_stages={stages} has no effect on this loop",
            evidence=f"none of its {count(len(candidate.loads), 'tile load')} is issued ahead: "
            f"{reason}",
            advice=advice,
            location=candidate.loop.location,
        )


def _reason(ir_module: IrModule, sliced: TritonSlices, candidate: DotLoop) -> tuple[str, str]:
    """Why the pipeliner did not change the loop, where TTGIR shows it, and what to change."""
    loads, loop = candidate.loads, candidate.loop
    narrow = [load for load in loads if _bits_per_lane(ir_module, load) < PIPELINED_BITS]
    if narrow:
        addresses = [value for load in narrow for value in access(load).address]
        missing = [arg.name for arg in sliced.unproven(addresses)]
        hint = (
            f"make {join_names(missing)} multiples of 16 (or constants), so that Triton can "
            "prove it"
            if missing
            else "state what is known with tl.multiple_of and tl.max_contiguous"
        )
        bits = min(_bits_per_lane(ir_module, load) for load in narrow)
        return (
            f"{count(len(narrow), 'load')} of {bits} bits per lane, and the pipeliner wants "
            f"{PIPELINED_BITS}",
            f"Let the loads widen: {hint}.",
        )
    inner = {id(operation) for operation in ir_module.within(loop)}
    for load in loads:
        chain = sliced.operations(access(load).address)
        if any(id(item) in inner and item.name in LOADS and item is not load for item in chain):
            return (
                "their addresses come from another load in the same iteration",
                "Load the indices one iteration ahead and carry them, or copy them to registers "
                "before the loop.",
            )
    return (
        "the pipeliner found no load that it could move to an earlier iteration",
        "Keep loads in the loop body itself (not under an if), let their addresses depend on the "
        "induction variable only, and feed tl.dot without elementwise work in between.",
    )


def _bits_per_lane(ir_module: IrModule, load: Operation) -> int:
    """Width of one lane's access by the layout of the loaded tensor; wide when it has none."""
    tensor = tensors(load.types)[-1]
    match = _SIZE_PER_THREAD.search(ir_module.layout(tensor))
    element = _BITS.search(tensor.element.replace("!tt.ptr<", ""))
    if match is None or element is None:
        return PIPELINED_BITS
    return max(int(size) for size in match[1].split(",")) * int(element[0])


RULE = Rule(
    name=NAME,
    severity="warning",
    title="num_stages without effect",
    explanation=f"""\
With num_stages > 1 Triton loads the tiles of a later iteration while it computes this one. When
it cannot, it says nothing: the loop waits for memory in every iteration, and tuning num_stages
changes nothing. Typical reasons are loads narrower than {PIPELINED_BITS} bits per lane (an
unproven divisibility) and addresses that come from another load.

Fires for a loop with tile loads and a dot whose TTGIR neither carries buffers from one
iteration to the next nor copies asynchronously, though num_stages is 2 or more.""",
    check=_check,
)
