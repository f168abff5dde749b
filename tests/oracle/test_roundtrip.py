"""Parsed and printed again, compiled kernels assemble to the compiler's own bytes."""

from __future__ import annotations

import pytest

from tests.corpus import roundtrip
from wavecast.isa.targets import TARGETS

pytest.importorskip("triton")

from tests.oracle import sample_kernels

COMPILED = [target for target in TARGETS if target not in ("gfx1030", "gfx1151")]
"""Triton 3.9 does not compile for gfx1030; gfx1151 is as gfx1100."""


@pytest.fixture(scope="module")
def compiled() -> dict[tuple[str, str], tuple[str, bytes]]:
    return {}


def _compiled(store: dict, name: str, target: str) -> tuple[str, bytes]:
    if (name, target) not in store:
        store[name, target] = sample_kernels.compile_for(name, target)
    return store[name, target]


@pytest.mark.parametrize("target", COMPILED)
@pytest.mark.parametrize("name", list(sample_kernels.KERNELS))
def test_with_the_compilers_own_assembler(compiled: dict, name: str, target: str) -> None:
    from triton.backends.amd import compiler

    if not hasattr(compiler, "assemble_amdgcn"):
        pytest.skip("this Triton does not export its assembler")
    text, elf = _compiled(compiled, name, target)
    count, problems = roundtrip.check(text, elf, target, "triton")
    assert not problems
    assert count > 50


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("name", list(sample_kernels.KERNELS))
def test_with_llvm_mc(compiled: dict, name: str, target: str) -> None:
    if roundtrip.llvm_mc() is None:
        pytest.skip("llvm-mc 22 or newer is not installed (apt install llvm-22)")
    text, elf = _compiled(compiled, name, target)
    count, problems = roundtrip.check(text, elf, target, "llvm-mc")
    assert not problems
    assert count > 50


def test_a_wrong_register_is_noticed(compiled: dict) -> None:
    text, elf = _compiled(compiled, "softmax", "gfx942")
    wrong = text.replace("v_exp_f32_e32 v", "v_exp_f32_e32 v1", 1)
    assert wrong != text
    try:
        _, problems = roundtrip.check(wrong, elf, "gfx942", "triton")
    except ValueError:
        return
    assert problems
