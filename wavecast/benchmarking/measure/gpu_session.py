"""One invocation that measures on the local GPU: subjects in groups, interleaved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from wavecast.benchmarking.measure import gpu
from wavecast.benchmarking.measure.gpu_environment import LocalGpuState
from wavecast.benchmarking.measure.session import Failed, Progress, SessionResult, keeping
from wavecast.benchmarking.measure.workload import Workload
from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store.base import Store
from wavecast.errors import StoreError
from wavecast.runtimes.gpu import timing

GROUP: Final = 8
"""Subjects that are interleaved. With more, the samples of one would be so far apart that each
finds the GPU as the others left it."""

_LEAST_FREE: Final = 0.3
"""The share of the memory that stays free: with less, a group is as large as it gets."""

Sampling = Callable[[str, int, float], None]
"""(subject, samples so far, relative half width of the interval of its median)."""


def gpu_session(
    run: BenchRun,
    workloads: Sequence[Workload],
    here: LocalGpuState,
    settings: gpu.GpuSettings,
    store: Store | None = None,
    progress: Progress = lambda _: None,
    sampling: Sampling = lambda *_: None,
) -> SessionResult:
    """Measure everything on this machine's GPU. Subjects are prepared until there are `GROUP` or
    the memory is full, are interleaved, and are in the store before the next group. A subject
    that fails is in the outcome, and the others continue. Ctrl-C keeps what has samples."""
    outcome = SessionResult(run)
    gpu_name = here.environment.device or here.environment.board
    stopwatch = timing.Stopwatch()
    least = _LEAST_FREE * here.local.memory_bytes
    pending = deque(workloads)
    with keeping(outcome, store) as keep:
        while pending:
            group: list[gpu.Prepared] = []
            while pending and len(group) < GROUP and (not group or timing.free() > least):
                workload = pending[0]
                progress(f"{workload.subject.key} on {gpu_name}")
                try:
                    group.append(gpu.prepare(workload, settings, here, stopwatch))
                except Exception as error:  # of any library: CUDA, the compiler, the user's code
                    timing.release()
                    if timing.out_of_memory(error) and group:
                        break  # it is the first of the next group
                    outcome.failed.append(_failure(workload, gpu_name, error))
                pending.popleft()
            records, interrupted = _measure_group(group, settings, here, outcome, sampling)
            for record in records:
                keep(record)
            group.clear()
            timing.release()
            if interrupted:
                raise KeyboardInterrupt
    return outcome


def _measure_group(
    group: Sequence[gpu.Prepared],
    settings: gpu.GpuSettings,
    here: LocalGpuState,
    outcome: SessionResult,
    sampling: Sampling,
) -> tuple[list[BenchRecord], bool]:
    """A group's records; of one that cannot be measured together, one by one."""
    keys = [case.workload.subject.key for case in group]
    try:
        return gpu.measure(
            group, settings, here, lambda number, *rest: sampling(keys[number], *rest)
        )
    except StoreError:
        raise
    except Exception as error:
        if len(group) == 1:
            gpu_name = here.environment.device or here.environment.board
            outcome.failed.append(_failure(group[0].workload, gpu_name, error))
            return [], False
    records: list[BenchRecord] = []
    for case in group:
        case_records, interrupted = _measure_group([case], settings, here, outcome, sampling)
        records += case_records
        if interrupted:
            return records, True
    return records, False


def _failure(workload: Workload, gpu_name: str, error: Exception) -> Failed:
    text = " ".join(str(error).split()) or "no message"
    return Failed(workload.subject.key, gpu_name, text[:400])


__all__ = ["GROUP", "gpu_session"]
