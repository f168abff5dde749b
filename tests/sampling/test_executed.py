"""Launches predicted from a sample: nothing is changed, and time follows what is asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.perfmodel.interval import interval_of
from wavecast import analyze, arch
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.errors import ExecutionError
from wavecast.errors import UsageError
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.predict import kernel_subject
from wavecast.perfmodel.profile import ProfileSource
from wavecast.runtimes.module.function import Function
from wavecast.runtimes.module.loading import Module
from wavecast.sampling import sample

SOURCE = """
__global__ void stream(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + 1.0f;
}
__global__ void chain(float* data, const int* next, int steps) {
    int at = threadIdx.x;
    for (int i = 0; i < steps; i++) at = next[at];
    data[threadIdx.x] = at;
}
__global__ void uneven(float* data, const int* trips) {
    float sum = 0;
    for (int i = 0; i < trips[blockIdx.x]; i++) sum += data[i];
    data[blockIdx.x] = sum;
}
__global__ void endless(float* data, volatile int* flag) {
    while (flag[0] == 0) {}
    data[threadIdx.x] = 1.0f;
}
__global__ void turns(float* data, int stride) {
    __shared__ float room[64 * 32];
    for (int i = 0; i < 64; i++) room[(threadIdx.x * stride + i) % 2048] += 1.0f;
    data[threadIdx.x] = room[threadIdx.x];
}
__global__ void histogram(const int* values, int* bins) {
    atomicAdd(&bins[values[blockIdx.x * blockDim.x + threadIdx.x] & 255], 1);
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    path = Path(tmp_path_factory.mktemp("predict")) / "k.hip"
    path.write_text(SOURCE)
    return wavecast.load(path, arch="mi300x")


def floats(n: int) -> np.ndarray:
    return np.zeros(n, np.float32)


def streamed(function: Function, n: int) -> float:
    return function.predict(-(-n // 256), 256, floats(n), floats(n), n).seconds


def test_arrays_stay_as_they_are(module) -> None:
    out = floats(1000)
    found = module["stream"].predict(4, 256, np.ones(1000, np.float32), out, 1000)
    assert not out.any()
    assert found.fidelity == "executed"
    subject = kernel_subject("hip", ProfileSource.SAMPLE, 1024)
    expected = interval_of(found, subject, arch.load("mi300x"))
    assert (found.low, found.high) == pytest.approx(expected)


def test_streaming_follows_the_bytes(module) -> None:
    small, large, larger = (streamed(module["stream"], n) for n in (1 << 10, 1 << 26, 1 << 27))
    assert 2e-6 < small < 8e-6
    assert larger / large == pytest.approx(2, rel=0.1)
    bandwidth = 8 * (1 << 27) / larger
    assert 2e12 < bandwidth < 5.4e12


def test_a_chain_of_loads_follows_the_latency_of_where_they_hit(module) -> None:
    near = np.zeros(64, np.int32)
    far = np.random.default_rng(0).permutation(1 << 23).astype(np.int32)

    def each(table: np.ndarray) -> float:
        times = [
            module["chain"].predict(1, 64, floats(64), table, steps).seconds for steps in (64, 1064)
        ]
        return (times[1] - times[0]) / 1000

    assert 40e-9 < each(near) < 120e-9
    assert each(far) > 1.5 * each(near)


def test_bank_conflicts_cost(module) -> None:
    times = [module["turns"].predict(4096, 64, floats(64), s).seconds for s in (1, 32)]
    assert times[1] > 2 * times[0]


def test_every_lane_of_an_atomic_counts(module) -> None:
    """64 lanes update some 56 of the 256 addresses of 16 lines: each of them counts, not each line.
    What is known of the sample is the bound that the code has."""
    values = np.random.default_rng(0).integers(0, 1 << 20, 1 << 22, np.int32)
    found = module["histogram"].predict(1 << 14, 256, values, np.zeros(256, np.int32))
    clock = arch.load("mi300x").clock_hz.number
    assert found.bounds["atomics"] == pytest.approx((1 << 22) / 256 / clock, rel=0.02)


def test_workgroups_that_differ_widen_the_interval(module) -> None:
    even = np.full(256, 100, np.int32)
    uneven = np.where(np.arange(256) % 16 < 8, 10, 190).astype(np.int32)
    one, other = (module["uneven"].predict(256, 64, floats(256), trips) for trips in (even, uneven))
    assert not any("than each other" in note for note in one.notes)
    assert any("than each other" in note for note in other.notes)
    narrow, wide = (np.log(found.high / found.low) for found in (one, other))
    assert wide > 1.5 * narrow


def test_first_workgroups_that_have_more_to_do_do_not_stand_for_all(module) -> None:
    """Kernels give their longest workgroups out first; the launch takes its usual ones' time."""
    number, first = 16384, 8192
    longest = np.where(np.arange(number) < first, 4000, 400).astype(np.int32)
    shortest = longest[::-1].copy()
    even = np.full(number, int(longest.mean()), np.int32)
    times = [
        module["uneven"].predict(number, 64, floats(number), trips).seconds
        for trips in (longest, shortest, even)
    ]
    assert times == pytest.approx([times[2]] * 3, rel=0.1)


def test_the_unit_that_is_simulated_has_usual_workgroups(module) -> None:
    """The longest workgroups of a die come first, one on each of its units."""
    die = np.linspace(4000, 100, 38).astype(np.int32)
    profile = module["uneven"].executed(304, 64, floats(4096), np.repeat(die, 8))
    assert profile.work == pytest.approx(1, abs=0.05)


def test_one_round_lasts_as_long_as_its_longest_workgroup_wherever_it_is(module) -> None:
    def took(trips: np.ndarray) -> float:
        return module["uneven"].predict(len(trips), 64, floats(4096), trips).seconds

    trips = np.full(64, 400, np.int32)
    trips[:3] = 4000
    alone = took(np.full(1, 4000, np.int32))
    times = [took(trips), took(trips[::-1].copy()), took(np.roll(trips, 32))]
    assert times == pytest.approx([alone] * 3, rel=0.15)


def test_other_devices_of_the_target(module) -> None:
    n = 1 << 26
    x = floats(n)
    times = {
        device: module["stream"].predict(n // 256, 256, x, x, n, device=device).seconds
        for device in ("mi300x", "mi300a")
    }
    assert times["mi300x"] < times["mi300a"]
    with pytest.raises(UsageError, match="gfx942"):
        module["stream"].predict(1, 256, x, x, n, device="mi355x")


def test_the_same_launch_has_the_same_time(module) -> None:
    assert streamed(module["stream"], 5000) == streamed(module["stream"], 5000)


def test_a_workgroup_that_does_not_end_is_refused(module, monkeypatch) -> None:
    monkeypatch.setattr(sample, "MOST", 100_000)
    with pytest.raises(ExecutionError, match="did not end"):
        module["endless"].predict(1, 64, floats(64), np.zeros(1, np.int32))


@pytest.mark.parametrize(("option", "unit"), [("-mcumode", "CU"), ("-mno-cumode", "WGP")])
def test_code_and_sample_of_an_rdna_kernel_run_on_the_same_units(tmp_path, option, unit) -> None:
    path = tmp_path / "k.hip"
    path.write_text(SOURCE)
    device = arch.load("gfx1100")
    stream = wavecast.load(path, arch="gfx1100", options=[option])["stream"]
    x, n = floats(1 << 16), 1 << 16
    sampled = stream.executed(256, 256, x, x, n).placement
    kernel, launch = parse_kernel(stream.code), Launch(stream.code, (256, 1, 1), (256, 1, 1))
    found = analyze.analyze(stream.code, device, kernel.program, kernel.descriptor, launch)
    assert sampled == LaunchPlacement.of(launch, found.occupancy, device, 32)
    assert sampled.unit == unit
