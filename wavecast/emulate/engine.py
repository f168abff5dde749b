"""Running a launch: set up waves, walk the grid over host threads.

The loop over workgroups is native: `group` runs the waves of one workgroup in turns between
barriers, `work` takes workgroups from a shared counter until the grid is done or one fails.
"""

from __future__ import annotations

import ctypes
import threading
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from llvmlite import binding

from wavecast.compile.codeobject import Launch
from wavecast.emulate import initial
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.lower import state
from wavecast.emulate.lower.state import FAULT_ADDRESS, FAULT_LANE
from wavecast.emulate.mode import Mode
from wavecast.emulate.native import NativeKernel, translate
from wavecast.emulate.processor import load_object, processor


@lru_cache(maxsize=1)
def _scheduler() -> tuple[Any, Any]:
    """The native loop over workgroups, and the engine that owns it."""
    text = (resources.files("wavecast.emulate") / "scheduler.ll").read_text(encoding="utf-8")
    module = binding.parse_assembly(text)
    module.verify()
    engine = load_object(processor().machine(1).emit_object(module))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    return function(engine.get_function_address("work")), engine


def run(
    native: NativeKernel,
    launch: Launch,
    ranges: list[tuple[int, int]],
    *,
    threads: int = 1,
    budget: int = 1 << 40,
    mode: Mode | None = None,
) -> None:
    """Run a launch with code translated for `mode`. `ranges` are the (first, end) host addresses it
    may touch.

    Raises ExecutionError naming instruction, source line, workgroup, wave, lane and address.
    """
    segment = initial.segment(native, launch)
    known = [(segment.ctypes.data, segment.ctypes.data + segment.size), *ranges]
    table = np.array(known, dtype=np.uint64)
    setup = initial.prepare(native, launch, segment)
    counter, failed = np.zeros(8, np.int64), np.zeros(8, np.int64)
    watch = mode.watch(native, launch, known) if mode is not None else None
    chosen = watch.workgroups if watch is not None else None
    workers = [
        _Worker(native, launch, setup, table, counter, failed, budget, chosen)
        for _ in range(threads)
    ]
    if watch is not None:
        for worker in workers:
            watch.attach(worker.context)
    _start(native, workers)
    broken = next((worker for worker in workers if worker.job[15]), None)
    if watch is not None:
        watch.close(failed=broken is not None)
    if broken is not None:
        raise broken.error()


def _start(native: NativeKernel, workers: list[_Worker]) -> None:
    """Run a launch to its end, one worker per host thread."""
    work, _ = _scheduler()
    if len(workers) == 1:
        work(native.address, workers[0].job.ctypes.data)
    else:
        pool = [
            threading.Thread(target=work, args=(native.address, w.job.ctypes.data)) for w in workers
        ]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()


class _Worker:
    """The memory one host thread works in."""

    def __init__(
        self,
        native: NativeKernel,
        launch: Launch,
        setup: initial.Setup,
        table: np.ndarray,
        counter: np.ndarray,
        failed: np.ndarray,
        budget: int,
        chosen: np.ndarray | None = None,
    ) -> None:
        self.chosen = chosen
        self.native, self.launch, self.setup = native, launch, setup
        self.table = table
        waves, words = setup.waves, -(-native.layout.words // 16) * 16
        self.states = _aligned(waves * words, np.uint32)
        lds = native.descriptor.lds_bytes + launch.dynamic_lds
        self.lds = _aligned(max(lds, 64), np.uint8)
        scratch = native.descriptor.scratch_bytes
        per_wave = scratch * native.layout.lanes
        self.scratch = _aligned(max(per_wave * waves, 64), np.uint8)
        self.flags = np.zeros(waves, np.uint8)
        self.context = np.zeros(state.CONTEXT_WORDS, np.uint64)
        self.context[state.LDS_BASE] = self.lds.ctypes.data
        self.context[state.LDS_BYTES] = lds
        self.context[state.RANGES] = table.ctypes.data
        self.context[state.RANGE_COUNT] = len(table)
        self.context[state.SCRATCH_BYTES] = scratch
        x, y, z = launch.grid
        words_of_ids = setup.id_words
        groups = x * y * z if chosen is None else len(chosen)
        self.job = np.array(
            [
                counter.ctypes.data, groups, x, y, waves, words,
                setup.template.ctypes.data, setup.template.shape[1], self.states.ctypes.data,
                self.context.ctypes.data, self.flags.ctypes.data, *words_of_ids,
                setup.packed, 0, 0, 0, self.scratch.ctypes.data, per_wave, budget,
                failed.ctypes.data, 0 if chosen is None else chosen.ctypes.data,
            ],
            dtype=np.int64,
        )  # fmt: skip

    def _nearest(self, address: int) -> str:
        """Where the address lies relative to the nearest range a launch may touch."""
        best = None
        for first, end in self.table[1:].tolist():
            if address < first:
                distance, side = first - address, "before"
            else:
                distance, side = address - end, "after the end of"
            if best is None or distance < best[0]:
                best = distance, side, first, end
        if best is None:
            return ", and no memory is known"
        distance, side, first, end = best
        if distance < 0:
            return f", which reaches beyond the end of {first:#x}..{end:#x}"
        return f", {distance} bytes {side} {first:#x}..{end:#x}"

    def error(self) -> ExecutionError:
        """What went wrong, where."""
        status, group, wave = (int(self.job[index]) for index in (15, 16, 17))
        words = int(self.job[5])
        index = int(self.states[wave * words + state.ERROR_INSTRUCTION])
        program = self.native.kernel.program
        instruction = program.instructions[index]
        where = f" at {instruction.location}" if instruction.location else ""
        x, y, _ = self.launch.grid
        place = (group % x, group // x % y, group // x // y)
        text = f"{program.name}: workgroup {place}, wave {wave}{where}: "
        if status == state.BAD_ADDRESS:
            address, lane = int(self.context[FAULT_ADDRESS]), int(self.context[FAULT_LANE])
            what = f"{instruction.decoded.text!r} lane {lane} touches unknown address {address:#x}"
            what += self._nearest(address)
        elif status == state.ENDLESS:
            what = "the loop runs longer than allowed"
        elif status == state.SWIZZLED:
            what = f"{instruction.decoded.text!r} goes through a swizzled buffer: not supported"
        else:
            what = f"stopped with status {status}"
        return ExecutionError(text + what)


def _aligned(count: int, dtype: type) -> np.ndarray:
    """Zeroed memory at a 64-byte boundary."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(count * size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * size].view(dtype)


__all__ = ["run", "translate"]
