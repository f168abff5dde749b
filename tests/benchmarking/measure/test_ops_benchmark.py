"""`benchmarks/ops.py` on CPU tensors and with a timer that only calls: arguments, results, tables.

The operators answer by their references here, so every alternative must agree with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import ops as benchmark
import ops_alternatives

from tests.benchmarking.measure.fake_gpu import FakeGpu
from wavecast import arch
from wavecast.kernels import registry

pytestmark = pytest.mark.torch

BF16 = {"dtype": "bfloat16"}
HEADS = {"b": 2, "s": 48, "t": 48, "hq": 4, "hkv": 4, "d": 32, "causal": True, **BF16}
IMAGE = {"batch": 2, "channels": 8, "filters": 6, "size": "9x7", "kernel": "3x3", "stride": "2x1",
         "padding": "1x1", "dtype": "float32"}  # fmt: skip
EXPERTS = {"tokens": 9, "experts": 128, "model": 32, "inter": 16, "top_k": 4, **BF16}
SMALL: dict[str, list[dict[str, Any]]] = {
    "matmul": [{"m": 5, "n": 48, "k": 64, **BF16}],
    "scaled_matmul": [{"m": 16, "n": 48, "k": 160, "dtype": "float8_e4m3fn"}],
    "attention": [HEADS, {**HEADS, "hkv": 2}],
    "attention_backward": [HEADS, {**HEADS, "hkv": 2, "causal": False}],
    "rms_norm": [{"rows": 5, "columns": 300, **BF16}],
    "rms_norm_residual": [{"rows": 5, "columns": 300, **BF16}],
    "layer_norm": [{"rows": 5, "columns": 300, **BF16}],
    "layer_norm_residual": [{"rows": 5, "columns": 300, **BF16}],
    "rope": [{"tokens": 5, "q_heads": 4, "k_heads": 2, "dim": 32, **BF16}],
    "silu": [{"rows": 3, "columns": 300, **BF16}],
    "gelu": [{"rows": 3, "columns": 300, **BF16, "approximate": "tanh"}],
    "relu_squared": [{"rows": 3, "columns": 300, **BF16}],
    "silu_mul": [{"rows": 5, "columns": 37, **BF16}],
    "gelu_mul": [{"rows": 5, "columns": 37, **BF16, "approximate": "none"}],
    "moe_experts": [
        EXPERTS,
        {**EXPERTS, "activation": "clamped_swiglu", "bias": True, "interleaved": True},
    ],
    "convolution": [IMAGE, {**IMAGE, "layout": "first", "groups": 2, "bias": True}],
    "convolution_backward_data": [IMAGE, {**IMAGE, "layout": "first"}],
    "convolution_backward_weight": [IMAGE, {**IMAGE, "layout": "first"}],
}


def once(calls: Sequence[Callable[[], Any]]) -> list[list[float]]:
    """Calls everything; the first takes 1 ms, every other one more."""
    for call in calls:
        call()
    return [[1e-3 * (number + 1)] * 3 for number in range(len(calls))]


def eager(function: Any) -> Any:
    return torch.compile(function, backend="eager")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors, and other processes at work beside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def row(family: benchmark.Family, name: str, sizes: dict[str, Any]) -> benchmark.Row:
    torch._dynamo.reset()
    return benchmark.measured(family, registry.operator(name), sizes, "cpu", once, eager)


CASES = [
    (family, name, sizes)
    for family in benchmark.FAMILIES
    for name in family.operators
    for sizes in SMALL[name]
    if family.only(sizes)
]


@pytest.mark.parametrize(
    ("family", "name", "sizes"), CASES, ids=[f"{family.name} {name}" for family, name, _ in CASES]
)
def test_alternatives_compute_the_same(
    family: benchmark.Family, name: str, sizes: dict[str, Any]
) -> None:
    found = row(family, name, sizes)
    assert found.why == ""
    assert found.others, found.refused
    assert found.seconds == 1e-3
    assert found.ratio == pytest.approx(2.0)
    assert (found.copy is not None) is (family.copy is not None)


def test_every_operator_of_a_family_is_tried_here() -> None:
    assert {name for family in benchmark.FAMILIES for name in family.operators} == set(SMALL)


def test_what_sdpa_does_not_have_is_said() -> None:
    attention = next(f for f in benchmark.FAMILIES if f.name == "attention")
    found = row(attention, "attention", {**HEADS, "left": 7, "sinks": True})
    assert found.refused == {"SDPA": "has no sinks, left"}
    assert found.ratio is None


def test_another_result_is_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(operator: Any, given: dict[str, Any], compiled: Any) -> Any:
        contest = ops_alternatives.Contest(lambda: given["a"] @ given["b"])
        contest.enter("another", lambda: lambda: 1.2 * (given["a"] @ given["b"]))
        contest.enter("broken", lambda: lambda: given["a"] @ given["a"])
        return contest

    monkeypatch.setattr(ops_alternatives, "products", other)
    found = row(benchmark.FAMILIES[0], "matmul", SMALL["matmul"][0])
    assert found.why.endswith("apart from that of another")
    assert found.refused["broken"].startswith("RuntimeError: ")
    assert found.ratio is None


def test_what_raises_is_told() -> None:
    found = row(benchmark.FAMILIES[0], "matmul", {**SMALL["matmul"][0], "bias": True})
    assert "no part of PyTorch's product" in found.why


def test_tables(tmp_path: Path) -> None:
    rows = [row(family, name, sizes) for family, name, sizes in CASES[:4]]
    rows[1].why = "cannot run"
    found = benchmark.summary(rows)
    assert [(one["family"], one["compared"]) for one in found] == [
        ("GEMM", 1),
        ("GEMM, 8 bits", 0),
        ("attention", 2),
    ]
    assert [one["met"] for one in found] == [True, False, True]
    text = benchmark.markdown(rows, "Title")
    assert "| GEMM | 1 | 1 | 2.00 | 0.95 |  |  | yes |" in text
    assert "**cannot run**" in text
    assert all(line.count("|") in (0, 9, 10) for line in text.splitlines())
    known = json.loads(benchmark.document(rows, {"cache": "cold"}))
    assert known["rows"][0]["ratio"] == pytest.approx(2.0)


def test_impossible_times_do_not_count() -> None:
    operator = registry.operator("matmul")
    device = arch.load("h200")
    sizes = {"m": 4096, "n": 64, "k": 64, "dtype": "bfloat16"}
    quick: Any = lambda calls: [[1e-7] * 3 for _ in calls]  # noqa: E731
    found = benchmark.measured(benchmark.FAMILIES[0], operator, sizes, "cpu", quick, eager, device)
    assert "below" in found.why
    assert found.ratio is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert benchmark.main(["--folder", str(tmp_path / "results")]) == 3
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "nothing was measured" in captured.err
    assert not (tmp_path / "results").exists()


def test_the_whole_of_it_on_a_fake_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Our kernels run on the emulator, PyTorch on the CPU; the clock ticks 100 µs for both."""

    def contests(pattern: str) -> Iterator[Any]:
        assert pattern == "m"
        for family, name in (
            (benchmark.FAMILIES[0], "matmul"),
            (benchmark.FAMILIES[2], "attention"),
        ):
            yield family, registry.operator(name), SMALL[name][0]

    monkeypatch.setattr(benchmark, "contests", contests)
    monkeypatch.setattr(benchmark, "cache_bytes", lambda _: 1 << 10)
    fake = FakeGpu(tick=1e-4)
    with fake.present(pytest.MonkeyPatch(), "mi300x", kernels=True):
        options = ["-k", "m", "--seconds", "0.2", "--samples", "5", "--folder", str(tmp_path)]
        assert benchmark.main(options) == 0
    captured = capsys.readouterr()
    text = (tmp_path / "ops-mi300x.md").read_text()
    assert captured.out.strip() == text.strip()
    assert "| GEMM | 1 | 1 | 1.00 | 0.95 |  |  | yes |" in text
    assert captured.err.splitlines()[0].startswith("matmul m=5")
    known = json.loads((tmp_path / "ops-mi300x.json").read_text())
    assert known["environment"]["device"] == "mi300x"
    assert known["cache"] == "cold"
    assert known["rows"][0]["others"].keys() == {"torch.matmul"}
    assert known["rows"][0]["floor"] > 0


def test_every_family_has_shapes() -> None:
    named = {family.name for family, _, _ in benchmark.contests("")}
    assert named == {family.name for family in benchmark.FAMILIES}
    assert len(list(benchmark.contests("^rope "))) == 3
