"""8-bit floats in tensors of bytes, between launches of Triton kernels."""

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.reports import Kind  # noqa: E402

pytestmark = pytest.mark.torch
OCP, FNUZ = tl.float8e4nv, tl.float8e4b8


@triton.jit
def quantise(x, out, AS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    value = tl.load(x + offs).to(AS)
    tl.store(out + offs, value.to(tl.uint8, bitcast=True))


@triton.jit
def dequantise(bytes_, out, AS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    value = tl.load(bytes_ + offs)
    if value.dtype == tl.uint8:
        value = value.to(AS, bitcast=True)
    tl.store(out + offs, value.to(tl.float32) * 2)


@triton.jit
def numbers(bytes_, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(bytes_ + offs).to(tl.float32))


def session(steps) -> list:
    """The 8-bit format reports of some launches; `steps` gets floats, bytes and a result."""
    reports = Reports()
    torch.manual_seed(3)
    with wavecast.device("gfx942", check=reports):
        floats = torch.randn(512, device="cuda")
        bytes_ = torch.zeros(512, dtype=torch.uint8, device="cuda")
        steps(floats, bytes_, torch.zeros(512, device="cuda"))
    assert {report.kind for report in reports} <= {Kind.FP8_FORMAT}
    return list(reports)


def read_as(change, reader=FNUZ):
    def steps(floats, bytes_, out):
        quantise[(1,)](floats, bytes_, OCP, 512)
        found = change(floats, bytes_)
        size = min(512, 1 << found.numel().bit_length() - 1)
        dequantise[(1,)](found, out, reader, size)

    return steps


def test_the_other_variant_is_reported():
    (report,) = session(read_as(lambda _, bytes_: bytes_))
    assert report.location is not None
    assert report.location.line == dequantise.starting_line_number + 3
    assert "reads bytes_ as float8_e4m3fnuz, and quantise stored its bytes" in report.message


@pytest.mark.parametrize(
    "change",
    [
        lambda _, bytes_: bytes_.clone(),
        lambda _, bytes_: bytes_[100:].clone(),
        lambda _, bytes_: bytes_.view(2, 256)[1],
        lambda _, bytes_: bytes_.view(torch.float8_e4m3fnuz),
        lambda _, bytes_: torch.cat([bytes_, bytes_]),
        lambda _, bytes_: bytes_.view(16, 32).t().contiguous(),
        lambda _, bytes_: bytes_.view(16, 32).t().contiguous().view(-1),
        lambda _, bytes_: bytes_.flip(0),
    ],
    ids=["clone", "part", "view", "dtype", "cat", "transpose", "flattened", "flip"],
)
def test_copies_and_views_keep_the_variant(change):
    assert session(read_as(change))


def written_as_fnuz(floats, bytes_):
    return bytes_.copy_(floats.to(torch.float8_e4m3fnuz).view(torch.uint8))


def test_right_programs_are_clean():
    assert not session(read_as(lambda _, bytes_: bytes_, OCP))
    assert not session(read_as(written_as_fnuz))
    assert not session(read_as(lambda _, bytes_: bytes_.zero_()))

    def twice(floats, bytes_, out):
        quantise[(1,)](floats, bytes_, OCP, 512)
        numbers[(1,)](bytes_, out, 512)
        quantise[(1,)](floats, bytes_, FNUZ, 512)
        dequantise[(1,)](bytes_, out, FNUZ, 512)

    assert not session(twice)
