"""Mistakes planted in Triton kernels that machine code alone does not show; each with its twin."""

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from tests.targets import swept  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.reports import Kind  # noqa: E402

pytestmark = pytest.mark.torch
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")


@triton.jit
def maximum(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    if OTHER:
        v = tl.load(x + offs, mask=offs < n, other=float("-inf"))
    else:
        v = tl.load(x + offs, mask=offs < n)
    tl.store(out, tl.max(v, axis=0))


@triton.jit
def rows(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs[:, None] < n
    v = tl.load(x + offs[:, None] * BLOCK + offs[None, :], mask=mask)
    tl.store(out + offs, tl.sum(v, axis=1), mask=offs < n)


@triton.jit
def chosen(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs, mask=offs < n)
    tl.store(out, tl.max(tl.where(offs < n, v, float("-inf")), axis=0))


@triton.jit
def halo(x, out, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    left = tl.load(x + offs - 1, mask=mask & (offs >= FIRST), other=0.0)
    tl.store(out + offs, left, mask=mask)


@triton.jit
def reinterpreted(x, out, AS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs).to(AS, bitcast=True).to(tl.float32))


@triton.jit
def divided(a, b, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(a + offs) // tl.load(b + offs))


@pytest.fixture(scope="module", params=swept(TARGETS))
def target(request):
    return request.param


def errors(target, launch):
    reports = Reports()
    with wavecast.device(target, check=reports, threads=1):
        launch()
    return reports.errors


def test_elements_that_a_load_masks_off(target):
    x, out = torch.rand(128), torch.zeros(1)
    assert errors(target, lambda: maximum[(1,)](x, out, 100, True, 128)) == []
    (report,) = errors(target, lambda: maximum[(1,)](x, out, 100, False, 128))
    assert report.kind is Kind.MASKED_ELEMENT
    assert report.location.outermost.line == maximum.starting_line_number + 6
    assert report.other_location.outermost.line == maximum.starting_line_number + 7


def test_elements_that_are_masked_again(target):
    x, out = torch.rand(32, 32), torch.zeros(32)
    assert errors(target, lambda: rows[(1,)](x, out, 20, 32)) == []
    assert errors(target, lambda: chosen[(1,)](x, out, 20, 32)) == []


def test_an_element_before_the_first(target):
    x, out = torch.rand(200), torch.zeros(200)
    assert errors(target, lambda: halo[(2,)](x, out, 200, 1, 128)) == []
    (report,) = errors(target, lambda: halo[(2,)](x, out, 200, 0, 128))
    assert report.kind is Kind.OUT_OF_BOUNDS
    assert report.message.startswith("touches x[-1], outside x (200 elements)")


def test_bytes_of_another_8_bit_format():
    x, out = torch.rand(128).to(torch.float8_e4m3fnuz), torch.zeros(128)
    same = lambda: reinterpreted[(1,)](x, out, tl.float8e4b8, 128)  # noqa: E731
    other = lambda: reinterpreted[(1,)](x, out, tl.float8e4nv, 128)  # noqa: E731
    assert errors("gfx942", same) == []
    (report,) = errors("gfx942", other)
    assert report.kind is Kind.FP8_FORMAT
    assert "takes the bytes of float8_e4m3fnuz for float8_e4m3fn" in report.message


def test_an_integer_division_by_zero(target):
    a, out = torch.arange(128, dtype=torch.int32), torch.zeros(128, dtype=torch.int32)
    assert errors(target, lambda: divided[(1,)](a, a % 3 + 1, out, 128)) == []
    (report,) = errors(target, lambda: divided[(1,)](a, a % 3, out, 128))
    assert report.kind is Kind.INTEGER_DIVISION_BY_ZERO


@triton.jit
def largest(x, index, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(x + offs, mask=mask, other=0.0)
    tl.atomic_max(out + tl.load(index + offs, mask=mask, other=0), v, mask=mask)


def test_exchanges_that_the_compiler_writes_are_clean() -> None:
    """Triton combines the lanes of one address before the atomic operation."""
    x, index, out = torch.rand(600), torch.arange(600, dtype=torch.int32) % 16, torch.zeros(16)
    with wavecast.device("gfx942", check=True):
        kernel = largest[(3,)](x, index, out, 600, BLOCK=256)
    assert "ds_bpermute" in kernel.asm["amdgcn"]
    assert (out == torch.zeros(16).scatter_reduce_(0, index.long(), x, "amax")).all()


@triton.jit(do_not_specialize=["apart"])
def reports_its_turn(x, out, apart):
    number = tl.program_id(0)
    tl.device_print("before", number)
    tl.store(out + number * apart, number)
    tl.device_print("after", tl.load(x))


def test_a_race_of_a_kernel_that_prints(capfd):
    """The buffer of messages belongs to the runtime: no race of its own, and no order of others."""
    x, out = torch.ones(1), torch.zeros(4, dtype=torch.int32)
    assert errors("gfx1100", lambda: reports_its_turn[(4,)](x, out, 1, num_warps=1)) == []
    assert out.tolist() == [0, 1, 2, 3]
    reports = errors("gfx1100", lambda: reports_its_turn[(4,)](x, out, 0, num_warps=1))
    assert {report.kind for report in reports} == {Kind.WORKGROUP_RACE}
    lines = {report.location.outermost.line for report in reports}
    assert lines == {reports_its_turn.starting_line_number + 4}
    assert capfd.readouterr().out.count("after") == 2 * 4 * 32
