"""SASS: the opcode table, the parser, tensor-core shapes."""

from __future__ import annotations

import pytest

from wavecast.analyze.mix import CLASSES
from wavecast.analyze.sass import parser, table, tcgen05
from wavecast.analyze.sass.rates import rates
from wavecast.errors import InputError
from wavecast.isa.opcode import Control
from wavecast.isa.program import Program

LISTING = """
	.target	sm_90a

//--------------------- .text.k              --------------------------
	.section	.text.k,"ax",@progbits
	.align	128
k:
.text.k:
	//## File "/src/kernel.py", line 4
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/lib/helper.py", line 7 inlined at "/src/kernel.py", line 5
	//## File "/src/kernel.py", line 5
        /*0010*/              @!P0 EXIT ;
.L_x_0:
	//## File "/src/kernel.py", line 6
        /*0020*/                   FFMA R2, R3, R4, R2 ;
        /*0030*/                   CALL.REL.NOINC `($k$helper) ;
        /*0040*/              @P1 BRA `(.L_x_0) ;
        /*0050*/                   STG.E.128 desc[UR4][R6.64], R8 ;
        /*0060*/                   EXIT ;
        .type           $k$helper,@function
$k$helper:
        /*0070*/                   MUFU.RCP R5, R5 ;
        /*0080*/                   RET.REL.NODEC R20 `(k) ;
.L_x_1:
        /*0090*/                   BRA `(.L_x_1);
        /*00a0*/                   NOP;
.L_x_2:

//--------------------- .text.other              --------------------------
	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   EXIT ;
"""


def parsed(text: str = LISTING, kernel: str = "k") -> Program:
    return parser.parse(text, kernel, "sm_90")


def test_instructions_and_blocks() -> None:
    program = parsed()
    assert [i.mnemonic for i in program.instructions][:4] == [
        "LDC",
        "EXIT",
        "FFMA",
        "CALL.REL.NOINC",
    ]
    assert len(program.instructions) == 11
    assert [loop.blocks for loop in program.loops] == [{1}]
    assert program.blocks[1].label == ".L_x_0"


def test_source_lines_with_inlining() -> None:
    first, second, third, *_ = parsed().instructions
    assert first.location is not None
    assert (str(first.location), first.location.inlined_at) == ("/src/kernel.py:4", None)
    assert second.location is not None
    assert str(second.location) == "/lib/helper.py:7"
    assert str(second.location.outermost) == "/src/kernel.py:5"
    assert str(third.location) == "/src/kernel.py:6"


def test_a_uniform_branch_is_conditional() -> None:
    text = LISTING.replace("@P1 BRA `(.L_x_0)", "    BRA.U UP0, `(.L_x_0)")
    branch = parsed(text).instructions[4]
    assert branch.opcode.control is Control.CONDITIONAL
    assert len(parsed(text).loops) == 1


def test_branches_by_address_as_cuobjdump_prints_them() -> None:
    text = "\t\tFunction : k\n" + "\n".join(
        f"        /*{16 * n:04x}*/                   {line} ;      /* 0x0000000000007918 */"
        for n, line in enumerate(["NOP", "FADD R1, R1, R2", "@P0 BRA 0x10", "EXIT"])
    )
    assert [loop.header for loop in parsed(text).loops] == [1]


def test_functions_of_a_listing() -> None:
    assert parser.functions(LISTING) == ("k", "other")
    assert len(parsed(kernel="other").instructions) == 1


def test_a_kernel_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"no SASS for kernel 'absent'.*k, other"):
        parsed(kernel="absent")


def test_highest_register() -> None:
    assert parser.highest_register(parsed()) == 21


def test_every_group_of_the_table_is_a_known_class() -> None:
    assert {row.form for row in table.rows().values()} <= set(CLASSES)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_every_rate_has_a_status_and_a_source(target: str) -> None:
    for name, entry in rates(target).items():
        assert entry["status"] in ("derived", "secondary", "unverified", "guessed"), name
        assert entry["source"], name
    assert rates(target + "a") == rates(target)


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("LDG.E", 4),
        ("LDG.E.U16.CONSTANT", 2),
        ("LDG.E.128.CONSTANT", 16),
        ("LDS.U8", 1),
        ("STS.64", 8),
        ("LDSM.16.M88.4", 16),
        ("LDSM.16.MT88.2", 8),
        ("LDGSTS.E.BYPASS.LTC128B.128", 16),
        ("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU", 16),
        ("REDG.E.ADD.F64.RN.STRONG.GPU", 8),
        ("UTMALDG.2D", 0),
    ],
)
def test_bytes_per_lane(mnemonic: str, expected: int) -> None:
    memory = table.opcode(mnemonic, False).memory
    assert memory is not None
    assert memory.bytes == expected


@pytest.mark.parametrize(
    ("mnemonic", "flops", "dtype"),
    [
        ("HMMA.16816.F32.BF16", 4096, "bf16"),
        ("HMMA.16816.F32", 4096, "fp16"),
        ("HMMA.1688.F32.TF32", 2048, "tf32"),
        ("IMMA.16832.S8.S8.SAT", 8192, "int8"),
        ("DMMA.884", 512, "fp64"),
        ("DMMA.8x8x4", 512, "fp64"),
        ("HGMMA.64x128x16.F32.BF16", 2 * 64 * 128 * 16, "bf16"),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", 2 * 64 * 128 * 32, "fp8"),
    ],
)
def test_matrix_shapes(mnemonic: str, flops: int, dtype: str) -> None:
    shape = table.opcode(mnemonic, False).matrix
    assert shape is not None
    assert (shape.flops, shape.a_type) == (flops, dtype)


def test_an_unknown_opcode_keeps_its_name() -> None:
    row = table.opcode("QUUX.F32", False)
    assert (row.name, row.form, row.cost_class) == ("QUUX", "other", table.UNKNOWN_COST)


TCGEN05 = """
	.section	.text.k,"ax",@progbits
        /*0000*/                   UMOV UR17, 0x8200490 ;
        /*0010*/                   UMOV UR18, 0x1 ;
.L_x_0:
        /*0020*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR9], idesc[UR17], !UPT ;
        /*0030*/                   UIADD3.64 UR18, UR18, 0x2, URZ ;
        /*0040*/                   UTCHMMA tmem[UR4], gdesc[UR6], tmem[UR9], idesc[UR17], UPT ;
        /*0050*/              @P0 BRA `(.L_x_0) ;
        /*0060*/                   EXIT ;
"""


def test_tcgen05_shapes_come_from_the_descriptor() -> None:
    found = tcgen05.shapes(parsed(TCGEN05))
    assert sorted(found) == [2, 4]
    assert (found[2].m, found[2].n, found[2].k, found[2].a_type) == (128, 128, 16, "bf16")
    assert found[2] == found[4]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("UMOV UR17, 0x8200490", "UIADD3 UR17, UR4, 0x1, URZ"),
        ("UMOV UR17, 0x8200490", "@UP0 UMOV UR17, 0x8200490"),
        ("UIADD3.64 UR18, UR18", "UIADD3.64 UR16, UR18"),
        ("UIADD3.64 UR18, UR18, 0x2, URZ", "UMOV UR17, 0x4100490"),
    ],
)
def test_tcgen05_with_a_descriptor_that_may_change_is_unknown(before: str, after: str) -> None:
    assert before in TCGEN05
    assert 2 not in tcgen05.shapes(parsed(TCGEN05.replace(before, after)))
