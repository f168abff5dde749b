"""No prediction is below the roofline of its own report, and options have limits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest

from wavecast import arch
from wavecast.errors import MissingFact, Unpredictable, UsageError
from wavecast.perfmodel.ops import OPS, Op, op
from wavecast.perfmodel.ops.elementwise import FUNCTIONS, RESIZING, SELECTING
from wavecast.perfmodel.ops.norm import FUNCTIONS as NORMS

Draw = Callable[[random.Random], tuple[str, dict[str, str]]]
ROWS = ("bf16", "fp16", "fp32", "fp8", "int8")
PROBLEMS = 250
"""Of every operation; `python -m tests.perfmodel.test_op_floors 5000` draws more."""


def _size(draw: random.Random, low: int, high: int) -> int:
    """Of all magnitudes, half of them powers of two."""
    value = math.exp(draw.uniform(math.log(low), math.log(high)))
    return max(1, int(value) if draw.random() < 0.5 else 1 << round(math.log2(value)))


def _maybe(draw: random.Random, options: dict[str, str], share: float, **values: str) -> None:
    for name, choices in values.items():
        if draw.random() < share:
            options[name] = draw.choice(choices.split())


def _gemm(draw: random.Random) -> tuple[str, dict[str, str]]:
    sizes = _size(draw, 1, 16384), _size(draw, 1, 32768), _size(draw, 1, 16384)
    options = {"dtype": draw.choice(["fp64", *ROWS, "mxfp8", "mxfp6", "mxfp4"])}
    _maybe(draw, options, 0.2, batch="2 64")
    options["timing"] = draw.choice(["kernel", "launch", "eager", "launch, client, warm"])
    return "x".join(map(str, sizes)), options


def _moe(draw: random.Random) -> tuple[str, dict[str, str]]:
    experts = draw.choice([1, 8, 32, 128, 256, 384])
    sizes = _size(draw, 1, 32768), _size(draw, 64, 8192), _size(draw, 64, 8192)
    options = {"dtype": draw.choice(["bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4"])}
    parts = "layer gate-up down one-kernel"
    _maybe(draw, options, 0.3, part=parts, block_m="16 64 128", tile_n="64 128", weights="int4 fp8")
    _maybe(draw, options, 0.2, scaling="tensor token block mx", assembly="true", splits="2 4")
    return "x".join(map(str, (*sizes, experts, draw.randint(1, min(experts, 9))))), options


def _attention(draw: random.Random) -> tuple[str, dict[str, str]]:
    kv, head = _size(draw, 1, 16), draw.choice([64, 128, 256, 512])
    sizes = (_size(draw, 1, 64), kv * draw.choice([1, 4, 8]), kv)
    lengths = (_size(draw, 1, 8192), _size(draw, 1, 16384))
    options = {"dtype": draw.choice(["bf16", "fp16", "fp8", "fp32"])}
    _maybe(draw, options, 0.3, causal="true", direction="backward", kv_dtype="fp8")
    return "x".join(map(str, (*sizes, *lengths, head))), options


def _many_products(draw: random.Random) -> tuple[str, dict[str, str]]:
    """Large ones, bound by the matrix pipes."""
    size = 1 << draw.randint(12, 15)
    return f"{size}x{size}x{size}", {"dtype": draw.choice(["fp32", "bf16", "fp16", "fp8"])}


def _conv(draw: random.Random) -> tuple[str, dict[str, str]]:
    side = _size(draw, 4, 256)
    sizes = f"{_size(draw, 1, 128)}x{_size(draw, 1, 1024)}x{side}x{side}"
    options = {"dtype": draw.choice(["bf16", "fp16", "fp32", "int8"]), "padding": "1"}
    _maybe(draw, options, 0.5, direction="data weights", stride="2", layout="nhwc")
    return f"{sizes},{_size(draw, 1, 1024)}x{draw.choice(['1x1', '3x3', '5x5'])}", options


def _rows(draw: random.Random) -> tuple[str, dict[str, str]]:
    return f"{_size(draw, 1, 65536)}x{_size(draw, 1, 65536)}", {"dtype": draw.choice(ROWS)}


def _norm(draw: random.Random) -> tuple[str, dict[str, str]]:
    shape, options = _rows(draw)
    _maybe(draw, options, 0.3, residual="true", dropout="true", fused="false", timing="eager")
    return shape, {**options, "function": draw.choice(list(NORMS))}


def _elementwise(draw: random.Random) -> tuple[str, dict[str, str]]:
    shape, options = _rows(draw)
    _maybe(draw, options, 0.3, in_place="true", indexed="true", timing="launch eager")
    plain = [name for name in FUNCTIONS if name not in RESIZING | SELECTING]
    return shape, {**options, "function": draw.choice(plain)}


def _collective(draw: random.Random) -> tuple[str, dict[str, str]]:
    function = draw.choice(["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
    return str(_size(draw, 1, 1 << 30)), {"gpus": draw.choice("248"), "function": function}


def _product(draw: random.Random) -> tuple[str, dict[str, str]]:
    sizes = 8 * _size(draw, 1, 2048), _size(draw, 8, 32768), _size(draw, 8, 16384)
    function = draw.choice(["matmul_reduce_scatter", "matmul_all_reduce", "all_gather_matmul"])
    return "x".join(map(str, sizes)), {"gpus": draw.choice("248"), "function": function}


def _context(draw: random.Random) -> tuple[str, dict[str, str]]:
    heads = _size(draw, 1, 64)
    sizes = _size(draw, 1, 4), heads, heads, _size(draw, 64, 32768), draw.choice([64, 128])
    return "x".join(map(str, sizes)), {"dtype": "bf16", "gpus": draw.choice("248")}


DRAWS: dict[str, Draw] = {
    "attention": _attention,
    "collective": _collective,
    "context_attention": _context,
    "conv": _conv,
    "elementwise": _elementwise,
    "gemm": _gemm,
    "gemm_collective": _product,
    "moe": _moe,
    "norm": _norm,
    "reduction": _rows,
    "softmax": _rows,
}


def _problems(kind: str, count: int) -> Iterator[tuple[Op, arch.Device]]:
    """Problems of an operation that exist, each with a device."""
    draw = random.Random(kind)
    devices = sorted(device.id for device in arch.devices())
    for number in range(count):
        large = kind == "gemm" and number % 4 == 0
        shape, options = (_many_products if large else DRAWS[kind])(draw)
        device = arch.load(draw.choice(devices))
        try:
            yield op(kind).parse(shape, options), device
        except UsageError:
            continue


def _below(kind: str, count: int) -> tuple[int, list[str]]:
    """How many predictions there are, and those that are below their roofline."""
    predicted, below = 0, []
    for problem, device in _problems(kind, count):
        try:
            seconds = problem.predict(device).seconds
        except (MissingFact, Unpredictable):
            continue
        bound = problem.roofline(device)
        predicted += 1
        for floor in (bound.floor_seconds, bound.sustained_seconds):
            if floor is not None and seconds < floor * (1 - 1e-9):
                below.append(f"{problem} on {device.id}: {seconds:.4g} s of {floor:.4g} s")
    return predicted, below


@pytest.mark.parametrize("kind", OPS)
def test_no_prediction_is_below_its_roofline(kind: str) -> None:
    predicted, below = _below(kind, PROBLEMS)
    assert not below
    assert predicted > PROBLEMS / 5


def test_weights_of_experts_are_read_faster_than_kernels_mix_reads_and_writes() -> None:
    """MI355X, mxfp4: 88 % of 8 TB/s where 75 % are those of a copy, which was the bound."""
    device = arch.load("mi355x")
    problem = op("moe").parse("1024x7168x256x256x8", {"dtype": "mxfp4"})
    moved = problem.work().bytes
    assert moved is not None
    assert problem.roofline(device).sustained_seconds == pytest.approx(moved / (0.88 * 8e12))


def test_operands_in_caches_are_not_bound_by_the_memory() -> None:
    """RX 7900 XTX, 24 MB that its memory-side cache of 96 MB has."""
    device = arch.load("rx7900xtx")
    problem = op("softmax").parse("1024x6144", {"dtype": "fp16"})
    bound = problem.roofline(device)
    assert bound.memory is not None
    assert bound.memory_seconds is not None
    assert bound.memory_seconds < 2 * 1024 * 6144 * 2 / bound.memory.rate
    larger = op("softmax").parse("65536x6144", {"dtype": "fp16"}).roofline(device)
    assert larger.memory_seconds == pytest.approx(4 * 65536 * 6144 / bound.memory.rate, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "shape", "options"),
    [
        ("moe", "1024x7168x256x256x8", {"dtype": "mxfp4", "waves": "1000000"}),
        ("moe", "1024x7168x256x256x8", {"dtype": "mxfp4", "resident": "100000"}),
        ("moe", "1024x7168x256x256x8", {"dtype": "mxfp4", "splits": "100000"}),
        ("moe", "1024x7168x256x256x8", {"dtype": "mxfp4", "block_m": "1" + 40 * "0"}),
        ("moe", "1024x7168x256x256x8", {"dtype": "mxfp4", "tile_n": "100000"}),
        ("gemm", "64x64x64", {"dtype": "bf16", "waves": "33"}),
        ("gemm", "64x64x64", {"dtype": "bf16", "stages": "100000"}),
        ("gemm", "64x64x64", {"dtype": "bf16", "library": "ck", "tile": "1024x1024x64"}),
        ("gemm", "64x64x64", {"dtype": "bf16", "library": "ck", "tile": "64x64x100000"}),
        (
            "gemm",
            "64x64x64",
            {"dtype": "bf16", "library": "ck", "tile": "64x64x64", "splits": "65"},
        ),
        ("attention", "4x8x1024x128", {"dtype": "bf16", "splits": "1025"}),
        ("elementwise", "8x8", {"dtype": "bf16", "function": "copy", "parts": "10000000"}),
        ("elementwise", "8x8", {"dtype": "bf16", "function": "add", "tensors": "1" + 40 * "0"}),
        ("collective", "1024", {"function": "all_reduce", "gpus": "8", "channels": "100000"}),
        ("collective", "1024", {"function": "dispatch", "gpus": "8", "topk": "100000"}),
        (
            "gemm_collective",
            "64x64x64",
            {"function": "matmul_all_reduce", "gpus": "8", "buffer": "1" + 40 * "0"},
        ),
    ],
)
def test_what_no_hardware_has_is_refused(kind: str, shape: str, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="at most"):
        op(kind).parse(shape, options)


if __name__ == "__main__":
    import sys

    for name in OPS:
        total, low = _below(name, int(sys.argv[1]))
        print(f"{name}: {len(low)} of {total} below", *low[:5], sep="\n    ")
