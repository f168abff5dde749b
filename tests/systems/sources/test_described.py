"""Models in YAML files: what they say, and every mistake by its field."""

from __future__ import annotations

import pytest

from wavecast.arch.systems import system
from wavecast.errors import InputError
from wavecast.systems.sources.answer import answer
from wavecast.systems.sources.described import read_description

GOOD = """
name: block
dtype: bf16
parameters: 16777216
kernels:
  - {op: gemm, shape: 512x512x512, module: up, times: 3, set: {bias: true}}
  - {op: attention, shape: 4x16x1024x64, set: {causal: true}, phase: backward}
  - {op: bytes, read: 1.0e+9, written: 0, module: mine}
"""


def test_kernels_are_predicted_as_the_command_line_does(tmp_path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(GOOD)
    model = read_description(path)
    assert [str(kernel.part.op) for kernel in model.kernels[:3]] == ["gemm 512x512x512 bf16"] * 3
    found = answer(model, system("mi300x"), "compile")
    assert list(found.by_module) == ["mine", "", "up"]
    assert set(found.by_phase) == {"forward", "backward"}
    assert found.notes == ("mine: only a bound, because no predictor knows mine, FLOPs unknown",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "is not a mapping"),
        ("a: [", "is not YAML"),
        ("name: x", "no field kernels"),
        ("kernels: []", "kernels is empty"),
        ("kernel: []", "unknown field 'kernel'"),
        ("kernels: [3]", "kernel 1 is a int"),
        ("kernels: [{shape: 4x4x4}]", "kernel 1: no field op"),
        ("kernels: [{op: gem}]", "kernel 1: unknown op 'gem'"),
        ("kernels: [{op: gemm, dtype: bf16}]", "kernel 1: no field shape"),
        ("kernels: [{op: gemm, shape: 4x4, dtype: bf16}]", "kernel 1: gemm: no shape"),
        ("kernels: [{op: gemm, shape: 4x4x4}]", "kernel 1: gemm needs --dtype"),
        ("kernels: [{op: gemm, shape: 4x4x4, times: two}]", "times is 'two', not a int"),
        ("kernels: [{op: bytes, read: 1}]", "kernel 1: no field written"),
        ("kernels: [{op: bytes, read: -1, written: 0}]", "read must be from 0 to 1e\\+30, not -1"),
        ("kernels: [{op: bytes, read: .nan, written: 0}]", "read must be from 0"),
        ("kernels: [{op: bytes, read: 1, written: .inf}]", "written must be from 0"),
        (f"kernels: [{{op: bytes, read: 1, written: 1, flops: {'9' * 400}}}]", "flops must be"),
        ("parameters: -1\nkernels: [{op: bytes, read: 1, written: 0}]", "parameters must be"),
        (f"parameters: {'9' * 5000}", "is not YAML"),
        ("parameters: 0x_", "is not YAML"),
        ("name: 2020-13-45", "is not YAML"),
        ("a: " + "[" * 2000, "is not YAML"),
        ("kernels: [{op: bytes, read: 1, written: 0, phase: late}]", "phase is 'late'"),
        ("kernels: [{op: bytes, read: 1, written: 0, times: 0}]", "times is 0"),
        ("kernels: [!!python/object/apply:os.getcwd []]", "is not YAML"),
    ],
)
def test_a_mistake_is_named(text, message, tmp_path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_description(path)
    assert "\n" not in str(caught.value)


LEVELS = "[" + ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)) + "]"
BOMB = f"[&a0 [1], {LEVELS}]"
"""A list with 10^9 elements, by aliases."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"name: {BOMB}", r"name is \[\[1\], .*, not a str"),
        (f"kernels: [{{op: gemm, shape: 4x4x4, set: {{bias: {BOMB}}}}}]", "not a number or text"),
        (f"? {BOMB}\n: 1", "is not YAML"),
    ],
)
def test_values_made_of_aliases_are_not_written_out(text, message, tmp_path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_description(path)
    assert len(str(caught.value)) < 500
