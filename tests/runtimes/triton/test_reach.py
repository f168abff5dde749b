"""What memory a launch may touch: words that hold the last bytes, and tensors behind pointers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from wavecast.compile.triton import Slot  # noqa: E402
from wavecast.emulate.errors import ExecutionError  # noqa: E402
from wavecast.runtimes.triton.reach import reachable  # noqa: E402

pytestmark = pytest.mark.torch
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


@triton.jit
def _scale_listed(addresses, sizes, count, BLOCK: tl.constexpr):
    """Doubles every vector of a list of addresses."""
    for number in range(count):
        pointer = tl.load(addresses + number).to(tl.pointer_type(tl.float32))
        offset = tl.arange(0, BLOCK)
        inside = offset < tl.load(sizes + number)
        tl.store(pointer + offset, 2 * tl.load(pointer + offset, mask=inside), mask=inside)


@triton.jit
def _add_one(x_ptr):
    tl.atomic_add(x_ptr, 1.0)


@triton.jit
def _copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offset = tl.arange(0, BLOCK)
    tl.store(out_ptr + offset, tl.load(x_ptr + offset))


@pytest.mark.parametrize("target", TARGETS)
def test_tensors_behind_a_list_of_pointers(target: str) -> None:
    tensors = [torch.randn(size) for size in (5, 64, 33)]
    wanted = [2 * tensor for tensor in tensors]
    addresses = torch.tensor([tensor.data_ptr() for tensor in tensors])
    sizes = torch.tensor([tensor.numel() for tensor in tensors], dtype=torch.int32)
    with wavecast.device(target):
        _scale_listed[(1,)](addresses, sizes, 3, BLOCK=64)
    for tensor, expected in zip(tensors, wanted, strict=True):
        assert torch.equal(tensor, expected)


def test_a_pointer_to_nothing_is_an_error() -> None:
    addresses = torch.tensor([64])
    sizes = torch.tensor([8], dtype=torch.int32)
    with (
        wavecast.device("gfx942"),
        pytest.raises(ExecutionError, match="address 0x40: a null pointer"),
    ):
        _scale_listed[(1,)](addresses, sizes, 1, BLOCK=64)


class _Bare:
    """Something with an address that is no tensor, as CUDA array wrappers are."""

    dtype = torch.float32

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()


def test_an_argument_that_only_has_an_address() -> None:
    x, out = torch.randn(64), torch.zeros(64)
    with wavecast.device("gfx942"):
        _copy[(1,)](_Bare(x), out, BLOCK=64)
    assert torch.equal(out, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", TARGETS)
def test_an_atomic_on_half_a_word(target: str, dtype: torch.dtype) -> None:
    """A storage of two bytes: the atomic goes through the word that holds them."""
    x = torch.full((1,), 2.5, dtype=dtype)
    with wavecast.device(target):
        _add_one[(1,)](x)
    assert x.item() == 3.5


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
def test_memory_is_in_the_order_of_the_arguments(order: tuple[int, ...]) -> None:
    """Predictions number arrays by it: host addresses differ from run to run."""
    tensors = sorted((torch.zeros(64) for _ in range(3)), key=lambda tensor: tensor.data_ptr())
    values = [tensors[number] for number in order]
    layout = [Slot((number,), "", "*fp32", 8 * number, 8) for number in range(3)]
    found = reachable("k", layout, values, everything=False)
    assert found == [(x.data_ptr(), x.data_ptr() + 256) for x in values]
    others = reachable("k", layout, values, everything=True)
    assert others[:3] == found
    sizes = [end - first for first, end in others[3:]]
    assert sizes == sorted(sizes)


def test_beyond_the_word_is_an_error() -> None:
    x, out = torch.zeros(60), torch.zeros(64)
    with (
        wavecast.device("gfx942"),
        pytest.raises(ExecutionError, match=r"touches \w+\[60\], outside"),
    ):
        _copy[(1,)](x, out, BLOCK=64)
