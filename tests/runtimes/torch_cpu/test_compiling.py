"""`torch.compile` on an emulated device: what is traced, generated, launched and forgotten."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from tests.frameworks.torch.test_torch_models import Gated, PlainRMSNorm  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@triton.jit
def tripled_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < count)
    tl.store(y_ptr + place, 3 * x, mask=place < count)


@pytest.mark.thorough
def test_a_model_learns_on_generated_kernels_without_graph_breaks() -> None:
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(PlainRMSNorm(32), Gated()), torch.randn(6, 32)
    expected = model(x)
    expected.square().sum().backward()
    right = model[0].weight.grad.clone()
    model.zero_grad()
    rewriting, reports = ops.inductor_pass(), Reports()
    options = {"pre_grad_custom_pass": rewriting}
    with wavecast.device("gfx942", check=reports) as device:
        found = torch.compile(model, fullgraph=True, options=options)(x)
        forward = device.executed
        found.square().sum().backward()
    assert not reports.errors
    done = sorted(one.operator for one in rewriting.replaced.done)
    assert done == ["matmul", "matmul", "matmul", "rms_norm", "silu_mul"]
    assert forward >= len(done)
    assert device.executed > 2 * forward
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model[0].weight.grad, right, rtol=2e-3, atol=2e-3)


def test_patterns_of_inductor_are_made_once_in_and_outside_of_a_device() -> None:
    """PyTorch keeps them by the arguments of their functions, and refuses to make them again."""
    from torch._inductor.fx_passes import post_grad

    def program(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * x.shape[0]

    post_grad.lazy_init()  # as a graph outside does
    with wavecast.device("gfx942"):
        for dynamic in (False, True):
            x = torch.randn(4 + dynamic, 16)
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(program, dynamic=dynamic)(x), program(x))
    post_grad.lazy_init()


def test_compiled_code_is_that_of_the_device_at_hand() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        place = 1.0 if x.is_cuda and not x.is_cpu and x.device.type == "cuda" else 0.0
        y = torch.empty_like(x)
        if x.is_cuda:
            tripled_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        else:
            y = 3 * x
        lanes = torch.full((x.shape[-1],), torch.cuda.get_device_capability()[0], device="cuda")
        return (y + lanes.to(x.device) + place).softmax(-1).cumsum(-1) + place

    def expected(major: int, place: float) -> torch.Tensor:
        return (3 * x + major + place).softmax(-1).cumsum(-1) + place

    x = torch.randn(5, 32)
    compiled = torch.compile(program, fullgraph=True)
    for arch, major in (("gfx942", 9), ("gfx1100", 11), ("gfx942", 9)):
        with wavecast.device(arch, trace=True) as device:
            torch.testing.assert_close(compiled(x), expected(major, 1.0))
        assert device.executed >= 2
        assert {trace.target for trace in device.traces} == {arch}


def test_triton_is_asked_anew_and_devices_are_chosen_in_compiled_code() -> None:
    from torch.utils._triton import has_triton

    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.device(0):
            y = torch.empty_like(x)
            tripled_kernel[(1,)](x, y, x.numel(), BLOCK=64)
        return y + 1

    x = torch.randn(64)
    outside = has_triton()
    with wavecast.device("gfx942"):
        compiled = torch.compile(program, fullgraph=True)
        torch.testing.assert_close(compiled(x), 3 * x + 1)
    assert has_triton() == outside


def test_lower_precision_and_dropped_values() -> None:
    weight = torch.randn(32, 16)

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = x @ weight.to("cuda")
        return y, torch.nn.functional.dropout(torch.ones_like(x), 0.5)

    x = torch.randn(5, 32)
    with wavecast.device("gfx942"):
        y, kept = torch.compile(program, fullgraph=True)(x)
    assert torch.equal(y, x.bfloat16() @ weight.bfloat16())
    assert set(kept.unique().tolist()) == {0.0, 2.0}


def test_autotuning_of_generated_kernels() -> None:
    x = torch.randn(16, 16)

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x @ x, (16,)).relu()

    with wavecast.device("gfx942") as device:
        compiled = torch.compile(program, mode="max-autotune-no-cudagraphs")
        torch.testing.assert_close(compiled(x), program(x), rtol=1e-4, atol=1e-4)
    assert device.executed


def test_flex_attention_is_a_triton_kernel() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 128, 16) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    with wavecast.device("gfx942") as device:
        found = torch.compile(flex_attention)(q, k, v)
    assert device.executed
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
