"""Source lines: inlined code counts for its call site, and under its own line apart."""

from __future__ import annotations

from tests.analyze.support import read

BODY = """
	.file 1 "/src" "kernel.py"
	.file 2 "/lib" "helper.py"
	.loc 1 10 3
	v_add_f32_e32 v0, v1, v2
	.loc 2 5 1 ; helper.py:5:1 @[ kernel.py:12:4 ]
	v_exp_f32_e32 v0, v0
	v_mul_f32_e32 v0, v0, v3
	.loc 1 12 4
	v_add_f32_e32 v0, v0, v3
"""


def test_lines_of_the_kernel_hold_what_was_inlined_there() -> None:
    found = {(line.file, line.line): line.instructions for line in read(BODY).lines}
    assert found[("/src/kernel.py", 10)] == {"valu": 1}
    assert found[("/src/kernel.py", 12)]["trans"] == 1
    assert found[("/src/kernel.py", 12)]["valu"] == 2


def test_inlined_lines_stand_apart() -> None:
    inlined = read(BODY).inlined_lines
    assert [(line.file, line.line, line.instructions) for line in inlined] == [
        ("/lib/helper.py", 5, {"valu": 1, "trans": 1})
    ]


def test_lines_add_up_to_the_kernel() -> None:
    found = read(BODY)
    total = sum(sum(line.instructions.values()) for line in found.lines)
    assert total == sum(found.instructions.values())
