"""A workgroup that asks for more LDS than the device gives: the launch fails."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.rates import placement
from wavecast.rules.wording import size

NAME = "lds-over-limit"


def _check(subject: RuleInput) -> Iterator[Finding]:
    limits = placement(subject)
    lds_bytes, most = subject.analysis.lds_bytes, limits.lds_max_per_workgroup
    if lds_bytes <= most:
        return
    memory = "LDS" if subject.code.is_amd else "shared memory"
    stages = subject.code.options.get("num_stages")
    deeper = isinstance(stages, int) and stages > 1
    first = f"Lower num_stages (now {stages}); each stage holds one copy of the tiles. " * deeper
    yield Finding(
        rule=NAME,
        severity="error",
        message=f"one workgroup needs {size(lds_bytes)} of {memory}; {subject.device.name} allows "
        f"{size(most)}",
        evidence=f"{lds_bytes:,} bytes per workgroup, {lds_bytes - most:,} more than the "
        "device's limit; "
        "compiling for another machine does not check this, the launch fails",
        advice=f"{first}Otherwise make the tile smaller: {memory} grows with "
        "(BLOCK_M + BLOCK_N) * BLOCK_K * bytes per element.",
        location=subject.kernel_location,
    )


RULE = Rule(
    name=NAME,
    severity="error",
    title="More LDS than a workgroup may use",
    explanation="""\
The code compiles, since the compiler leaves dynamic LDS (Triton's `metadata.shared`) to the
launch, but the launch fails on the device. A configuration tuned on a chip with more LDS (160
KiB on gfx950, 227 KiB on sm_90) meets this on one with less (64 KiB on gfx942 and RDNA).

Fires when static and dynamic LDS together exceed the device's limit per workgroup.""",
    check=_check,
)
