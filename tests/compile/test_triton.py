"""What `code_object` reads out of a compiled kernel, with kernels Triton compiles here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wavecast.compile import triton as reading
from wavecast.errors import CompileError

pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@triton.jit
def scale(x_ptr, shift, factor, n, BLOCK: triton.language.constexpr):
    offset = triton.language.arange(0, BLOCK)
    inside = offset < n
    value = triton.language.load(x_ptr + offset, mask=inside) * factor + shift
    triton.language.store(x_ptr + offset, value, mask=inside)


SIGNATURE = {"x_ptr": "*fp32", "shift": "i64", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}


def compiled(backend: str, name: str | int, lanes: int):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(scale, SIGNATURE, {"BLOCK": 64}, {(0,): [["tt.divisibility", 16]]})
    target = GPUTarget(backend, name, lanes)
    return triton.compile(source, target=target, options={"num_warps": 2})


@pytest.mark.parametrize(
    ("backend", "name", "lanes", "target", "stages"),
    [
        ("hip", "gfx942", 64, "gfx942", {"ttir", "ttgir", "llir", "amdgcn", "hsaco"}),
        ("hip", "gfx1201", 32, "gfx1201", {"ttir", "ttgir", "llir", "amdgcn", "hsaco"}),
        ("cuda", 90, 32, "sm_90", {"ttir", "ttgir", "llir", "ptx", "cubin"}),
    ],
)
def test_code_object_of_each_backend(backend, name, lanes, target, stages):
    code = reading.code_object(compiled(backend, name, lanes), "3.x")
    assert (code.kernel, code.target, code.origin) == ("scale", target, "triton")
    assert stages <= set(code.stages)
    assert code.workgroup_size == 2 * lanes
    assert code.options["num_warps"] == 2
    assert code.source == __file__
    assert "def scale(" in code.source_text
    assert code.source_text.splitlines()[0] == "@triton.jit"
    first, shift, factor, n, block = code.parameters
    assert (first.type, first.offset, first.size) == ("*fp32", 0, 8)
    assert first.attributes == ("divisibility=16",)
    assert [(item.offset, item.size) for item in (shift, factor, n)] == [(8, 8), (16, 4), (20, 4)]
    assert (block.offset, block.size, block.constant) == (None, None, 64)


def test_equal_code_has_equal_digests_and_other_targets_have_others():
    same = [reading.code_object(compiled("hip", "gfx942", 64), "3.x") for _ in range(2)]
    other = reading.code_object(compiled("hip", "gfx950", 64), "3.x")
    assert same[0].digest == same[1].digest != other.digest


def test_descriptors_expand_as_the_target_passes_them(monkeypatch):
    kind = "tensordesc<fp16[16,32]>"
    opaque = [part for part, _ in reading._descriptor_parts(kind, True)]
    assert opaque == ["descriptor", "shape.0", "shape.1", "stride.0", "stride.1"]
    spread = list(reading._descriptor_parts(kind, False))
    assert spread[0] == ("base", "*fp16")
    assert spread[1:5] == [
        (f"{name}.{axis}", "i64") for name in ("shape", "stride") for axis in (0, 1)
    ]
    assert spread[-4:] == [
        *((f"shape.{axis}", "i32") for axis in (0, 1)),
        *((f"stride.{axis}", "i64") for axis in (0, 1)),
    ]


def test_nested_tuples_are_leaves_in_order():
    signature = {"a": "i32", "b": ("*fp32", ("i64", "constexpr")), "c": "fp32"}
    assert list(reading.leaves(signature)) == [
        ((0,), "i32"),
        ((1, 0), "*fp32"),
        ((1, 1, 0), "i64"),
        ((1, 1, 1), "constexpr"),
        ((2,), "fp32"),
    ]


def test_a_signature_the_code_does_not_have_is_an_error():
    kernel = compiled("hip", "gfx942", 64)
    longer = {**{f"more{i}": "i64" for i in range(9)}, **SIGNATURE}
    wrong = SimpleNamespace(
        name=kernel.name,
        asm=kernel.asm,
        metadata=kernel.metadata,
        src=SimpleNamespace(signature=longer),
    )
    with pytest.raises(CompileError, match="takes 6 arguments"):
        reading.slots(wrong)
