"""Triton kernels: results as without trace, counts and conflicts as the static analysis has them
where it is exact."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from tests.targets import swept  # noqa: E402
from wavecast.analyze import values  # noqa: E402
from wavecast.arch import resolve  # noqa: E402
from wavecast.compile.assembly import load  # noqa: E402
from wavecast.compile.codeobject import Launch  # noqa: E402
from wavecast.emulate import native  # noqa: E402
from wavecast.emulate.launch import Emulator  # noqa: E402
from wavecast.emulate.trace.mode import TraceMode  # noqa: E402
from wavecast.emulate.trace.result import Trace  # noqa: E402
from wavecast.isa.opcode import Control, Space  # noqa: E402

kernels = pytest.importorskip("tests.emulate.corpus_kernels")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*:UserWarning")]
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


class Kept(TraceMode):
    """Keeps the launches, for the static analysis of the same."""

    def __init__(self) -> None:
        super().__init__(streams=1)
        self.launches: list[Launch] = []

    def watch(self, native, launch, ranges, host_calls=None):
        self.launches.append(launch)
        return super().watch(native, launch, ranges, host_calls)


def static(trace: Trace, launch: Launch) -> values.Values:
    return values.evaluate(trace.program, trace.kernel.descriptor, launch.code, launch)


def matmul(target: str, m: int, n: int, depth: int) -> tuple[Trace, Launch]:
    """Multiply small whole numbers, exact in every type, under trace mode."""
    torch.manual_seed(1)
    a, b = (torch.randint(-4, 5, shape).bfloat16() for shape in ((m, depth), (depth, n)))
    c = torch.zeros((m, n))
    mode = Kept()
    with wavecast.device(target, trace=mode) as hooks:
        kernels.matmul[(m // 32, n // 32)](
            a, b, c, m, n, depth, BM=32, BN=32, BK=32, ACC=tl.float32
        )
    assert torch.equal(c, a.float() @ b.float())
    (trace,) = hooks.traces
    return trace, mode.launches[0]


@pytest.mark.parametrize("target", swept(TARGETS))
def test_a_matrix_product(target: str) -> None:
    trace, launch = matmul(target, 96, 64, 160)
    assert (trace.workgroups, trace.grid, trace.complete) == (6, (3, 2, 1), True)
    known = static(trace, launch)
    for count, each in zip(trace.block_counts.tolist(), known.block_counts, strict=True):
        assert each is not None
        assert count == each * trace.waves
    device = resolve(target).device
    compared = 0
    for index, counts in trace.memory.items():
        access = known.accesses.get(index)
        if counts.space is not Space.LDS or access is None or not counts.executions:
            continue
        ways = access.conflict_ways(device)
        if ways is None:
            continue
        assert counts.conflict_ways == pytest.approx(ways)
        compared += 1
    assert compared
    stored = [m for m in trace.memory.values() if m.kind == "store" and m.space is not Space.LDS]
    assert sum(m.bytes for m in stored) == 96 * 64 * 4


def test_recorded_addresses_lie_in_the_tensors() -> None:
    trace, launch = matmul("gfx942", 64, 64, 64)
    del launch
    for stream in trace.streams:
        assert stream.complete
        for index, mask, row in zip(
            stream.instructions.tolist(), stream.masks.tolist(), stream.addresses, strict=True
        ):
            space = trace.program.instructions[index].memory.space
            lanes = [lane for lane in range(64) if mask >> lane & 1]
            places = row[lanes].tolist()
            if space is Space.LDS:
                assert all(place < 1 << 16 for place in places)
            else:
                assert all(any(a <= p < b for a, b in trace.ranges) for p in places)


def test_masked_tails_show_as_divergence() -> None:
    x = torch.randn(1000)
    i = torch.zeros(1000, dtype=torch.int32)
    y, sums = torch.zeros(1000), torch.zeros(1)
    with wavecast.device("gfx942", trace=True) as hooks:
        kernels.arithmetic[(4,)](x, y, sums, i, 1000, BLOCK=256)
    (trace,) = hooks.traces
    spaces = (Space.GLOBAL, Space.BUFFER)
    loads = [m for m in trace.memory.values() if m.kind == "load" and m.space in spaces]
    assert {m.lanes for m in loads} == {1000}
    assert all(m.contiguous == m.requests for m in loads)


def test_check_and_trace_together() -> None:
    x, y = torch.randn(256), torch.zeros(256)
    i, sums = torch.zeros(256, dtype=torch.int32), torch.zeros(1)
    with wavecast.device("gfx942", trace=True, check=True) as hooks:
        kernels.arithmetic[(1,)](x, y, sums, i, 256, BLOCK=256)
    assert hooks.traces[0].waves == 4
    torch.testing.assert_close(sums[0], x.sum(), rtol=1e-5, atol=1e-4)


def test_native_code_of_traces_is_kept_by_what_it_depends_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    one = matmul("gfx942", 64, 64, 64)[0]
    compiled: list[object] = []
    monkeypatch.setattr(native, "compile_kernel", lambda *a, **k: compiled.append(a))
    again = matmul("gfx942", 64, 64, 64)[0]
    assert not compiled
    assert again.memory == one.memory
    assert [s.blocks.tolist() for s in again.streams] == [s.blocks.tolist() for s in one.streams]
    keys = {TraceMode(**o).key("gfx942") for o in ({}, {"memory": False}, {"streams": 1})}
    assert len(keys | {TraceMode().key("gfx950")}) == 4
    assert TraceMode(streams=2).key("gfx942") == TraceMode(streams=[1]).key("gfx942")


def test_functions_that_are_called_are_counted() -> None:
    """Calls of fibonacci(n) for the largest n of 64 lanes, 7, while some lane wants more."""
    from tests.emulate import test_calls

    (code,) = load(test_calls.assembly(test_calls._SOURCE, "gfx942", 0), "gfx942")
    out = torch.zeros(64, dtype=torch.int32)
    kernarg = out.data_ptr().to_bytes(8, "little") + bytes(8)
    launch = Launch(code=code, grid=(1, 1, 1), block=(64, 1, 1), kernarg=kernarg)
    mode = TraceMode(streams=1)
    Emulator(1, mode).run(launch, [(out.data_ptr(), out.data_ptr() + out.nbytes)])
    (found,) = mode.traces
    (stream,) = found.streams
    assert stream.complete
    counted = torch.bincount(torch.from_numpy(stream.blocks.astype("int64")))
    assert counted.tolist() == found.block_counts.tolist()[: len(counted)]
    calls = [i.index for i in found.program.instructions if i.opcode.control is Control.CALL]
    assert sum(found.executions(index) for index in calls) > 40
