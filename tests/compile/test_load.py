"""`compile.load`: what a file is, and one line about what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wavecast import compile as compiling
from wavecast.compile import FileKind, assembly, kind_of
from wavecast.errors import InputError, UnknownName, UsageError, WavecastError


def test_assembly_knows_its_target(saxpy: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.txt"  # the content decides
    path.write_text(saxpy)
    (code,) = compiling.load(path)
    assert (code.kernel, code.target, code.origin) == ("saxpy", "gfx942", "assembly")
    assert code.assembly == saxpy
    assert [(p.offset, p.size, p.type) for p in code.parameters] == [
        (0, 4, ""),
        (8, 8, "*"),
        (16, 8, "*"),
        (24, 4, ""),
    ]
    assert compiling.load(path, "gfx942") == [code]


def test_equal_content_has_an_equal_digest(saxpy: str) -> None:
    first, second = assembly.load(saxpy), assembly.load(saxpy, "gfx942", "elsewhere.s")
    assert first[0].digest == second[0].digest
    assert assembly.load(saxpy.replace("v_fmac", "v_mac"))[0].digest != first[0].digest


def test_a_contradicting_target_is_an_error(saxpy: str) -> None:
    with pytest.raises(InputError, match="for gfx942, not for gfx1100"):
        assembly.load(saxpy, "gfx1100")
    with pytest.raises(InputError, match="not code for sm_90"):
        assembly.load(saxpy, "sm_90")


def test_processors_of_one_instruction_set_agree(saxpy: str) -> None:
    text = saxpy.replace("gfx942", "gfx1101")
    assert assembly.load(text, "gfx1100")[0].target == "gfx1101"


def test_a_missing_target_must_be_given(saxpy: str) -> None:
    lines = [line for line in saxpy.splitlines() if ".amdgcn_target" not in line]
    text = "\n".join(lines)
    with pytest.raises(InputError, match="names no target"):
        assembly.load(text)
    assert assembly.load(text, "gfx90a")[0].target == "gfx90a"
    with pytest.raises(UnknownName):
        assembly.load(text, "gfx9999")


def test_assembly_without_a_kernel() -> None:
    with pytest.raises(InputError, match="no kernel"):
        assembly.load('\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\ts_endpgm\n')


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.s", b"", "is empty"),
        ("blank.hip", b" \n\0\n", "is empty"),
        ("lib.a", b"!<arch>\nfoo", "static library with no GPU code"),
        ("cut.a", b"!<arch>\n" + b"x" * 60, "archive is damaged"),
        ("thin.a", b"!<thin>\nfoo", "thin archive"),
        ("k.bc", b"BC\xc0\xde\x35", "bitcode"),
        ("k.fatbin", b"\x50\xed\x55\xba\1\0", "NVIDIA fat binary"),
        ("k.bin", bytes(range(256)), "no known kind"),
        ("script.py", b"import triton\n", "Python script"),
        ("k.ll", b'target triple = "amdgcn-amd-amdhsa"\n', "LLVM IR"),
        ("k.ttgir", b"module attributes {} {\n tt.func @k() {", "MLIR"),
        ("notes.txt", b"hello there\n", "no known kind"),
        ("cut.hsaco", b"\x7fELF\2\1\1", "truncated"),
        ("elf32.o", b"\x7fELF\1\1\1" + bytes(60), "32-bit"),
        ("cut.bundle", b"__CLANG_OFFLOAD_BUNDLE__\1\0\0", "truncated"),
        ("cut.ccob", b"CCOB\2\0", "truncated"),
        ("k.hip", b"__global__ void k() {}", "needs an AMD target"),
    ],
)
def test_files_that_cannot_be_read(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        compiling.load(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        compiling.load(tmp_path / "absent.hip", "gfx942")
    with pytest.raises(InputError, match="is a folder"):
        compiling.load(tmp_path, "gfx942")


def test_a_program_without_device_code() -> None:
    with pytest.raises(InputError, match=r"with no GPU code in it|needs an AMD target"):
        compiling.load(sys.executable)


def test_options_are_for_source(saxpy: str, tmp_path: Path) -> None:
    path = tmp_path / "k.s"
    path.write_text(saxpy)
    with pytest.raises(UsageError, match="for HIP and CUDA source"):
        compiling.load(path, options=["-O2"])


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("#include <hip/hip_runtime.h>\n", "k", FileKind.HIP),
        ("import os\n__global__ void k();", "k.hip", FileKind.HIP),
        ("int main() {}", "k.cpp", FileKind.HIP),
        (".version 8.7\n.target sm_90a\n.address_size 64\n", "k", FileKind.PTX),
        ("\t.target\tsm_90a\n        /*0000*/   LDC R1, c[0x0][0x28] ;\n", "k", FileKind.SASS),
        ("s_endpgm\n", "k.s", FileKind.ASSEMBLY),
    ],
)
def test_the_kind_of_a_text(text: str, name: str, kind: FileKind) -> None:
    assert kind_of(text.encode(), Path(name)) is kind


def test_noise_never_escapes_the_error_tree(tmp_path: Path) -> None:
    heads = (b"", b"\x7fELF\2\1\1\x40", b"CCOB\3\0\1\0", b"__CLANG_OFFLOAD_BUNDLE__")
    for seed in range(40):
        path = tmp_path / f"noise{seed}"
        noise = bytes((i * i * (seed + 3) + 7 * i) % 251 for i in range(600))
        path.write_bytes(heads[seed % len(heads)] + noise)
        with pytest.raises(WavecastError):
            compiling.load(path)
