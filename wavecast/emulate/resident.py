"""Memory of one workgroup that runs: what the native loop of `scheduler.ll` works on."""

from __future__ import annotations

import ctypes
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np
from llvmlite import binding

from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import Launch
from wavecast.compile.names import readable
from wavecast.compile.processor import load_object, processor
from wavecast.emulate import fault, initial, polling
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import AddressFault, ExecutionError
from wavecast.emulate.hostmemory import zeros
from wavecast.emulate.job import JobWord, LoopResult, with_numbers
from wavecast.emulate.lower import named_barriers, runtime, state
from wavecast.emulate.lower.tensor_descriptor import REFUSALS, Refusal
from wavecast.emulate.program_lines import program_location
from wavecast.emulate.reports import Kind, Report
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.waits import awaits, is_named

DEFAULT_BUDGET: Final = 1 << 34
"""Instructions each wave may execute where nobody says how many: minutes of host time."""
SLICE: Final = 1 << 16
"""Instructions a wave executes before the others of its workgroup run."""
SHORT_SLICE: Final = 1 << 10
"""The same in a workgroup that only waits."""
_SHORT_QUANTUM: Final = 1 << 9
"""The same of a workgroup that only waits, in loops with barriers."""
SHARED_QUANTUM: Final = 1 << 17
"""The most where launches of several GPUs run at once: those that wait leave the host to others. It
grows from the short one."""
_STATES: Final = 16
"""States of a workgroup that are compared: one per barrier of a loop that polls."""
QUANTUM: Final = 1 << 20
"""Instructions after which the native loop returns, so that signals are seen."""
STALLED: Final = 1 << 29
"""Instructions of a wave during which memory does not change, after which it counts as endless:
seconds of host time, and as long on a GPU. A launch with an explicit budget has only that limit."""
STALLED_SECONDS: Final = 6.0
"""Processor time after which `_FEWEST` instructions suffice where a mode makes polls slow
(`LaunchGrid.quantum`)."""
_FEWEST: Final = 1 << 16
_LOOK: Final = 1 << 24
"""Instructions of a wave from one comparison of memory to the next; fewer after `_LOOK_SECONDS`."""
_LOOK_SECONDS: Final = 1.5
_LARGEST: Final = 1 << 28
"""Bytes of memory that are compared; a launch with more has only its budget."""
_ENDED: Final = 1
_WORDS: Final = {0: "in the loop of", 2: "at the barrier"}
"""Where waves are that have not ended, by their flag."""


