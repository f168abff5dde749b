"""2:4 sparse products beyond the cases of their description: pruning and compression as PyTorch
does them, every way to cut the work, gradients, refusals, and layers with PyTorch's sparse weights.
"""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch.ao.pruning import WeightNormSparsifier  # noqa: E402
from torch.sparse._semi_structured_conversions import (  # noqa: E402
    sparse_semi_structured_from_dense_cutlass,
    sparse_semi_structured_to_dense_cutlass,
)

from tests.kernels import sparse_libraries, sparse_speedups  # noqa: E402
from tests.targets import swept  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.analyze.values.banks import conflict_ways, phases  # noqa: E402
from wavecast.arch import resolve  # noqa: E402
from wavecast.compile.configuration import Configuration  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.frameworks.torch.verify import difference, verify  # noqa: E402
from wavecast.kernels import checks, choice  # noqa: E402
from wavecast.kernels.operator import Tolerance  # noqa: E402
from wavecast.kernels.sparse.instructions import A_WORDS, B_WORDS, library, sparse_product  # noqa: E402
from wavecast.kernels.sparse.kernel import matmul_sparse24_kernel  # noqa: E402
from wavecast.kernels.sparse.swizzle import row_swizzle  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402
from wavecast.runtimes.triton import capture, device  # noqa: E402

pytestmark = pytest.mark.torch
TARGETS = ("gfx942", "gfx950", "gfx1201", "gfx1250")
OPERATOR = ops.operator("matmul_sparse24")


def pruned_by_pytorch(weight: torch.Tensor) -> torch.Tensor:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = weight.clone()
    model = torch.nn.Sequential(layer)
    options = {"sparsity_level": 1.0, "sparse_block_shape": (1, 4), "zeros_per_block": 2}
    sparsifier = WeightNormSparsifier(**options)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    sparsifier.squash_mask()
    return layer.weight.data


def expanded_by_hand(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Word by word, in Python."""
    rows, kept = values.shape
    dense = torch.zeros(rows, 2 * kept, dtype=values.dtype)
    for row, group, number in itertools.product(range(rows), range(kept // 2), range(2)):
        word = int(index[group // 8, row]) & 0xFFFFFFFF
        position = word >> (4 * (group % 8) + 2 * number) & 3
        dense[row, 4 * group + position] = values[row, 2 * group + number]
    return dense


def sparse_weight(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return ops.prune_sparse24(torch.randn(rows, columns, generator=generator)).bfloat16()


def test_pruning_is_that_of_pytorch_with_its_ties() -> None:
    torch.manual_seed(0)
    for weight in (torch.randn(16, 128), torch.randint(-2, 3, (64, 128)).float()):
        assert torch.equal(ops.prune_sparse24(weight), pruned_by_pytorch(weight))
    odd = torch.tensor([[float("nan"), 1.0, -3.0, 2.0]])
    assert ops.prune_sparse24(odd)[0, 1:].tolist() == [0.0, -3.0, 0.0]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_compression_is_that_of_pytorch(share: float, dtype: torch.dtype) -> None:
    """Also of groups with fewer than two elements, whose index is PyTorch's choice."""
    generator = torch.Generator().manual_seed(1)
    weight = sparse_weight(32, 128).to(dtype)
    weight[torch.rand(weight.shape, generator=generator) < share] = 0
    values, index = ops.compress_sparse24(weight)
    packed, meta = sparse_semi_structured_from_dense_cutlass(weight)
    assert torch.equal(values, packed)
    assert torch.equal(sparse_semi_structured_to_dense_cutlass(packed, meta), weight)
    assert torch.equal(expanded_by_hand(values, index), weight)
    assert torch.equal(ops.expand_sparse24(values, index), weight)


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.float8_e4m3fn, torch.float8_e5m2fnuz, torch.float64]
)
def test_compression_of_other_dtypes(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    dense = (torch.randn(16, 64, generator=generator) * 20).to(dtype)
    weight = ops.prune_sparse24(dense)
    values, index = ops.compress_sparse24(weight)
    assert values.dtype == dtype
    assert torch.equal(ops.expand_sparse24(values, index).double(), weight.double())


def test_gradients_of_pruning_and_of_expansion() -> None:
    weight = torch.randn(8, 32, dtype=torch.float64, requires_grad=True)
    pruned = ops.prune_sparse24(weight)
    pruned.sum().backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad != 0, pruned != 0)
    values, index = ops.compress_sparse24(pruned.detach())
    grad = torch.randn(8, 32, dtype=torch.float64)
    ops.expand_sparse24(values.requires_grad_(), index).backward(grad)
    assert torch.equal(values.grad, ops.compress_sparse24(grad * (pruned != 0))[0])


