"""Assembly of newer LLVMs for older assemblers."""

from __future__ import annotations

import re

import pytest

from tests.lab.test_code import SOURCE
from wavecast.compile import hip, toolchain
from wavecast.compile.portable_assembly import link_portable
from wavecast.errors import CompileError, MissingTool

NAMED = "does not match the specified target id amdgcn-amd-amdhsa--gfx942"


def test_the_name_of_the_target_is_that_of_the_assembler() -> None:
    asked = []

    def link(text: str) -> bytes:
        asked.append(text)
        if "amdgpu" in text:
            raise CompileError(f"target id amdgpu9.42-amd-amdhsa-unknown-gfx942 {NAMED}")
        return b"code"

    text = '.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"\n'
    assert link_portable(text, link) == b"code"
    assert asked == [text, '.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n']


def test_other_refusals_stay() -> None:
    def link(text: str) -> bytes:
        raise CompileError("not a valid operand")

    with pytest.raises(CompileError, match="not a valid operand"):
        link_portable("s_nop x", link)


@pytest.mark.hip
@pytest.mark.parametrize(("target", "mask"), [("gfx1100", 1008), ("gfx1201", 4080)])
def test_lines_of_code_that_are_fetched_ahead(target: str, mask: int, tmp_path) -> None:
    """As the compiler counts them: the same bytes as of its assembly."""
    source = tmp_path / "product.hip"
    source.write_text(SOURCE)
    try:
        toolchain.find(target)
        (code,) = hip.compile_file(source, target)
        expected = hip.assemble_program(code.assembly, target)
    except MissingTool as error:
        pytest.skip(str(error))
    start = r"(\.amdhsa_inst_pref_size) \S+"
    if not re.search(start, code.assembly):
        pytest.skip("its assembly does not say how much is fetched")
    name = code.kernel
    newer = re.sub(start, rf"\1 ((instprefsize(.Lfunc_end0-{name})<<4)&{mask})>>4", code.assembly)
    assert newer != code.assembly
    assert hip.assemble_program(newer, target) == expected