@dataclass(frozen=True)
class LaunchGrid:
    """What the workgroups of a launch share. `budget`: instructions each wave may execute, after
    which it ends if `cut`; `chosen`: the numbers of the only workgroups to run, in order; `waves`:
    the order in which the waves of a workgroup run (int64), None for that of their numbers;
    `quantum`: instructions after which the native loop returns; `slice`: those that a wave executes
    at once; `barriers`: those of the clusters."""

    native: NativeKernel
    launch: Launch
    setup: initial.Setup
    ranges: np.ndarray
    counter: np.ndarray
    failed: np.ndarray
    budget: int
    chosen: np.ndarray | None
    cut: bool = False
    waves: np.ndarray | None = None
    quantum: int = QUANTUM
    slice: int = SLICE
    barriers: np.ndarray = field(default_factory=lambda: zeros(1, np.uint64))

    @property
    def name(self) -> str:
        """The kernel's name in messages."""
        return readable(self.native.kernel.name)

    @property
    def groups(self) -> int:
        """Workgroups to run."""
        x, y, z = self.launch.grid
        return x * y * z if self.chosen is None else len(self.chosen)

    @property
    def counts_as_endless(self) -> bool:
        """Whether a wave that changes no memory for long is an error: nobody gave a budget."""
        return self.budget == DEFAULT_BUDGET

    @property
    def is_exhausted(self) -> bool:
        """Whether every workgroup has been started."""
        return int(self.counter[0]) >= self.groups

    @property
    def lds_bytes(self) -> int:
        return self.native.descriptor.lds_bytes + self.launch.dynamic_lds

    @property
    def wave_words(self) -> int:
        """32-bit words from one wave to the next: whole lines of 64 bytes."""
        return -(-self.native.layout.words // 16) * 16

    @property
    def scratch_bytes(self) -> int:
        """Scratch of one wave."""
        return self.native.descriptor.scratch_bytes * self.native.layout.lanes

    @property
    def resident_bytes(self) -> int:
        """Host memory one workgroup takes."""
        waves = self.setup.waves
        return waves * (4 * self.wave_words + self.scratch_bytes) + self.lds_bytes


@dataclass(frozen=True, slots=True)
class MemoryProgress:
    """What memory was when it was compared last, the instructions a wave had executed when it
    became so, and when it was compared."""

    memory: tuple[int, ...]
    since: int
    compared: int
    time: float
    """Processor seconds of the host thread when memory became so."""
    compared_time: float


class Resident:
    """Room for one workgroup at a time. Raises ExecutionError when memory does not suffice."""

    def __init__(self, grid: LaunchGrid) -> None:
        self.grid = grid
        setup, native = grid.setup, grid.native
        waves, words = setup.waves, grid.wave_words
        try:
            self.states = zeros(waves * words, np.uint32)
            self.lds = zeros(max(grid.lds_bytes, 64), np.uint8)
            self.scratch = zeros(max(grid.scratch_bytes * waves, 64), np.uint8)
        except (MemoryError, ValueError):
            raise ExecutionError(
                f"{grid.name}: a workgroup takes {grid.resident_bytes} bytes of "
                "registers, LDS and scratch, more than there is"
            ) from None
        self.flags = zeros(waves, np.uint8)
        self.used = zeros(waves, np.int64)
        self.context = zeros(state.CONTEXT_WORDS, np.uint64)
        self.context[state.LDS_BASE] = self.lds.ctypes.data
        self.context[state.LDS_BYTES] = grid.lds_bytes
        self.context[state.RANGES] = grid.ranges.ctypes.data
        self.context[state.RANGE_COUNT] = len(grid.ranges)
        self.context[state.SCRATCH_BYTES] = native.descriptor.scratch_bytes
        self.context[state.DATA_BASE] = native.data.ctypes.data
        x, y, _ = grid.launch.grid
        id_x, id_y, id_z, id_cluster = setup.id_words
        cluster_x, cluster_y, cluster_z = grid.launch.cluster
        size = cluster_x * cluster_y * cluster_z
        self.context[state.CLUSTER_SIZE] = size
        words_of_job = {
            JobWord.COUNTER: grid.counter.ctypes.data,
            JobWord.GROUPS: grid.groups,
            JobWord.GRID_X: x,
            JobWord.GRID_Y: y,
            JobWord.WAVES: waves,
            JobWord.STATE_WORDS: words,
            JobWord.TEMPLATE: setup.template.ctypes.data,
            JobWord.COPIED_WORDS: setup.template.shape[1],
            JobWord.STATES: self.states.ctypes.data,
            JobWord.CONTEXT: self.context.ctypes.data,
            JobWord.FLAGS: self.flags.ctypes.data,
            JobWord.ID_X: id_x,
            JobWord.ID_Y: id_y,
            JobWord.ID_Z: id_z,
            JobWord.ID_CLUSTER: id_cluster,
            JobWord.CLUSTER_X: cluster_x,
            JobWord.CLUSTER_Y: cluster_y,
            JobWord.CLUSTER_Z: cluster_z,
            JobWord.CLUSTER_BARRIERS: grid.barriers.ctypes.data if size > 1 else 0,
            JobWord.PACKED: setup.packed,
            JobWord.SCRATCH: self.scratch.ctypes.data,
            JobWord.SCRATCH_BYTES: grid.scratch_bytes,
            JobWord.BUDGET: grid.budget,
            JobWord.FAILED: grid.failed.ctypes.data,
            JobWord.CHOSEN: 0 if grid.chosen is None else grid.chosen.ctypes.data,
            JobWord.EXECUTED: self.used.ctypes.data,
            JobWord.SLICE: grid.slice,
            JobWord.QUANTUM: grid.quantum,
            JobWord.CUT: grid.cut,
            JobWord.ORDER: 0 if grid.waves is None else grid.waves.ctypes.data,
        }
        self.job = zeros(len(JobWord), np.int64)
        for word, value in words_of_job.items():
            self.job[word] = value
        self._address = self.job.ctypes.data
        self._work, self._engine = _scheduler()
        self._seen: dict[int, int] = {}
        """Checksums of scalar registers, and of all state with them."""
        self._quantum = grid.quantum if grid.quantum == QUANTUM else _SHORT_QUANTUM
        self._progress = MemoryProgress((), 0, 0, 0.0, 0.0)

    def run(self) -> LoopResult:
        """Run the workgroup under way, then further ones, for a quantum. `ACTIVE`: a
        workgroup may be unfinished (see `active`)."""
        self.job[JobWord.QUANTUM] = self._quantum
        started = time.thread_time()
        result = self._work(self.grid.native.address, self._address)
        self.grid.native.add_runtime(time.thread_time() - started)
        return LoopResult(result)

    @property
    def active(self) -> bool:
        """Whether a workgroup is under way."""
        return bool(self.job[JobWord.ACTIVE])

    def has_moved(self) -> bool:
        """Whether the workgroup is in a state that it was not in shortly before.

        A workgroup whose registers and LDS are as they were does nothing but wait for memory; loops
        that poll between barriers have several such states. A workgroup that only waits gets short
        slices, which grow once it moves.
        """
        scalars = self.states.reshape(len(self.used), -1)[:, : state.VECTORS]
        checksum = zlib.crc32(scalars.tobytes()) ^ int(self.context[state.WORKGROUP]) << 32
        before, is_new = self._seen.get(checksum), True
        if before is not None:
            whole = zlib.crc32(self.states.data, zlib.crc32(self.lds.data))
            is_new = whole != before
            self._seen[checksum] = whole
        else:
            if len(self._seen) >= _STATES:
                del self._seen[next(iter(self._seen))]
            self._seen[checksum] = -1
        longer = min(self.grid.slice, 4 * int(self.job[JobWord.SLICE]))
        self.job[JobWord.SLICE] = longer if is_new else min(self.grid.slice, SHORT_SLICE)
        longer = min(self.grid.quantum, 2 * self._quantum)
        self._quantum = longer if is_new else min(self.grid.quantum, _SHORT_QUANTUM)
        return is_new

    def shorten(self) -> None:
        """Run short slices from now on, which grow while the workgroup moves: its waves wait for
        the next answer of the host soon."""
        self.job[JobWord.SLICE] = min(self.grid.slice, SHORT_SLICE)
        self._quantum = min(self.grid.quantum, _SHORT_QUANTUM)

    def is_stalled(self) -> bool:
        """Whether a wave has executed `STALLED` instructions, or where polls are slow less in
        `STALLED_SECONDS`, and nothing in memory has changed.

        Registers may change: a wave that counts how often it has looked at a flag waits too.
        """
        instructions, before = int(self.used.max()), self._progress
        if instructions < before.compared:
            before = MemoryProgress((), 0, 0, 0.0, 0.0)
        now, executed = time.thread_time(), instructions - before.compared
        counts, slow = self.grid.counts_as_endless, self.grid.quantum < SHARED_QUANTUM
        due = counts and executed >= min(_LOOK, STALLED // 4)
        due |= slow and executed >= _FEWEST and now - before.compared_time >= _LOOK_SECONDS
        if not due or self._memory_bytes() > _LARGEST:
            self._progress = before
            return False
        memory = self._memory()
        if memory != before.memory:
            self._progress = MemoryProgress(memory, instructions, instructions, now, now)
            return False
        self._progress = MemoryProgress(memory, before.since, instructions, before.time, now)
        same = instructions - before.since
        late = slow and same >= _FEWEST and now - before.time >= STALLED_SECONDS
        return late or (counts and same >= STALLED)

    def _memory_bytes(self) -> int:
        ranges = self.grid.ranges.reshape(-1, 2)
        return int((ranges[:, 1] - ranges[:, 0]).sum())

    def _memory(self) -> tuple[int, ...]:
        """The workgroup, and checksums of all memory of the launch and of LDS. Barriers do not
        count: a loop may poll between two of them."""
        sums = [int(self.context[state.WORKGROUP])]
        sums.append(zlib.crc32(self.lds.data))
        for first, end in self.grid.ranges.reshape(-1, 2).tolist():
            sums.append(zlib.crc32((ctypes.c_char * (end - first)).from_address(first)))
        return tuple(sums)

    def endless(self) -> ExecutionError:
        """The error of a workgroup that has stalled."""
        lines = "; ".join(self.waits()) or "its waves run"
        count = int(self.used.max()) - self._progress.since
        return ExecutionError(
            f"{self.grid.name}: {lines}; for {count:,} instructions nothing in "
            "memory has changed: the loop does not end, or waits for what nobody stores",
            hint="max_instructions sets how many are allowed",
        )

    def waits(self) -> list[str]:
        """Where the waves that have not ended are, for an error."""
        group = self.grid.launch.workgroup(int(self.context[state.WORKGROUP]))
        by_site: dict[tuple[int, Any, str], list[int]] = {}
        for wave, flag in enumerate(self.flags.tolist()):
            if flag in _WORDS:
                instruction = self._instruction(wave)
                at = flag, instruction, self._awaited(wave, instruction)
                by_site.setdefault(at, []).append(wave)
        sites = sorted(by_site.items(), key=lambda item: item[0][0])
        lines = [
            f"workgroup {group}, {_waves(waves)} {_WORDS[2 if awaited else flag]} "
            f"{self._where(instruction)}{awaited and f', {awaited}'}"
            for (flag, instruction, awaited), waves in sites
        ]
        looping = [
            wave
            for (flag, _, awaited), waves in by_site.items()
            for wave in waves
            if not flag and not awaited
        ]
        if looping and len(lines) > 1:
            lines[-1] += f", for {_waves(looping)}"
        return lines

    def _awaited(self, wave: int, instruction: Any) -> str:
        """What a wave at a named barrier waits for, "" where it is at none."""
        if not (is_named(instruction) and awaits(instruction.opcode)):
            return ""
        words = self.states[wave * self.grid.wave_words :]
        return named_barriers.describe_wait(self.context, words)

    def polls(self, memory: Callable[[int], str]) -> list[str]:
        """As `waits`, with what waves in loops poll, and whose `memory` that is."""
        kernel, layout = self.grid.native.kernel, self.grid.native.layout
        group = self.grid.launch.workgroup(int(self.context[state.WORKGROUP]))
        ranges = [(first, end) for first, end in self.grid.ranges[1:].tolist()]
        words = self.states.reshape(len(self.used), -1)
        by_text: dict[str, list[int]] = {}
        for wave in np.flatnonzero(self.flags != _ENDED).tolist():
            index = int(words[wave, state.ERROR_INSTRUCTION])
            for poll in polling.polls(kernel.program, words[wave], layout, index)[:1]:
                at = poll.instruction
                what = fault.element(kernel, self.grid.launch, at.index, poll.address, ranges)
                owner = memory(poll.address)
                text = f"{what or hex(poll.address)}{f' in {owner}' if owner else ''}"
                text = f"in a loop that polls {text}: {self._where(at)}"
                by_text.setdefault(text, []).append(wave)
        if not by_text:
            return self.waits()
        return [
            f"workgroup {group}, {_waves(waves)} {text}" for text, waves in sorted(by_text.items())
        ]

    def _where(self, instruction: Any) -> str:
        """An instruction and its line, unless a line of the program stands for that."""
        location = instruction.location
        is_shown = location and program_location(location, self.grid.launch) is location
        return f"{instruction.decoded.text!r}{f' at {location}' if is_shown else ''}"

    def waiting(self) -> int:
        """The instruction that a wave polls, or where one waits: an index."""
        kernel, layout = self.grid.native.kernel, self.grid.native.layout
        words = self.states.reshape(len(self.used), -1)
        waves = [wave for wave in range(len(self.flags)) if self.flags[wave] != _ENDED]
        paused = [(wave, int(words[wave, state.ERROR_INSTRUCTION])) for wave in waves]
        for wave, index in paused:
            for poll in polling.polls(kernel.program, words[wave], layout, index)[:1]:
                return poll.instruction.index
        return paused[0][1] if paused else 0

    def error(self) -> ExecutionError:
        """What went wrong, where, after `BROKEN`."""
        status, group, wave = (
            int(self.job[index]) for index in (JobWord.STATUS, JobWord.GROUP, JobWord.WAVE)
        )
        instruction = self._instruction(wave)
        location = program_location(instruction.location, self.grid.launch)
        where = f" at {location}" if location else ""
        text = (
            f"{self.grid.name}: workgroup {self.grid.launch.workgroup(group)}, wave {wave}{where}: "
        )
        if status == state.BAD_ADDRESS:
            address = int(self.context[state.FAULT_ADDRESS])
            lane = int(self.context[state.FAULT_LANE])
            what = f"{instruction.decoded.text!r} lane {lane} touches "
            alignment = _alignment(instruction)
            if address % alignment:
                what += (
                    f"{address:#x}, an atomic operation that is not aligned to {alignment} bytes"
                )
            else:
                ranges = [(first, end) for first, end in self.grid.ranges[1:].tolist()]
                kernel = self.grid.native.kernel
                launch = self.grid.launch
                where = fault.describe(kernel, launch, instruction.index, address, ranges)
                report = Report(
                    kind=Kind.OUT_OF_BOUNDS,
                    kernel=kernel.program.name,
                    target=launch.code.target,
                    message=f"touches {where}; the launch ended here",
                    instruction=instruction.index,
                    text=instruction.decoded.text,
                    location=instruction.location,
                    workgroup=launch.workgroup(group),
                    wave=wave,
                    lanes=(lane,),
                    addresses=(address,),
                )
                return AddressFault(
                    text + what + where,
                    kernel=report.kernel,
                    instruction=report.instruction,
                    report=report,
                )
        elif status == state.ENDLESS:
            what = (
                f"the loop of {instruction.decoded.text!r} runs longer than allowed: "
                f"{int(self.used[wave])} instructions of the wave are executed"
            )
        elif status == state.BAD_JUMP:
            what = f"{instruction.decoded.text!r} jumps to an address that is not a function"
        elif status == state.BAD_BARRIER:
            what = f"{instruction.decoded.text!r} waits for a barrier the wave has not signalled"
        elif status == state.BAD_NAMED_BARRIER:
            number = int(self.context[state.FAULT_ADDRESS])
            what = (
                f"{instruction.decoded.text!r} names barrier {number}: a workgroup has "
                f"{state.NAMED_BARRIERS}, from 1 on"
            )
        elif status == state.BAD_REGISTER:
            what = f"{instruction.decoded.text!r} reaches a register the program has not"
        elif status == state.TRAP:
            what = f"{instruction.decoded.text!r} was executed: the kernel gave up (assert, abort)"
        elif status == state.BAD_DESCRIPTOR:
            what = (
                f"{instruction.decoded.text!r} is not supported with this descriptor, which adds "
                "lane numbers, swizzles elements that are smaller than the access, or has records "
                "that end within the data"
            )
        elif status == state.BAD_TENSOR:
            refusal = Refusal(int(self.context[state.FAULT_ADDRESS].astype(np.int64)))
            what = (
                f"{instruction.decoded.text!r} is not supported with this descriptor, which "
                f"{REFUSALS[refusal]}"
            )
        else:
            what = f"{instruction.decoded.text!r} stopped with status {status}"
        return ExecutionError(text + what)

    def _instruction(self, wave: int) -> Any:
        index = int(self.states[wave * self.grid.wave_words + state.ERROR_INSTRUCTION])
        return self.grid.native.kernel.program.instructions[index]


def _waves(numbers: list[int]) -> str:
    noun = "wave" if len(numbers) == 1 else "waves"
    return f"{noun} {', '.join(map(str, numbers))}"


def _alignment(instruction: Instruction) -> int:
    """Bytes an access must be aligned to: the hardware faults on others only for atomics.

    Source: LLVM AMDGPUUsage, unaligned-access-mode, which the ROCm runtime sets.
    """
    memory = instruction.memory
    if memory is None or memory.kind is not MemoryKind.ATOMIC:
        return 1
    return memory.bytes // instruction.opcode.memory_form.offsets


@lru_cache(maxsize=1)
def _scheduler() -> tuple[Any, Any]:
    """The native loop over workgroups, and the engine that owns it."""
    key = digest.key("functions", runtime.basis(), "scheduler")
    engine = load_object(runtime.load_or_make(key, _compiled_scheduler, DiskCache()))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    return function(engine.get_function_address("work")), engine


def _compiled_scheduler() -> bytes:
    text = (resources.files("wavecast.emulate") / "scheduler.ll").read_text(encoding="utf-8")
    module = binding.parse_assembly(with_numbers(text))
    module.verify()
    return processor().machine(2).emit_object(module)


__all__ = ["LaunchGrid", "Resident"]
