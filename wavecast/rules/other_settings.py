"""Warps, stages and block sizes other than those a kernel of Triton was launched with."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.settings import most_warps
from wavecast.rules.tiles import other_blocks
from wavecast.rules.triton_pipeline import dot_loops
from wavecast.rules.triton_stages import module, stage
from wavecast.rules.wording import join_names

NAME = "other-settings"

MOST_STAGES = 4
"""Stages that are tried at most."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    if subject.launch is None or subject.launch.configuration:
        return  # what an autotuner chose has been compared with the others
    fixes = tuple(_fixes(subject))
    if not fixes:
        return
    yield Finding(
        rule=NAME,
        severity="note",
        message="another setting is faster",
        evidence=f"compared with {join_names(fix.name for fix in fixes)}",
        advice=fixes[0].advice,
        location=subject.kernel_location,
        fixes=fixes,
    )


def _fixes(subject: RuleInput) -> Iterator[Fix]:
    """Half and twice as many warps, one stage fewer and more, half and twice each block size."""
    text, options = stage(subject, "ttir"), subject.code.options
    warps, stages = options.get("num_warps"), options.get("num_stages")
    if not text:
        return
    if isinstance(warps, int):
        for number in (warps // 2, warps * 2):
            if 1 <= number <= most_warps(subject):
                yield _setting(text, "num_warps", warps, number)
    parsed = module(subject, "ttgir")
    if isinstance(stages, int) and parsed is not None and dot_loops(parsed):
        for number in (stages - 1, stages + 1):
            if 1 <= number <= MOST_STAGES:
                yield _setting(text, "num_stages", stages, number)
    yield from other_blocks(subject, smaller=True, why="")
    yield from other_blocks(subject, smaller=False, why="")


def _setting(text: str, name: str, now: int, value: int) -> Fix:
    return Fix(
        f"Use {name}={value} (now {now}).", Recompiled(text, {name: value}), f"{name}={value}"
    )


RULE = Rule(
    name=NAME,
    severity="note",
    title="A faster setting",
    explanation=f"""\
Triton kernels are compiled for a number of warps, of stages (at most {MOST_STAGES} are tried) and
for block sizes. Which are fastest depends on registers, LDS and the grid together.

Fires with `--what-if` for launches without an autotuner's configuration. The neighbours of each
setting are compiled and predicted: half and twice as many warps and elements of every block size
that is a power of two, a stage fewer and more. Block sizes are changed in Triton's IR, and only
where the kernel then computes and stores as much as before. The finding names the best one, what it
costs in registers, LDS and occupancy, and those that are slower.""",
    check=_check,
    compiles_often=True,
)
