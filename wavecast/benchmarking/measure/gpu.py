"""Measuring on the local GPU: device times of interleaved calls, checked before they count.

Cold caches: calls cycle through sets of inputs whose bytes together exceed twice L2 and the
memory-side cache; if one set is so small that there would be too many, a write of that size
precedes each call instead. Times come from events around a call, or from replaying a graph of
the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import median
from typing import Any, Final, Literal

from wavecast.arch import Device
from wavecast.benchmarking.measure import offline, physics
from wavecast.benchmarking.measure.gpu_environment import LocalGpuState
from wavecast.benchmarking.measure.sampling import Progress, SamplingBudget, TimeSamples, sample
from wavecast.benchmarking.measure.sensors import SensorWatch
from wavecast.benchmarking.measure.workload import Workload
from wavecast.benchmarking.records import BenchRecord, Conditions, Figure
from wavecast.errors import WavecastError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.roofline import roofline
from wavecast.runtimes.gpu import timing

Cache = Literal["cold", "warm"]
Timing = Literal["events", "graph"]

MOST_SETS: Final = 64
"""More sets of inputs are not made: caches are then flushed by a write."""
UNKNOWN_CACHE: Final = 256 << 20
"""Bytes for a GPU that nobody described: the largest there is, the memory-side cache of MI300."""
_SHARE: Final = 0.4
"""The share of the free memory that the inputs of one subject may take."""
_GRAPH_SECONDS: Final = 200e-6
_GRAPH_CALLS: Final = 100
"""A graph repeats calls until it takes so long, that many at most: it takes some microseconds to
start."""


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """How to measure. `verify` compares results with the reference before times count; `offline`
    adds what is known without running: registers, LDS, the prediction."""

    cache: Cache = "cold"
    timing: Timing = "events"
    budget: SamplingBudget = field(default_factory=SamplingBudget)
    verify: bool = True
    offline: bool = True


@dataclass(slots=True)
class Prepared:
    """A workload ready to be timed. `seconds` takes a sample, the mean of `calls` calls."""

    workload: Workload
    seconds: Callable[[], float]
    conditions: Conditions
    calls: int
    known: dict[str, Figure] = field(default_factory=dict)
    digest: str = ""
    refused: str = ""
    notes: list[str] = field(default_factory=list)


class RoundRobin:
    """Calls, each with its own inputs, one after the other. A result stays until its call runs
    again, so that no call writes memory that the previous one left in a cache."""

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self.calls = list(calls)
        self._results: list[Any] = [None] * len(self.calls)
        self._next = 0

    def __call__(self) -> None:
        number = self._next % len(self.calls)
        self._next += 1
        self._results[number] = self.calls[number]()


def cache_bytes(here: LocalGpuState) -> int:
    """L2 and memory-side cache of the GPU: of `arch` where it is known, else what torch says or,
    more, the largest there is."""
    if here.device is None:
        return max(here.local.l2_bytes, UNKNOWN_CACHE)
    facts = here.device.facts
    sizes = [facts.integer(n, "B") for n in ("l2_size", "mall") if here.device.get(n) is not None]
    return sum(sizes) or max(here.local.l2_bytes, UNKNOWN_CACHE)


def prepare(
    workload: Workload, settings: GpuSettings, here: LocalGpuState, stopwatch: timing.Stopwatch
) -> Prepared:
    """Inputs, a first call that compiles, and the check of results. Raises what the call raises."""
    case = Prepared(workload, lambda: 0.0, Conditions(settings.cache, "events", "random"), 1)
    if settings.verify:
        _verify(case)
    else:
        case.notes.append("results were not checked")
    if settings.offline and here.device is not None:
        _add_offline(case, here.device, here)
    before = timing.allocated_bytes()
    calls = [workload.prepare(0, device="cuda")]
    size = timing.allocated_bytes() - before
    result = calls[0]()  # compiles
    timing.synchronise()
    footprint = max(size, timing.allocated_bytes() - before)
    del result
    flush = None
    if settings.cache == "cold":
        least = 2 * cache_bytes(here)
        count, flushed = _sets(size, footprint, least, timing.free())
        calls += [workload.prepare(seed, device="cuda") for seed in range(1, count)]
        if flushed:
            flush = timing.Flush(least)
            case.notes.append(
                f"caches are flushed before each call by a write of {least >> 20} MiB"
            )
    cycle = RoundRobin(calls)
    for _ in calls:  # what does not fit in memory is known before anything is timed
        cycle()
    timing.synchronise()
    case.seconds = lambda: stopwatch.seconds(cycle, flush)
    if settings.timing == "graph":
        graph = _capture_graph(cycle, stopwatch, flush)
        if isinstance(graph, str):
            case.notes.append(f"timed by events: {graph}")
        else:
            replay, repeats = graph
            case.conditions, case.calls = replace(case.conditions, timing="graph"), repeats
            case.seconds = lambda: stopwatch.seconds(replay, flush) / repeats
    return case


def measure(
    group: Sequence[Prepared],
    settings: GpuSettings,
    here: LocalGpuState,
    progress: Progress = lambda *_: None,
) -> tuple[list[BenchRecord], bool]:
    """The records of interleaved subjects, and whether Ctrl-C ended it. Those that were not
    called yet by then have none."""
    watch = SensorWatch(here.sensors)

    def on_sample(number: int, samples: int, width: float) -> None:
        if samples % 20 == 0:
            watch.look()
        progress(number, samples, width)

    sample_sets = sample([case.seconds for case in group], settings.budget, on_sample)
    sensors, notes = watch.finish()
    interrupted = any(sampled.stopped == "interrupted" for sampled in sample_sets)
    records = [
        _record(case, sampled, settings, here, sensors, notes)
        for case, sampled in zip(group, sample_sets, strict=True)
        if sampled.samples
    ]
    return records, interrupted


def _verify(case: Prepared) -> None:
    """Compare results with the reference, and say what is wrong."""
    try:
        error, problems = case.workload.verify()
    except Exception as failure:
        if not timing.out_of_memory(failure):
            raise
        timing.release()
        case.notes.append("results were not checked: the reference does not fit in memory")
        return
    if error is not None:
        case.known["numerical_error"] = Figure(min(error, 1e300), "measured")
    if problems:
        case.refused = f"wrong result: {problems[0]}"
        case.notes += problems[1:]


def _add_offline(case: Prepared, device: Device, here: LocalGpuState) -> None:
    """Figures of the code and the prediction, before anything is timed."""
    try:
        record = offline.measure(case.workload, device, here.environment)[0]
    except Exception as error:  # a prediction that fails, for whatever reason, costs no measurement
        why = str(error).removeprefix(case.workload.subject.key).strip()
        kind = "" if isinstance(error, WavecastError) else f"{type(error).__name__}: "
        case.notes.append(f"no prediction: {kind}{why}")
        return
    case.known = {**record.figures, **case.known}
    case.digest = record.digest


def _sets(size: int, footprint: int, least: int, free: int) -> tuple[int, bool]:
    """(sets of inputs of `size` bytes, whether a write must flush `least` bytes besides). A set
    takes `footprint` bytes with its results."""
    if size <= 0:
        return 1, True  # calls share their tensors: a function that made them before
    set_count = max(2, ceil(least / size) + 1)
    fitting = int(_SHARE * free / footprint)
    return (set_count, False) if set_count <= min(fitting, MOST_SETS) else (1, True)


def _capture_graph(
    cycle: RoundRobin, stopwatch: timing.Stopwatch, flush: timing.Call | None
) -> tuple[timing.Call, int] | str:
    """(what replays so many calls, how many), or why there is no graph. With a flush before it
    a graph holds one call."""
    if flush is not None:
        calls = cycle.calls[:1]
    else:
        once = min(stopwatch.seconds(cycle) for _ in range(3))
        call_count = ceil(_GRAPH_SECONDS / once) if once > 0 else _GRAPH_CALLS
        rounds = max(1, ceil(min(call_count, _GRAPH_CALLS) / len(cycle.calls)))
        calls = cycle.calls * rounds
    try:
        return timing.Graph(calls), len(calls)
    except timing.NotCaptured as error:
        return str(error)


def _record(
    case: Prepared,
    sampled: TimeSamples,
    settings: GpuSettings,
    here: LocalGpuState,
    sensors: dict[str, float],
    notes: tuple[str, ...],
) -> BenchRecord:
    samples, device, work = tuple(sampled.samples), here.device, case.workload.work()
    floor = roofline(work, device).floor_seconds if work and device else None
    resolution = physics.TIMER_SECONDS / case.calls
    cold = settings.cache == "cold"
    if work and device:
        implausible = too_fast(samples, work, device, cache_bytes(here), cold, resolution)
    else:
        implausible = physics.implausible(samples, cold=cold, resolution=resolution)
    time = Figure(median(samples), "measured", samples=samples)
    more = list(case.notes)
    if not sampled.settled:
        more.append(f"times had not settled after {sampled.warm_ups} calls of warming up")
    if sampled.stopped == "interrupted":
        more.append(f"interrupted after {len(samples)} samples")
    return BenchRecord(
        subject=case.workload.subject,
        environment=here.environment,
        conditions=case.conditions,
        figures={**case.known, "measured_seconds": time},
        digest=case.digest,
        floor_seconds=floor,
        refused=case.refused or implausible,
        notes=(*more, *notes),
        sensors=sensors,
    )


def too_fast(
    samples: Sequence[float],
    work: Work,
    device: Device,
    cache: int,
    cold: bool,
    resolution: float = physics.TIMER_SECONDS,
) -> str:
    """Why samples of `work` cannot be true, "" if they can. Of what it writes, as much as `cache`
    bytes hold may still lie there when it ends: only the rest must have moved."""
    if work.bytes_written is not None:
        work = replace(work, bytes_written=max(0.0, work.bytes_written - cache))
    if work.bytes_at_most:  # data decides how much is read: there is no least
        work = replace(work, bytes_read=0.0)
    roof, peak = roofline(work, device), device.peak_bandwidth()
    rate = peak.value if peak is not None else None
    return physics.implausible(
        samples,
        floor_seconds=roof.floor_seconds,
        floor_of=roof.bound,
        cold=cold,
        least_bytes=work.bytes,
        peak_bandwidth=rate if isinstance(rate, (int, float)) else None,
        resolution=resolution,
    )


__all__ = [
    "MOST_SETS",
    "GpuSettings",
    "Prepared",
    "RoundRobin",
    "cache_bytes",
    "measure",
    "prepare",
    "too_fast",
]
