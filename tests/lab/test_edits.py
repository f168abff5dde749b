"""Changes of LLVM IR."""

from __future__ import annotations

import pytest

from wavecast.errors import CompileError
from wavecast.lab.edits import with_groups, with_iglp

IR = """define amdgpu_kernel void @k() {
  br label %loop
loop:                                             ; preds = %0
  %a = tail call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %x)
  %b = tail call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %y)
  %c = tail call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %z)
  br i1 %p, label %loop, label %end

end:
  ret void
}

declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>)
"""


def test_iglp_is_put_before_the_end_of_matrix_blocks() -> None:
    lines = with_iglp(IR, 2).splitlines()
    (at,) = (n for n, line in enumerate(lines) if "call void @llvm.amdgcn.iglp.opt(i32 2)" in line)
    assert lines[at + 1].startswith("  br i1 %p")
    assert "declare void @llvm.amdgcn.iglp.opt(i32 immarg)" in lines


def test_groups_cover_every_matrix_instruction() -> None:
    text = with_groups(IR, "1 lds_read 2 matrix")
    assert text.count("group.barrier(i32 8, i32 2, i32 0)") == 2
    assert text.count("group.barrier(i32 256, i32 1, i32 0)") == 2


def test_code_without_matrix_instructions_is_refused() -> None:
    with pytest.raises(CompileError, match="no block with matrix"):
        with_iglp(IR.replace("mfma", "fma"), 0)
    with pytest.raises(ValueError, match="no group of matrix"):
        with_groups(IR, "1 lds_read")
