"""The importer of published attention times."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calibration.support import importer
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel.ops.attention import Attention

pd = pytest.importorskip("pandas")

ROW: dict[str, Any] = {
    "source_path": "results/fwd.csv",
    "arch": "gfx950",
    "device": "MI350X",
    "cu_count": 256.0,
    "direction": "fwd",
    "dtype": "bf16",
    "batch": 16.0,
    "heads_q": 64.0,
    "heads_kv": 8.0,
    "seq_q": 4096.0,
    "seq_k": 4096.0,
    "head_dim": 128.0,
    "head_dim_v": 128.0,
    "causal": True,
    "library": "aiter (asm)",
    "time_us": 4000.0,
    "kernel": None,
}
LATENT: dict[str, Any] = {
    "arch": "gfx942",
    "device": "not stated (gfx942; MI300X or MI308X)",
    "cu_count": None,
    "direction": "mla_decode",
    "heads_q": 16.0,
    "heads_kv": 1.0,
    "seq_q": 1.0,
    "head_dim": 576.0,
    "head_dim_v": 512.0,
    "causal": False,
    "library": "aiter asm MLA",
}


def case(**fields: Any) -> Case:
    frame = pd.DataFrame([{**ROW, **fields}])
    data = importer(frame.columns)
    assert data.name == "attention_published"
    (found,) = data.cases(frame)
    assert isinstance(found, Case)
    return found


def attention(found: Case) -> Attention:
    assert isinstance(found.op, Attention), found.reason
    return found.op


def test_a_row() -> None:
    found = case()
    assert attention(found) == Attention(
        batch=16,
        heads=64,
        kv_heads=8,
        seq_q=4096,
        seq_k=4096,
        head=128,
        head_v=128,
        dtype="bf16",
        causal=True,
        library="asm",
        timing="eager",
    )
    assert (found.device, found.seconds, found.group) == ("mi350x", 4e-3, "results/fwd.csv")
    assert found.labels == {"dtype": "bf16", "direction": "fwd", "library": "aiter (asm)"}


def test_splits_are_alternatives_of_one_problem() -> None:
    four, best = (case(**LATENT, kernel=f"num_kv_splits={n}") for n in ("4", "auto"))
    assert (attention(four).splits, attention(best).splits) == (4, 0)
    assert attention(four).latent
    assert attention(four).timing == "kernel"
    assert four.problem == best.problem != case().problem


def test_latent_rows_without_a_board_are_of_one_with_256_units() -> None:
    assert case(**LATENT).device == "mi355x"
    assert case(**{**LATENT, "device": "MI300X"}).device == "mi300x"


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("hipkittens", "hipkittens"),
        ("CK tile", "ck"),
        ("jax unfused", "unfused"),
        ("Triton MHA (aiter)", "triton"),
        ("gluon paged attention", "triton"),
        ("asm paged attention", "asm"),
        ("PyTorch SDPA", "sdpa"),
        ("torch SDPA (CK)", "ck"),
        ("torch SDPA (aotriton)", "aotriton"),
        ("FlyDSL", "flydsl"),
        ("FlashAttention-2", "flash2"),
        ("FA3", "flash3"),
        ("cuDNN 9.1", "cudnn"),
        ("FlashInfer", "flashinfer"),
        ("xFormers", "efficient"),
        ("PyTorch standard", "unfused"),
        ("torch math", "math"),
        ("something new", ""),
    ],
)
def test_libraries(name: str, library: str) -> None:
    assert attention(case(library=name)).library == library


def test_only_single_calls_on_an_idle_gpu_include_the_call() -> None:
    assert attention(case(source_repo="HazyResearch/HipKittens")).timing == "eager"
    assert attention(case(source_repo="HazyResearch/HipKittens", library="CK")).timing == "kernel"
    assert attention(case(source_repo="ROCm/aiter")).timing == "kernel"
    assert attention(case(source_repo="ROCm/aiter", library="jax unfused")).timing == "eager"


def test_lengths_and_kv_dtype() -> None:
    ragged = case(
        batch=2.0,
        seq_q=16.0,
        dtype="fp16?",
        kernel="programs=912,n_ctx=[1024, 4096]",
        device="MI300X",
    )
    assert attention(ragged).lengths == (1024, 4096)
    assert attention(ragged).dtype == "fp16"
    paged = attention(case(direction="paged_decode", seq_q=1.0, dtype="bf16 q, fp8 kv per_token"))
    assert (paged.dtype, paged.kv_dtype) == ("bf16", "fp8")


def test_a_row_without_a_board_says_so() -> None:
    found = case(arch=None, device="not stated", cu_count=None)
    assert found.device == ""
    assert found.reason == "the board is not stated"


def test_sizes_that_make_no_sense_are_a_reason() -> None:
    found = case(heads_kv=7.0)
    assert found.op is None
    assert "share" in found.reason
