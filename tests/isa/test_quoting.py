"""Symbols that LLVM quotes, in every directive that names one."""

from __future__ import annotations

import pytest

from wavecast import isa
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.quoting import quote, split, unquote, without_comment

NAME = 'f<i32, "x">; -1'
SYMBOL = r'"f<i32, \"x\">; -1"'
CALLED = f"""
	.text
	.type	{SYMBOL},@function
{SYMBOL}:	; @f<i32
	s_setpc_b64	s[30:31]
	.set "{SYMBOL[1:-1]}.num_vgpr", 48 ; registers
	.type	k,@function
k:
	s_getpc_b64	s[4:5]
	s_add_u32	s4, s4,	{SYMBOL}@rel32@lo+4 ; {SYMBOL}
	s_addc_u32	s5, s5, {SYMBOL}@rel32@hi+12
	s_swappc_b64	s[30:31], s[4:5]
	s_endpgm
.Lfunc_end1:
	.set .Lk.num_vgpr, max(22, "{SYMBOL[1:-1]}.num_vgpr")
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr .Lk.num_vgpr
		.amdhsa_next_free_sgpr 8
	.end_amdhsa_kernel
"""


def test_calls_of_a_quoted_function() -> None:
    program = isa.parse(CALLED, "gfx942", kernel="k", link=True).kernels["k"].program
    assert program.entries == {"k": 0, NAME: 5}
    assert [len(item.operands) for item in program.instructions[1:3]] == [3, 3]
    call = next(block for block in program.blocks if block.stop == 4)
    assert [program.blocks[block].start for block in call.successors] == [5]


def test_registers_of_a_quoted_function_count() -> None:
    assert descriptors_from_assembly(CALLED, "gfx942")["k"].directives["next_free_vgpr"] == 48


def test_a_kernel_with_a_quoted_name() -> None:
    text = CALLED.replace("kernel k", f"kernel {SYMBOL}").replace(f".type\t{SYMBOL}", ".type\tz")
    assert set(isa.parse(text, "gfx942").kernels) == {NAME}


def test_a_branch_to_a_quoted_label_prints_as_it_was_read() -> None:
    program = isa.parse('k:\n"a b":\n\ts_cbranch_scc0 "a b"\n\ts_endpgm\n', "gfx942").functions["k"]
    assert program.blocks[0].successors == (1, 0)
    assert isa.print_instruction(program.instructions[0].decoded) == 's_cbranch_scc0 "a b"'


@pytest.mark.parametrize("name", ["k", "_Z1fv", "f<a, b>", 'a"b', "a\nb", "c-1"])
def test_quoting_is_undone(name: str) -> None:
    assert unquote(quote(name)) == name
    assert (quote(name) == name) == name.isidentifier()


def test_comments_and_separators_in_quotes_are_text() -> None:
    assert without_comment('s_call_b64 s[0:1], "a;b" // c "d"') == 's_call_b64 s[0:1], "a;b"'
    assert split('s0, "a, b"@rel32@lo+4, f(c, d)', ",") == [
        "s0",
        ' "a, b"@rel32@lo+4',
        " f(c, d)",
    ]
