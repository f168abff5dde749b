"""Matrix products beyond the cases of their descriptions: every way to cut the work, odd strides,
empty tensors, bad arguments."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.targets import thorough_beyond  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.compile.configuration import Configuration  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.frameworks.torch.verify import difference, verify  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.gemm import matmul, scaled  # noqa: E402
from wavecast.kernels.operator import Tolerance  # noqa: E402
from wavecast.runtimes.triton import capture, device  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = Tolerance(ulps=1.0, accumulated=4e-6)


def cut(**changed: int) -> Configuration:
    """A small tile, with changes."""
    usual = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "SPLIT_K": 1, "PROGRAMS": 0, "TMA": 0}
    return Configuration.of({**usual, "GROUP": 2, "num_warps": 2, "num_stages": 2, **changed})


@pytest.mark.parametrize(
    ("changed", "target"),
    [
        ({"SPLIT_K": 4}, "gfx942"),
        pytest.param({"SPLIT_K": 8}, "gfx1100", marks=pytest.mark.thorough),
        pytest.param({"PROGRAMS": 4}, "gfx942", marks=pytest.mark.thorough),
        ({"PROGRAMS": 7}, "gfx1201"),
        ({"PROGRAMS": 5}, "gfx90a"),
        ({"PROGRAMS": 64}, "gfx950"),
        pytest.param({"PROGRAMS": 40}, "gfx942", marks=pytest.mark.thorough),
    ],
)
def test_every_way_to_cut_the_work(changed: dict[str, int], target: str) -> None:
    """3 x 5 tiles of 7 steps: whole rounds with a rest, none, one, fewer tiles than programs."""
    operator = matmul.MATMUL
    sizes = {"m": 70, "n": 150, "k": 200, "dtype": "bfloat16", "bias": True, "activation": "relu"}
    with choice.forced("matmul_kernel", cut(**changed)):
        verdict = verify(operator, sizes, target, check=True)
    assert not verdict.problems, "\n".join(verdict.problems)
    kernels = {decision.spec.name for decision in verdict.decisions}
    second = "matmul_sum_kernel" if "SPLIT_K" in changed else "matmul_rest_kernel"
    assert kernels == (
        {"matmul_kernel"} if changed == {"PROGRAMS": 5} else {"matmul_kernel", second}
    )


TILES = [
    ({"BLOCK_N": 48}, "NT"),
    ({"BLOCK_N": 112}, "NN"),
    ({"BLOCK_N": 48, "SPLIT_K": 2}, "NN"),
    ({"BLOCK_N": 48, "BLOCK_K": 16}, "TN"),
]


@pytest.mark.parametrize(
    ("changed", "layout", "target"),
    thorough_beyond(
        [(*TILES[0], "gfx1201"), *((*tile, "gfx942") for tile in TILES[1:])],
        [(*tile, target) for target in ("gfx942", "gfx950", "gfx1201") for tile in TILES],
    ),
)
def test_tiles_of_several_sums(changed: dict[str, int], layout: str, target: str) -> None:
    """Columns that are no power of two, and one of them at the end that is not whole."""
    operator = matmul.MATMUL
    sizes = {"m": 40, "n": 144 if layout == "TN" else 150, "k": 96, "dtype": "bfloat16"}
    with choice.forced("matmul_kernel", cut(**changed)):
        verdict = verify(
            operator,
            {**sizes, "layout": layout, "bias": True, "residual": True},
            target,
            check=True,
        )
    assert verdict.right, "\n".join(verdict.problems)


@pytest.mark.parametrize("changed", [{"SPLIT_K": 2}, {"PROGRAMS": 4}])
def test_integers_cut_in_parts_stay_exact(changed: dict[str, int]) -> None:
    operator = matmul.MATMUL
    sizes = {"m": 33, "n": 80, "k": 160, "dtype": "int8"}
    with choice.forced("matmul_kernel", cut(**changed)):
        assert verify(operator, sizes, "gfx942").right


def test_any_strides() -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(2, 40, 3, 50, generator=generator).to(torch.bfloat16)[:, ::2, 1, 3:43]
    b = torch.randn(60, 90, generator=generator).to(torch.bfloat16)[10:50, ::2]
    gate = torch.randn(45, 20, 2, generator=generator).to(torch.bfloat16).permute(2, 1, 0)
    with device("gfx942"):
        got = matmul.matmul(a, b, gate=gate)
    expected = matmul.matmul_reference(a.double(), b.double(), gate=gate.double())
    assert got.is_contiguous()
    assert got.shape == (2, 20, 45)
    assert not difference(got, expected, CLOSE)


def test_a_vector_is_a_row() -> None:
    a, b = torch.randn(48), torch.randn(48, 20)
    with device("gfx1100"):
        got = matmul.matmul(a, b)
    assert got.shape == (20,)
    assert not difference(got, a.double() @ b.double(), CLOSE)


def test_empty_tensors() -> None:
    with device("gfx942"):
        assert matmul.matmul(torch.ones(0, 8), torch.ones(8, 3)).shape == (0, 3)
        assert matmul.matmul(torch.ones(2, 8), torch.ones(8, 0)).shape == (2, 0)
        got = matmul.matmul(torch.ones(2, 0), torch.ones(0, 3), bias=torch.full((3,), 2.0))
        assert torch.equal(got, torch.full((2, 3), 2.0))
        got = matmul.batched_matmul(torch.ones(2, 4, 0), torch.ones(1, 0, 3))
        assert torch.equal(got, torch.zeros(2, 4, 3))


def test_large_results_saturate() -> None:
    a = torch.full((4, 64), 448.0).to(torch.float8_e4m3fn)
    b = torch.full((64, 16), 448.0).to(torch.float8_e4m3fn)
    one = torch.ones(1)
    with device("gfx950"):
        got = scaled.scaled_matmul(
            a, b, one, one, out_dtype=torch.float8_e4m3fn, out_scale=torch.ones(1)
        )
    assert torch.equal(got.float(), torch.full((4, 16), 448.0))


KINDS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz]


@pytest.mark.parametrize(
    ("kind", "target"),
    thorough_beyond(
        [*((kind, "gfx942") for kind in KINDS), (KINDS[0], "gfx1100"), (KINDS[0], "gfx1201"),
         (KINDS[2], "gfx90a")],
        [(kind, target) for target in ("gfx90a", "gfx942", "gfx1100", "gfx1201") for kind in KINDS],
    ),
)  # fmt: skip
def test_every_code_of_8_bits_counts(kind: torch.dtype, target: str) -> None:
    """NaN, infinities, negative zero and denormals, also where they are converted by arithmetic."""
    codes = torch.arange(256, dtype=torch.uint8).view(kind)[:, None]
    one = torch.ones(1)
    with device(target):
        got = scaled.scaled_matmul(codes, one[None].to(kind), one, one, out_dtype=torch.float32)
    torch.testing.assert_close(got, codes.float(), rtol=0, atol=0, equal_nan=True)


def test_gradients_of_every_argument_on_machine_code() -> None:
    from wavecast import ops

    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).requires_grad_()

    given = {"a": draw(2, 9, 24), "b": draw(24, 17), "bias": draw(17)}
    given |= {"residual": draw(2, 9, 17), "gate": draw(2, 9, 17)}
    dy = torch.randn(2, 9, 17, generator=generator)
    with device("gfx942"):
        ops.matmul(**given, activation="gelu").backward(dy)
    wide = {name: t.detach().double().requires_grad_() for name, t in given.items()}
    matmul.matmul_reference(**wide, activation="gelu").backward(dy.double())
    for name, tensor in given.items():
        assert tensor.grad is not None
        wanted = wide[name].grad
        assert wanted is not None
        assert not difference(tensor.grad, wanted, Tolerance(ulps=2.0, accumulated=1e-5)), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(2, 3), torch.ones(4, 5)), "b is 4x5, expected 3x"),
        ((torch.ones(2, 3), torch.ones(3, 5).half()), "b is float16; it takes float32"),
        ((torch.ones(2, 3).double(), torch.ones(3, 5)), "a is float64"),
        ((torch.ones(2, 3), torch.ones(3, 5), torch.ones(4)), "bias is 4, expected 5"),
        ((torch.ones(2, 3), torch.ones(3, 5), None, torch.ones(5)), "residual is 5, expected 2x5"),
        ((torch.ones(2, 3), torch.ones(3, 5), None, None, None, "tanh"), "activation is 'tanh'"),
        (
            (torch.ones(2, 3), torch.ones(3, 5), None, None, None, "none", None, "tf64"),
            "precision is 'tf64'",
        ),
        (
            (torch.ones(2, 3), torch.ones(3, 5), None, None, None, "none", torch.int32),
            "no result of torch.int32",
        ),
    ],
)
def test_bad_arguments_of_matmul(arguments: tuple, message: str) -> None:
    with device("gfx942"), pytest.raises(ArgumentError, match=message):
        matmul.matmul(*arguments)


def test_bad_arguments_of_the_others() -> None:
    eight = torch.ones(4, 32).to(torch.float8_e4m3fn)
    one = torch.ones(1)
    with device("gfx942"):
        with pytest.raises(ArgumentError, match="a batch of 2, b one of 3"):
            matmul.batched_matmul(torch.ones(2, 4, 8), torch.ones(3, 8, 4))
        with pytest.raises(ArgumentError, match=r"a is 4x8, expected \?x\?x\?"):
            matmul.batched_matmul(torch.ones(4, 8), torch.ones(8, 4))
        with pytest.raises(ArgumentError, match="scale_a has 3 elements; it takes 1 or 4"):
            scaled.scaled_matmul(eight, eight.t(), torch.ones(3), one)
        with pytest.raises(ArgumentError, match="b is float8_e4m3fnuz"):
            scaled.scaled_matmul(eight, eight.float().to(torch.float8_e4m3fnuz).t(), one, one)
        with pytest.raises(ArgumentError, match="out_scale goes with an 8-bit out_dtype"):
            scaled.scaled_matmul(eight, eight.t(), one, one, out_scale=one)


def test_a_row_is_not_exchanged_between_lanes() -> None:
    """A row of A has the layout of the columns of B; lanes exchange sums alone, after the loop."""
    with capture("gfx942") as launches:
        ops.matmul(torch.empty(1, 2048).bfloat16(), torch.empty(4096, 2048).bfloat16().t())
    (launch,) = launches
    assert launch.code.kernel == "matmul_vector_kernel"
    assert launch.code.assembly.count("ds_bpermute") <= 2  # of 26
