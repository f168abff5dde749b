"""The vendor's terms in reports."""

from __future__ import annotations

from wavecast import arch
from wavecast.report.explain import words


def test_nvidia_has_no_term_of_amd() -> None:
    say = words.of(arch.load("h100"))
    assert say.pipe("valu") == "ALU/FMA"
    assert say.pipe("lds") == "shared"
    assert say.instruction_class("vmem_load") == "global load"
    assert say.translate("waiting: LDS pipe") == "waiting: shared memory pipe"
    assert say.translate("vector work") == "ALU/FMA work"
    for pipe in ("matrix", "valu", "trans", "salu", "smem", "lds", "vmem"):
        assert say.pipe(pipe) != words.AMD.pipe(pipe)


def test_amd_keeps_the_terms_of_the_model() -> None:
    say = words.of(arch.load("mi300x"))
    assert say.pipe("valu") == "VALU"
    assert say.instruction_class("valu") == "valu"
    assert say.translate("waiting: LDS pipe") == "waiting: LDS pipe"