def test_the_gradient_of_compression_is_that_of_what_is_kept() -> None:
    weight = torch.randn(8, 32, dtype=torch.float64, requires_grad=True)
    values, index = ops.compress_sparse24(ops.prune_sparse24(weight))
    grad = torch.randn(8, 16, dtype=torch.float64)
    values.backward(grad)
    assert torch.equal(weight.grad, ops.expand_sparse24(grad, index))


def test_gradients_on_machine_code() -> None:
    weight = sparse_weight(48, 64)
    values, index = ops.compress_sparse24(weight)
    torch.manual_seed(3)
    x = torch.randn(2, 10, 64).bfloat16().requires_grad_()
    values = values.requires_grad_()
    bias = torch.randn(48).bfloat16().requires_grad_()
    dy = torch.randn(2, 10, 48).bfloat16()
    with device("gfx942"), choice.record_decisions() as decisions:
        ops.matmul_sparse24(x, values, index, bias).backward(dy)
    assert {d.spec.name for d in decisions} >= {"matmul_sparse24_kernel", "matmul_kernel"}
    wide = dy.double().reshape(-1, 48)
    dense = wide.T @ x.detach().double().reshape(-1, 64)
    close = Tolerance(ulps=2.0, accumulated=4e-6)
    assert not difference(x.grad, (dy.double() @ weight.double()), close)
    kept = expanded_by_hand(torch.ones_like(values), index) != 0
    got = expanded_by_hand(values.grad, index)
    assert not difference(got[kept], dense[kept], close)
    assert not difference(bias.grad, wide.sum(0), close)


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize(
    "cut",
    [
        {"BLOCK_M": 32, "BLOCK_N": 64, "WAVES_M": 1, "SPLIT_K": 3, "num_warps": 2},
        {"BLOCK_M": 64, "BLOCK_N": 32, "WAVES_M": 2, "SPLIT_K": 1, "num_warps": 2},
        {"BLOCK_M": 64, "BLOCK_N": 64, "WAVES_M": 2, "SPLIT_K": 2, "num_warps": 8},
    ],
    ids=["split", "columns", "waves"],
)
def test_every_way_to_cut_the_work(cut: dict[str, int], target: str) -> None:
    """Several tiles, ragged on all sides, of bfloat16 and of int8."""
    configuration = Configuration.of({**cut, "GROUP": 2, "num_stages": 1})
    for dtype, k in (("bfloat16", 544), ("int8", 1088)):
        sizes = {"m": 70, "n": 150, "k": k, "dtype": dtype, "bias": True}
        with choice.forced("matmul_sparse24_kernel", configuration):
            verdict = verify(OPERATOR, sizes, target, check=True)
        assert not verdict.problems, "\n".join(verdict.problems)


