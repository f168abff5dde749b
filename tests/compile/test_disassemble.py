"""What is written around the instructions of a code object."""

from __future__ import annotations

import struct

import pytest

from wavecast.compile import disassemble
from wavecast.compile.disassemble import _parts, _skip_preload_trap, _with_distances, _with_symbols
from wavecast.isa import elf
from wavecast.isa.encoding.stream import CodeReader

COUNTER = (0x100, "s_getpc_b64 s[2:3]", None)
JUMP = (0x114, "s_setpc_b64 s[2:3]", None)


@pytest.mark.parametrize(
    ("low", "high", "lines"),
    [
        (
            "s_add_u32 s2, s2, 0xfffffffc",
            "s_addc_u32 s3, s3, lit(0xffffffff)",
            ("s2, (.L100-.L104)&4294967295", "s3, (.L100-.L104)>>32"),
        ),
        (
            "s_add_u32 s2, s2, 0x2fc",
            "s_addc_u32 s3, s3, 0",
            ('s2, "f, g"@rel32@lo+4', 's3, "f, g"@rel32@hi+12'),
        ),
        (
            "s_add_u32 s2, s2, 0x800",
            "s_addc_u32 s3, s3, 0",
            ("s2, .rodata@rel32@lo+8", "s3, .rodata@rel32@hi+16"),
        ),
        ("s_add_u32 s2, s2, 0x900", "s_addc_u32 s3, s3, 0", ("s2, 0x900", "s3, 0")),
        ("s_add_u32 s4, s4, 0xfffffffc", "s_addc_u32 s3, s3, -1", ("s4, 0xfffffffc", "s3, -1")),
    ],
    ids=["far branch", "call", "data", "elsewhere", "another register"],
)
def test_numbers_added_to_the_program_counter(low, high, lines) -> None:
    body = [COUNTER, (0x104, low, None), (0x10C, high, None), JUMP]
    functions = {0x100: "k", 0x400: "f, g"} if '"f' in lines[0] else {0x400: "f"}
    data = elf.Section(".rodata", 1, 0x900, 0, 0, 0x10, b"")
    found = _with_symbols(body, functions, [data], {})
    assert [text.split(", ", 1)[1] for _, text, _ in found[1:3]] == list(lines)


@pytest.mark.parametrize(
    ("distance", "symbol"), [(0x400, "table@gotpcrel{}"), (0x600, ".rodata@rel{}")]
)
def test_addresses_of_gfx12_and_gfx1250(distance: int, symbol: str) -> None:
    """gfx12 extends the program counter's sign; gfx1250 adds 64 bits."""
    data, words = elf.Section(".rodata", 1, 0x704, 0, 0, 0x10, b""), {0x504: "table"}
    extended = [
        COUNTER,
        (0x104, "s_sext_i32_i16 s3, s3", None),
        (0x108, f"s_add_co_u32 s2, s2, {distance:#x}", None),
        (0x110, "s_add_co_ci_u32 s3, s3, lit(0x0)", None),
    ]
    texts = [text for _, text, _ in _with_symbols(extended, {}, [data], words)]
    assert texts[2:] == [
        f"s_add_co_u32 s2, s2, {symbol.format('32@lo')}+8",
        f"s_add_co_ci_u32 s3, s3, {symbol.format('32@hi')}+16",
    ]
    wide = [
        (0x100, "s_get_pc_i64 s[2:3]", None),
        (0x104, f"s_add_nc_u64 s[2:3], s[2:3], lit64({distance:#x})", None),
    ]
    bits = "" if "got" in symbol else "64"
    texts = [text for _, text, _ in _with_symbols(wide, {}, [data], words)]
    assert texts[1] == f"s_add_nc_u64 s[2:3], s[2:3], {symbol.format(bits)}+4"


def test_zeros_behind_the_end_are_data() -> None:
    """They decode to `v_cndmask_b32_e32 v0, s0, v0, vcc` on gfx9, which LLVM does not assemble;
    where execution leads to them they are instructions."""
    end, branch = 0xBF810000, 0xBF820001  # s_endpgm; s_branch over one word
    words = [0, branch, 0, 0, end, 0, 0]
    placed = CodeReader("gfx90a", 64).read(struct.pack("<7I", *words), 0x1000)
    texts = [text for _, text, _ in disassemble._decode_body("k", placed)]
    zero = "v_cndmask_b32_e32 v0, s0, v0, vcc"
    assert texts == [zero, "s_branch 1", ".long 0x0", zero, "s_endpgm", ".long 0x0", ".long 0x0"]


@pytest.mark.parametrize("first", [0xBF920002, 0xBF800000], ids=["s_trap 2", "s_nop 0"])
def test_a_trap_for_firmware_that_does_not_preload_is_left_out(first) -> None:
    words = [first, *[0xBF800000] * 63, 0xBF810000]
    placed = CodeReader("gfx942", 64).read(struct.pack("<65I", *words), 0x1000)
    found = _skip_preload_trap(placed, 0x1000)
    assert [item.address for item in found][:1] == [0x1100 if first == 0xBF920002 else 0x1000]
    assert found[-1].decoding is not None
    assert found[-1].decoding.text == "s_endpgm"


@pytest.mark.parametrize(
    ("last", "symbol", "called"),
    [
        (("s_setpc_b64 s[12:13]", None), ".L200", []),
        (("s_branch 4", 0x120), "function_200@rel32@lo+0", [0x200]),
    ],
    ids=["far branch", "call"],
)
def test_distances_in_registers(last, symbol, called) -> None:
    """How Tensile reaches code: its distance in a register, and the program counter added to it."""
    body = [
        (0x100, "s_getpc_b64 s[12:13]", None),
        (0x104, "s_add_i32 s8, 0xf8, 4", None),
        (0x10C, "s_add_u32 s12, s12, s8", None),
        (0x110, "s_addc_u32 s13, s13, 0", None),
        (0x114, *last),
        (0x120, "s_swappc_b64 s[30:31], s[12:13]", None),
        (0x1FC, "s_endpgm", None),
        (0x200, "s_setpc_b64 s[30:31]", None),
    ]
    found, functions = _with_distances(body)
    assert found[1][:2] == (0x104, f"s_add_i32 s8, {symbol}, 4")
    assert functions == called
    assert [one for one in found if one[0] != 0x104] == [one for one in body if one[0] != 0x104]


def test_code_behind_the_last_function_that_the_kernel_branches_to_is_the_kernels() -> None:
    """TensileLite's activations lie between a kernel and its end."""
    body = [
        (0x100, "s_branch 3", 0x110), (0x104, "s_endpgm", None),
        (0x108, "v_mov_b32_e32 v0, v1", None), (0x10C, "s_setpc_b64 s[30:31]", None),
        (0x110, "s_endpgm", None),
    ]  # fmt: skip
    own, parts = _parts(body, [0x108])
    assert [address for address, _, _ in own] == [0x100, 0x104, 0x110]
    assert [[address for address, _, _ in part] for part in parts] == [[0x108, 0x10C]]
