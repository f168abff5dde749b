"""Products that load tiles through tensor descriptors, on NVIDIA GPUs since sm_90: their compiled
code, and their numbers in Triton's interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.targets import swept, thorough_beyond  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.gemm import matmul, scaled  # noqa: E402
from wavecast.kernels.operator import Operator  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402
from wavecast.runtimes.triton import capture  # noqa: E402

pytestmark = pytest.mark.torch

SIZES = {"m": 512, "n": 1024, "k": 512, "dtype": "bfloat16"}
SHARED_BYTES = 227 << 10
"""What a block of an sm_90 can have."""

INTERPRETED = """
import itertools
import torch
from wavecast import arch
from wavecast.frameworks.torch.verify import difference
from wavecast.kernels import choice
from wavecast.launch import gpu
from wavecast.kernels.gemm import matmul
from wavecast.launch.inputs import Make
from wavecast.kernels.operator import Tolerance

gpu.emulated = arch.load("sm_90")
cut = {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 32, "GROUP": 2, "TMA": 1}
ways = ({"SPLIT_K": 1, "PROGRAMS": 0}, {"SPLIT_K": 3, "PROGRAMS": 0}, {"SPLIT_K": 1, "PROGRAMS": 4})
loaded = []
way = {}

def run(spec, problem, **arguments):
    own = {"matmul_kernel": {**cut, **way}, "matmul_rest_kernel": {"ROWS": 8}}
    settings = own.get(spec.name, {"BLOCK_M": 16, "BLOCK_N": 32})
    call = choice.bound(spec, problem, arguments, settings, gpu.emulated)
    if spec.name == "matmul_kernel":
        assert problem["tma"]
        tiles = (call.arguments["a_tiles"], call.arguments["b_tiles"])
        loaded.append(all(hasattr(given, "block_shape") for given in tiles))
    spec.function[call.grid](**call.arguments)
    return choice.Launched(settings, call.workspaces)

choice.run = run
for layout, way in itertools.product(("NT", "NN", "TN", "TT"), ways):
    sizes = {"m": 40, "n": 40, "k": 72, "dtype": "float16", "layout": layout, "bias": True}
    given = matmul.MATMUL.inputs(Make(), **sizes, residual=True)
    expected = matmul.matmul_reference(
        *(given[name].double() for name in ("a", "b", "bias", "residual"))
    )
    found = difference(matmul.matmul(**given), expected, Tolerance(1.0, 4e-6))
    assert not found, (layout, way, found)
way = ways[0]
for shared in ("", "a", "b"):
    sizes = {"batch": 2, "m": 40, "n": 24, "k": 72, "dtype": "float16", "shared": shared}
    given = matmul.BATCHED.inputs(Make(), **sizes)
    expected = matmul.batched_matmul_reference(given["a"].double(), given["b"].double())
    found = difference(matmul.batched_matmul(**given), expected, Tolerance(1.0, 4e-6))
    assert not found, (shared, found)
given = matmul.MATMUL.inputs(Make(), m=33, n=48, k=96, dtype="int8")
assert torch.equal(
    matmul.matmul(**given), (given["a"].double() @ given["b"].double()).to(torch.int32)
)
assert loaded == [True] * (len(ways) * 4 + 4), loaded
print("right")
"""


def compiled(operator: Operator, sizes: Mapping[str, Any], device: str) -> tuple[Any, Any]:
    """The launch of `matmul_kernel` and the decision behind it."""
    with capture(arch.load(device)) as launches, choice.record_decisions() as decisions:
        operator.call(**operator.inputs(Make(values=False), **sizes))
    launch = next(one for one in launches if one.code.kernel == "matmul_kernel")
    return launch, next(one for one in decisions if one.spec.name == "matmul_kernel")


def code(operator: Operator, **sizes: Any) -> tuple[str, choice.Decision, int]:
    """PTX for sm_90, what was decided, and bytes of shared memory."""
    launch, decision = compiled(operator, sizes, "sm_90")
    return launch.code.stages["ptx"], decision, launch.code.dynamic_lds


@pytest.mark.parametrize("layout", thorough_beyond(["NT", "TN"], ["NT", "NN", "TN", "TT"]))
def test_tiles_of_16_bits_go_from_descriptors_to_tensor_cores(layout: str) -> None:
    ptx, decision, shared = code(matmul.MATMUL, **SIZES, layout=layout, residual=True)
    assert "cp.async.bulk.tensor.3d" in ptx
    assert "wgmma.mma_async" in ptx
    assert not re.search(r"cp\.async\.c[ag]", ptx)  # no copy by pointers
    assert "st.global.v4" in ptx
    assert decision.spills == 0
    assert shared <= SHARED_BYTES


@pytest.mark.parametrize(
    ("operator", "sizes", "loads"),
    [
        (matmul.BATCHED, {"batch": 4, **SIZES, "shared": "b"}, True),
        (scaled.OPERATOR, {**SIZES, "dtype": "float8_e4m3fn"}, True),
        # tensor cores take 8-bit operands along K only
        (scaled.OPERATOR, {**SIZES, "dtype": "float8_e4m3fn", "layout": "NN"}, False),
        # float32 as it is, is no business of tensor cores
        (matmul.MATMUL, {**SIZES, "dtype": "float32"}, False),
        (matmul.MATMUL, {**SIZES, "dtype": "float32", "precision": "tf32"}, True),
        # rows that do not begin at 16 bytes
        (matmul.MATMUL, {**SIZES, "k": 516}, False),
    ],
)
def test_which_products_use_descriptors(operator: Operator, sizes: dict, loads: bool) -> None:
    ptx, decision, _ = code(operator, **sizes)
    assert ("cp.async.bulk.tensor" in ptx) == loads
    assert decision.configuration.settings["TMA"] == loads
    assert decision.spills == 0


@pytest.mark.parametrize("target", swept(["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]))
def test_there_are_no_descriptors_on_amd(target: str) -> None:
    launch, decision = compiled(matmul.MATMUL, SIZES, target)
    assert decision.configuration.settings["TMA"] == 0
    assert "tensordesc" not in launch.code.stages["ttir"]


def test_an_address_that_is_not_aligned_is_no_descriptor() -> None:
    a = torch.empty(512 * 512 + 4, dtype=torch.bfloat16)[4:].view(512, 512)
    with capture(arch.load("sm_90")) as launches:
        matmul.matmul(a, torch.empty(512, 512, dtype=torch.bfloat16).t())
    assert "cp.async.bulk.tensor" not in str(launches[0].code.stages["ptx"])


def test_numbers_through_descriptors_in_the_interpreter() -> None:
    """All layouts and ways to cut the work, ragged sizes, shared batches, integers; not bfloat16,
    which the interpreter multiplies as the integers it keeps it in."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.stdout.strip() == "right", done.stderr[-2000:]