@pytest.mark.parametrize("splits", [1, 2])
def test_offsets_of_64_bits(splits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for results of more than 2^31 elements."""
    monkeypatch.setattr(checks, "wide", lambda *_: True)
    cut = {"BLOCK_M": 32, "BLOCK_N": 64, "WAVES_M": 1, "SPLIT_K": splits, "num_warps": 2}
    configuration = Configuration.of({**cut, "GROUP": 2, "num_stages": 1})
    with choice.forced("matmul_sparse24_kernel", configuration):
        verdict = verify(OPERATOR, {"m": 40, "n": 70, "k": 544, "dtype": "float16"}, "gfx942")
    assert not verdict.problems, "\n".join(verdict.problems)


def test_what_is_not_kept_is_not_multiplied() -> None:
    weight = sparse_weight(32, 64)
    values, index = ops.compress_sparse24(weight)
    x = torch.ones(1, 64).bfloat16()
    dropped = expanded_by_hand(torch.ones_like(values), index)[0] == 0
    x[0, dropped] = torch.nan
    with device("gfx942"):
        got = OPERATOR.call(x, values, index)
    assert bool(got[0, 0].isfinite())
    assert not difference(got[0, 0], weight[0].double().sum(), Tolerance(ulps=2.0))


@pytest.mark.parametrize("target", TARGETS)
def test_the_libraries_are_those_of_the_instruction_table(target: str) -> None:
    assert library(target).read_text() == sparse_libraries.text(target)


@pytest.mark.parametrize("target", TARGETS)
def test_only_sparse_instructions_multiply(target: str) -> None:
    """As many as the tile needs: a copy for each part of the sum would be a multiple."""
    product = sparse_product(target, "bf16", "bf16")
    assert product is not None
    cut = {"BLOCK_M": 32, "BLOCK_N": 32, "WAVES_M": 1, "SPLIT_K": 1, "GROUP": 1, "num_warps": 1}
    with (
        device(target) as emulated,
        choice.forced("matmul_sparse24_kernel", Configuration.of({**cut, "num_stages": 1})),
    ):
        given = OPERATOR.inputs(Make(4), m=32, n=32, k=256, dtype="bfloat16")
        OPERATOR.call(**given)
    del emulated

    texts = [
        kernel.asm["amdgcn"]
        for cache in matmul_sparse24_kernel.device_caches.values()
        for kernel in cache[0].values()
    ]
    counts = [text.count(f"\t{product.name} ") for text in texts if product.name in text]
    assert 4 * product.steps * product.calls in counts


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_read_the_lds_without_conflicts(target: str) -> None:
    chip = resolve(target).device
    product = sparse_product(target, "bf16", "bf16")
    assert product is not None
    lanes = 16 * product.groups
    served = phases(target, 16, False, lanes, chip.facts.integer("lds_banks"))
    for words in (A_WORDS, B_WORDS):
        masks = row_swizzle(chip, product, words)
        pieces = words // 2
        for call, number in itertools.product(range(product.calls), range(pieces)):
            addresses = []
            for lane in range(lanes):
                group, row = divmod(lane, 16)
                piece = (call * product.groups + group) * pieces + number
                for bit, mask in enumerate(masks):
                    piece ^= mask if row >> bit & 1 else 0
                addresses.append(16 * (row * product.calls * product.groups * pieces + piece))
            assert conflict_ways(addresses, 16, served) == (1.0, 1)


def test_refused_arguments() -> None:
    values, index = ops.compress_sparse24(sparse_weight(16, 64))
    x = torch.ones(3, 64).bfloat16()
    scale = torch.ones(1)
    wrong = [
        ({"x": x.float()}, "x is float32"),
        ({"x": x.half()}, "values is bfloat16"),
        ({"x": x[:, :48], "values": values[:, :24], "index": index[:1]}, "multiple of 32"),
        ({"index": index.long()}, "index is int64"),
        ({"index": index.T.contiguous()}, "index is 16x2"),
        ({"x_scale": scale}, "x_scale is for 8-bit elements"),
        ({"out_dtype": torch.int32}, "out_dtype is none of"),
    ]
    for changed, message in wrong:
        with pytest.raises(ArgumentError, match=message):
            ops.matmul_sparse24(**{"x": x, "values": values, "index": index, **changed})
    narrow, positions = ops.compress_sparse24(torch.zeros(16, 96, dtype=torch.int8))
    with pytest.raises(ArgumentError, match="multiple of 64"):
        ops.matmul_sparse24(torch.ones(3, 96, dtype=torch.int8), narrow, positions)
    with pytest.raises(ArgumentError, match="more than 2 of 4"):
        ops.compress_sparse24(torch.ones(1, 32))
    with pytest.raises(ArgumentError, match="no multiple of 4"):
        ops.prune_sparse24(torch.ones(1, 30))


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100", "sm_90"])
def test_gpus_without_the_instructions_are_refused(target: str) -> None:
    values, index = ops.compress_sparse24(sparse_weight(16, 64))
    refusal = pytest.raises(ArgumentError, match="has no sparse matrix instructions")
    with capture(resolve(target).device), refusal:
        OPERATOR.call(torch.ones(3, 64).bfloat16(), values, index)


def test_empty_tensors_and_odd_strides() -> None:
    weight = sparse_weight(40, 96)
    values, index = ops.compress_sparse24(weight)
    with device("gfx1201"):
        assert OPERATOR.call(torch.ones(0, 96).bfloat16(), values, index).shape == (0, 40)
        x = torch.randn(96, 21).bfloat16().T
        apart = torch.zeros(40, 49).bfloat16()
        apart[:, 1:] = values
        got = OPERATOR.call(x, apart[:, 1:], index.T.contiguous().T)
    assert not difference(got, x.double() @ weight.double().T, Tolerance(accumulated=4e-6))


def test_the_table_of_speedups_has_the_cell_predicted_here() -> None:
    assert sparse_speedups.row("mi300x", "bfloat16") in sparse_speedups.stored()


@pytest.mark.thorough
def test_the_table_of_speedups() -> None:
    assert sparse_speedups.table() == sparse_speedups.stored()
