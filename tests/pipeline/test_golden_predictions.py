"""Predictions of the examples and of library calls are those of the golden file.

`make test` predicts each for one target, a CDNA and an RDNA target in turn.
The compiler decides the code, so each version of Triton has a golden file of its own. Times may
differ by `RELATIVE`: the same arithmetic on another processor or another numpy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.golden import GoldenFile
from tests.targets import QUICK, thorough_beyond
from wavecast.pipeline import SourceOptions, explain_path, select
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.library.library import KernelFacts, survey_call

triton = pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

RELATIVE = 1e-6
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
GOLDEN = Path(__file__).parent / "golden" / f"golden_predictions.triton-{triton.__version__}.json"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
BF16: Any = {"dtype": "bfloat16"}
SQUARE: Any = {"rows": 4096, "columns": 4096, **BF16}
WIDE: Any = {"rows": 2048, "columns": 8192, **BF16}
LOGITS: Any = {"rows": 2048, "columns": 32000, **BF16}

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add", SQUARE),
    ("silu_mul", WIDE),
    ("gelu", {**WIDE, "approximate": "tanh"}),
    ("dropout_add", SQUARE),
    ("relu_squared", WIDE),
    ("adamw", {"count": 1 << 24, "dtype": "float32"}),
    ("silu", SQUARE),
    ("rope", {"tokens": 4096, "q_heads": 32, "k_heads": 8, "dim": 128, **BF16}),
    ("embedding", {"tokens": 4096, "vocabulary": 32000, "columns": 4096, **BF16}),
    ("kv_cache_write", {"tokens": 4096, "heads": 8, "head": 128, **BF16}),
    ("rms_norm", SQUARE),
    ("rms_norm_residual", WIDE),
    ("rms_norm_quantised", SQUARE),
    ("layer_norm", SQUARE),
    ("layer_norm_backward", SQUARE),
    ("group_norm", {"images": 8, "channels": 320, "height": 64, "width": 64, "groups": 32, **BF16}),
    ("softmax", SQUARE),
    ("softmax_backward", SQUARE),
    ("log_softmax", LOGITS),
    ("cross_entropy", LOGITS),
    ("quantise_fp8_token", {**SQUARE, "to": "float8_e4m3fn"}),
    ("quantise_int8_token", SQUARE),
    ("quantise_mxfp4", SQUARE),
    ("matmul", {"m": 1024, "n": 4096, "k": 4096, "layout": "NT", **BF16}),
    ("matmul", {"m": 16, "n": 4096, "k": 4096, "layout": "NT", **BF16}),
    ("batched_matmul", {"batch": 16, "m": 512, "n": 512, "k": 128, "layout": "NN", **BF16}),
    ("scaled_matmul", {"m": 1024, "n": 4096, "k": 4096, "dtype": "float8_e4m3fn"}),
    ("matmul_w4a16", {"m": 16, "n": 4096, "k": 4096, **BF16}),
    ("attention", {"b": 1, "s": 2048, "t": 2048, "hq": 16, "hkv": 4, "d": 128, "causal": True,
                   **BF16}),
    ("causal_conv1d", {"batch": 4, "channels": 2048, "length": 1024, "taps": 4, **BF16}),
    ("moe_route", {"tokens": 1024, "experts": 64, "top_k": 8, "dtype": "float32"}),
)  # fmt: skip


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> GoldenFile:
    file = GoldenFile(GOLDEN, pytestconfig)
    if not file.update and not GOLDEN.exists():
        pytest.skip(f"no golden predictions for Triton {triton.__version__}: --update-golden")
    return file


def name(call: tuple[str, dict[str, Any]]) -> str:
    operator, sizes = call
    return " ".join([operator, *(f"{key}={value}" for key, value in sizes.items())])


def in_turn(values: Sequence[Any]) -> list[Any]:
    """(value, target) of all targets, `thorough` but for one of each value."""
    quick = [(value, QUICK[number % len(QUICK)]) for number, value in enumerate(values)]
    return thorough_beyond(quick, itertools.product(values, TARGETS))


def label(value: Any) -> str | None:
    """The name of a call or a script in the id of a test."""
    if isinstance(value, Path):
        return value.name
    return name(value) if isinstance(value, tuple) else None


@pytest.mark.parametrize(("call", "target"), in_turn(CALLS), ids=label)
def test_a_call_of_the_library(
    call: tuple[str, dict[str, Any]], target: str, golden: GoldenFile
) -> None:
    operator, sizes = call
    result = survey_call((operator, sizes, target))
    found = {
        "seconds": result.seconds,
        "bound": result.bound,
        "failure": result.failure,
        "kernels": [_kernel(kernel) for kernel in result.kernels],
    }
    golden.check(f"{name(call)} on {target}", found, RELATIVE)


def _kernel(kernel: KernelFacts) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel,
        "configuration": kernel.configuration,
        "chosen by": kernel.source,
        "seconds": kernel.seconds,
        "limiter": kernel.limiter,
        "fidelity": kernel.fidelity,
        "registers": kernel.registers,
        "spills": kernel.spills,
        "LDS bytes": kernel.lds_bytes,
        "launches": kernel.count,
    }


@pytest.mark.parametrize(("script", "target"), in_turn(EXAMPLES), ids=label)
def test_an_example(script: Path, target: str, golden: GoldenFile) -> None:
    report = explain_path(script, select([target]), SourceOptions())
    assert not report.failures
    assert {one.device.target for one in report.explanations} == {target}
    launches = [_launch(one) for one in report.explanations]
    golden.check(f"{script.name} on {target}", launches, RELATIVE)


def _launch(one: Explanation) -> dict[str, Any]:
    prediction, registers = one.predicted.prediction, one.analysis.registers
    return {
        "kernel": one.code.kernel,
        "grid": list(one.launch.grid) if one.launch else None,
        "configuration": {
            option: one.code.options[option] for option in ("num_warps", "num_stages")
        },
        "seconds": prediction.seconds if prediction else None,
        "limiter": prediction.limiter if prediction else one.predicted.why_not,
        "bound": one.roofline.bound,
        "registers": registers.vgpr + registers.agpr,
        "spills": registers.spilled_vgpr,
        "LDS bytes": one.analysis.lds_bytes,
    }
