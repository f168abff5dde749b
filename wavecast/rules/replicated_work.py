"""Threads of a Triton kernel that compute the same: more warps than a tile has elements for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavecast.compile.ttgir import Operation, tensors
from wavecast.perfmodel.replication import replication
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.settings import fewer_warps
from wavecast.rules.triton_stages import dots, module
from wavecast.rules.wording import count

NAME = "replicated-work"

_MEMORY = ("tt.load", "tt.store", "amdg.buffer_load", "amdg.buffer_store")


def _check(subject: RuleInput) -> Iterator[Finding]:
    warps = subject.code.options.get("num_warps")
    ir_module = module(subject, "ttgir")
    if ir_module is None or not isinstance(warps, int) or warps < 2:
        return
    products = dots(ir_module)
    if products:
        factor = replication(subject.code)
        if factor >= 2:
            first = min(products, key=lambda dot: math.prod(dot.result.shape))
            what = f"the {first.shape} dot is computed {factor:g} times by the waves of a workgroup"
            yield _finding(subject, first.operation, warps, int(factor), what)
        return
    accesses = [(_elements(item), item) for item in ir_module.operations_named(*_MEMORY)]
    tensor_accesses = [(elements, item) for elements, item in accesses if elements > 1]
    if not tensor_accesses:
        return
    most, largest = max(tensor_accesses, key=lambda pair: pair[0])
    threads = warps * subject.device.wave_lanes
    if 2 * most > threads:
        return
    factor = min(warps, threads // most)
    what = f"a tile of {most} elements is spread over {threads} threads: each is computed " + (
        f"{threads // most} times"
    )
    yield _finding(subject, largest, warps, factor, what)


def _elements(operation: Operation) -> int:
    tensor_types = tensors(operation.types)
    return math.prod(tensor_types[-1].shape) if tensor_types else 0


def _finding(
    subject: RuleInput, operation: Operation, warps: int, factor: int, what: str
) -> Finding:
    fewer = max(1, warps // factor)
    advice = (
        f"Use num_warps={fewer} (now {warps}), or give a program several rows, so that every "
        "thread has elements that no other one has."
    )
    return Finding(
        rule=NAME,
        severity="warning",
        message=what,
        evidence=f"num_warps={warps}; where a tile has fewer elements than threads, Triton gives "
        f"the same elements to several threads: {count(factor, 'time')} the instructions, "
        "registers and wave slots",
        advice=advice,
        location=operation.location,
        fixes=tuple(fewer_warps(subject, fewer, advice)),
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Waves that compute the same",
    explanation="""\
Triton spreads a tile over all threads of a workgroup. A tile with fewer elements than threads, or
with fewer matrix instructions than waves, is computed several times: the results are equal, only
one is stored, and every pipe pays for all of them.

Fires for kernels without dots whose largest access has at most half as many elements as the
workgroup has threads, and, on AMD targets, for dots whose product is computed at least twice. The
fix is predicted by compiling the kernel with as many fewer warps.""",
    check=_check,
)
