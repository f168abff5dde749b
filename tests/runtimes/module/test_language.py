"""Arguments of kernels as text: dtypes, shapes, contents, and what is no value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wavecast.errors import InputError, UsageError
from wavecast.runtimes.module.language import parse, to_numpy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4096", 4096),
        (" -3 ", -3),
        ("0x10", 16),
        ("1e-3", 1e-3),
        ("true", True),
        ("null", None),
        ("hex:00ff10", b"\0\xff\x10"),
        ("i16:-2", np.int16(-2)),
        ("f32:0.5", np.float32(0.5)),
    ],
)
def test_scalars(text: str, value) -> None:
    found = parse(text)
    assert type(found) is type(value)
    assert found == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[3]", np.zeros(3, "f4")),
        ("i64[2x3]:arange", np.arange(6).reshape(2, 3)),
        ("u8[2,2]:ones", np.ones((2, 2), "u1")),
        ("f64[2]:full(-1.5)", np.full(2, -1.5)),
        ("f16[2]:full(inf)", np.full(2, np.inf, "f2")),
        ("i32[4]:values(3, -1, 0x7f, 2)", np.array([3, -1, 127, 2], "i4")),
        ("bool[2]:values(1,0)", np.array([True, False])),
        ("f32[0]:random(1)", np.zeros(0, "f4")),
    ],
)
def test_arrays(text: str, value: np.ndarray) -> None:
    found = parse(text)
    assert found.dtype == value.dtype
    assert found.shape == value.shape
    assert (found == value).all()


def test_seeds_decide_random_numbers() -> None:
    for text in ("f32[1000]:random(3)", "i8[1000]:random(3)", "u16[1000]:uniform(3, 5, 9)"):
        one, again, other = parse(text), parse(text), parse(text.replace("(3", "(4"))
        assert (one == again).all()
        assert (one != other).any()
    assert abs(parse("f32[4000]:random(0)").mean()) < 0.1
    assert set(parse("i32[100]:uniform(0, -2, 1)").tolist()) == {-2, -1, 0}
    values = parse("f64[100]:uniform(0, 2, 2.5)")
    assert 2 <= values.min() < values.max() < 2.5
    assert set(parse("i8[10000]:random(0)").tolist()) == set(range(-128, 128))


@pytest.mark.torch
def test_types_numpy_has_none_for_are_tensors() -> None:
    torch = pytest.importorskip("torch")
    for name, dtype in (("bf16", torch.bfloat16), ("fp8e4m3fnuz", torch.float8_e4m3fnuz)):
        found = parse(f"{name}[2x2]:values(0, 1, -2.5, 300)")
        assert found.dtype == dtype
        assert to_numpy(found)[1, 0] == -2.5
        assert to_numpy(found).dtype == np.float32


def test_types_that_numpy_has_been_taught_are_tensors() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    assert parse("bf16[2]:zeros").dtype == torch.bfloat16


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4))
    assert (parse("x.npy", tmp_path) == np.arange(4)).all()
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY nothing more")
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    for name, says in (("y", "no such file"), ("bad", "not an array"), ("objects", "not an array")):
        with pytest.raises(InputError, match=says):
            parse(f"{name}.npy", tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a value"),
        ("four", "not a value"),
        ("f33[4]", "unknown dtype 'f33'.*f32"),
        ("f32[4]:aranje", "unknown content 'aranje'.*arange"),
        ("f32[]", "not a shape"),
        ("f32[-1]", "not a shape"),
        ("f32[4", "not a value"),
        ("f32[4]:full", r"full\(value\)"),
        ("f32[4]:zeros(1)", "is not zeros"),
        ("f32[4]:values(1)", "1 values for 4 elements"),
        ("i32[1]:full(1.5)", "holds integers"),
        ("i8[1]:full(128)", "int8 cannot hold"),
        ("u8:-1", "uint8 cannot hold"),
        ("i32[4]:uniform(0, 4, 4)", "no numbers between"),
        ("i32[4]:random(x)", "'x' is not a number"),
        ("i32[4]:random(-1)", "not a seed"),
        ("i32[4]:random(0.5)", "not a seed"),
        ("hex:123", "hex digits"),
        ("f32[1000000000000000]", "of memory"),
        ("f32[1000000000000x1000000000000]", "of memory"),
    ],
)
def test_what_is_no_value(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(text)
