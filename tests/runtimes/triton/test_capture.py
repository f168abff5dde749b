"""Capture inside this process: `capture`, `capture_call`, autotuners, arguments."""

from __future__ import annotations

import struct

import pytest

from tests.runtimes.conftest import GFX942, GFX1100, SM_90
from wavecast.errors import CompileError, UsageError
from wavecast.runtimes.triton import capture, capture_call

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
kernels = pytest.importorskip("tests.runtimes.triton.kernels")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning"),
]


def tensors(n: int = 1000):
    return torch.rand(n), torch.rand(n), torch.empty(n)


def test_launch_holds_what_the_program_passed():
    x, y, out = tensors()
    (launch,) = capture_call(
        kernels.add, (x, y, out, 1000), {"BLOCK": 256}, grid=(4,), device=GFX942
    )
    assert launch.grid == (4, 1, 1)
    assert launch.block == (256, 1, 1)
    first, *_, n, block = launch.arguments
    assert (first.kind, first.dtype, first.shape, first.strides) == (
        "tensor", "float32", (1000,), (1,)
    )  # fmt: skip
    assert first.bytes == 4000
    assert first.storage == x.untyped_storage().data_ptr()
    assert (n.kind, n.value) == ("scalar", 1000)
    assert (block.kind, block.value) == ("constant", 256)
    pointers = struct.unpack_from("<QQQi", launch.kernarg)
    assert pointers == (x.data_ptr(), y.data_ptr(), out.data_ptr(), 1000)
    offsets = {item.name: (item.offset, item.size) for item in launch.code.parameters}
    assert offsets["n"] == (24, 4)
    assert offsets["BLOCK"] == (None, None)


def test_specialisation_is_the_launchs_own():
    x, y, out = tensors(1001)
    calls = [
        capture_call(
            kernels.add, (x[k:], y[k:], out[k:], n), {"BLOCK": 256}, grid=(4,), device=GFX942
        )
        for k, n in ((0, 992), (1, 992), (0, 999))
    ]
    attributes = [
        [{*item.attributes} for item in call[0].code.parameters if item.name in ("x_ptr", "n")]
        for call in calls
    ]
    assert attributes[0] == [{"divisibility=16", "pointer_range=32"}, {"divisibility=16"}]
    assert attributes[1] == [{"pointer_range=32"}, {"divisibility=16"}]
    assert attributes[2] == [{"divisibility=16", "pointer_range=32"}, set()]


def test_a_second_target_never_sees_the_first_ones_code():
    x, y, out = tensors()
    for device in (GFX942, GFX1100, SM_90, GFX942):
        (launch,) = capture_call(
            kernels.add, (x, y, out, 1000), {"BLOCK": 256}, grid=(4,), device=device
        )
        assert launch.code.target == device.target
        assert launch.block[0] == 4 * device.lanes


@pytest.mark.parametrize(("choice", "count"), [("first", 1), ("all", 2)])
def test_autotuned_kernels_give_the_first_configuration_that_fits_or_all(choice, count):
    x, out = torch.rand(4096), torch.empty(4096)

    def grid(meta):
        return (triton.cdiv(4096, meta["BLOCK"]),)

    with capture(GFX942, configs=choice) as launches:
        kernels.tuned[grid](x, out, 4096)
        kernels.tuned[grid](x, out, 4096)
    assert len(launches) == count
    assert launches[0].configuration == "BLOCK=256, num_warps=4, num_stages=2"
    assert launches[0].count == 2
    assert launches[0].scalars["EVEN"] == 1


def test_all_configurations_of_an_autotuner_name_those_that_do_not_compile():
    x = torch.rand(64)
    with (
        pytest.raises(CompileError, match="configuration BLOCK=48"),
        capture(GFX942, configs="all"),
    ):
        kernels.half_tuned[(1,)](x, 64)
    with capture(GFX942) as launches:
        kernels.half_tuned[(1,)](x, 64)
    assert [item.scalars["BLOCK"] for item in launches] == [64]


def test_tuples_none_and_bools_become_arguments():
    x, y = torch.rand(64), torch.rand(64)
    (launch,) = capture_call(
        kernels.mixed, ((x, y), None, True, 0.5, 1), {}, grid=(1,), device=GFX942
    )
    shown = {item.name: (item.kind, item.value) for item in launch.arguments}
    assert shown["pair.0"] == ("tensor", None)
    assert shown["nothing"] == ("constant", None)
    assert shown["flag"] == ("scalar", True)
    assert shown["factor"] == ("scalar", 0.5)
    assert shown["one"] == ("constant", 1)
    assert struct.unpack_from("<QQ", launch.kernarg) == (x.data_ptr(), y.data_ptr())


@pytest.mark.parametrize("device", [GFX942, SM_90])
def test_host_tensor_descriptors(device):
    descriptors = pytest.importorskip("triton.tools.tensor_descriptor")
    x = torch.rand(64, 128)
    described = descriptors.TensorDescriptor.from_tensor(x, [16, 32])
    (launch,) = capture_call(
        kernels.described, (described, torch.empty(16, 32)), {}, grid=(1,), device=device
    )
    first = launch.arguments[0]
    assert (first.kind, first.shape, first.strides) == ("descriptor", (64, 128), (128, 1))
    assert first.value == (16, 32)
    if device is GFX942:
        base, *extents = struct.unpack_from("<Qqqqq", launch.kernarg)
        assert (base, extents) == (x.data_ptr(), [64, 128, 128, 1])


def test_too_much_shared_memory_is_an_error_of_the_launch():
    x = torch.rand(256, 256, dtype=torch.float32)
    with pytest.raises(CompileError, match="shared memory"):
        capture_call(kernels.greedy, (x, x, x, 32), {}, grid=(1,), device=GFX942)


def test_filter_empty_grids_and_warmup_record_nothing():
    x, y, out = tensors()
    with capture(GFX942, kernels="^other") as launches:
        kernels.add[(4,)](x, y, out, 1000, BLOCK=256)
    assert not launches
    with capture(GFX942) as launches:
        kernels.add[(0,)](x, y, out, 1000, BLOCK=256)
        compiled = kernels.add.warmup(x, y, out, 1000, BLOCK=256, grid=(4,))
        compiled._init_handles()
    assert not launches
    assert compiled.n_regs > 0


def test_captures_do_not_nest_and_leave_triton_as_it_was():
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    before = (driver._active, JITFunction.run, triton.testing.do_bench)
    with capture(GFX942), pytest.raises(UsageError, match="inside another"), capture(GFX942):
        pass
    assert (driver._active, JITFunction.run, triton.testing.do_bench) == before


def test_what_is_no_kernel_is_refused():
    with pytest.raises(UsageError, match="not a Triton kernel"):
        capture_call(len, (), {}, grid=(1,), device=GFX942)


def test_timers_measure_nothing():
    x, y, out = tensors()
    with capture(GFX942) as launches:
        time = triton.testing.do_bench(lambda: kernels.add[(4,)](x, y, out, 1000, BLOCK=256))
        several = triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2])
    assert time != time
    assert len(several) == 2
    assert launches[0].count == 1
