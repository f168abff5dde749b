"""The planted mistakes of two GPUs: how each is launched, with and without it, what is expected.

A case is a function of a `Bench` and of whether the mistake is in. Where a mistake shows only in
one order of launches, the case waits for that order without telling the checks (`Bench.settle`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from tests.emulate.check.gpus import memory, signals
from tests.emulate.check.gpus.planting import DEADLOCK, Bench, Case

# pyright: reportArgumentType=false, reportCallIssue=false

N: Final = 64
ONE: Final = {"num_warps": 1}


def _hand_over(**wrong: str) -> Callable[[Bench, bool], None]:
    right = {"RELEASE": "release", "RELEASED": "sys", "ACQUIRE": "acquire", "ACQUIRED": "sys"}

    def run(bench: Bench, mistake: bool) -> None:
        data, flag, out = bench.zeros(N), bench.zeros(1, gpu=1), bench.empty(N, gpu=1)
        how = right | (wrong if mistake else {})
        bench.each(lambda rank: signals.hand_over[(1,)](data, flag, out, rank, **how, N=N, **ONE))

    return run


def _polled(**wrong: str) -> Callable[[Bench, bool], None]:
    right = {"ACQUIRE": "acquire", "ACQUIRED": "sys"}

    def run(bench: Bench, mistake: bool) -> None:
        data, counter, out = bench.zeros(2 * N), bench.zeros(1), bench.empty(2 * N, gpu=1)
        how, launch = right | (wrong if mistake else {}), signals.barrier_poll[(1,)]
        bench.each(lambda rank: launch(data, counter, out, rank, **how, N=N, **ONE))

    return run


def _sent(kernel: Any, flags: int = 1) -> Callable[[Bench, bool], None]:
    """A kernel of data on GPU 0, a flag and a result on GPU 1."""

    def run(bench: Bench, mistake: bool) -> None:
        data, flag = bench.zeros(2 * N), bench.zeros(flags, gpu=1)
        out = bench.empty(3 * N, gpu=1)
        bench.each(lambda rank: kernel[(1,)](data, flag, out, rank, WRONG=mistake, N=N, **ONE))

    return run


def _acknowledged(kernel: Any) -> Callable[[Bench, bool], None]:
    def run(bench: Bench, mistake: bool) -> None:
        data, flags, ack = bench.zeros(2 * N), bench.zeros(3, gpu=1), bench.zeros(1)
        out = bench.empty(3 * N, gpu=1)
        bench.each(
            lambda rank: kernel[(1,)](data, flags, ack, out, rank, WRONG=mistake, N=N, **ONE)
        )

    return run


def _calls(bench: Bench) -> Callable[[int, int, int], None]:
    """`call(rank, epoch, value)` of `epoch_call`."""
    data, flag, out = bench.zeros(N), bench.zeros(1, gpu=1), bench.empty(N, gpu=1)

    def call(rank: int, epoch: int, value: int) -> None:
        launch = signals.epoch_call[(1,)]
        bench.on(rank, lambda: launch(data, flag, out, rank, epoch, value, N=N, **ONE))

    return call


def _not_reset(bench: Bench, mistake: bool) -> None:
    call = _calls(bench)
    for gpu in range(2):
        call(gpu, 1, 1)
    for gpu in range(2):
        torch.cuda.synchronize(gpu)
    second = 1 if mistake else 2
    call(1, second, 2)
    if mistake:
        bench.settle(1)
    call(0, second, 2)


def _steps(buffers: int, count: int) -> Callable[[Bench, bool], None]:
    """`count` short launches by each rank, one behind the other."""

    def run(bench: Bench, mistake: bool) -> None:
        data, flag, ack = bench.zeros(2 * N), bench.zeros(1, gpu=1), bench.zeros(1)
        out, launch = bench.empty(N, gpu=1), signals.one_step[(1,)]

        def rank_steps(rank: int) -> None:
            for epoch in range(1, count + 1):
                launch(
                    data, flag, ack, out, rank, epoch, BUFFERS=buffers, WRONG=mistake, N=N, **ONE
                )

        bench.each(rank_steps)

    return run


def _steps_of_one_thread(bench: Bench, mistake: bool) -> None:
    """The same by one host thread; an event orders the store behind the load."""
    call, done = _calls(bench), torch.cuda.Event()
    for epoch in (1, 2):
        if epoch == 2 and not mistake:
            with torch.cuda.device(0):
                torch.cuda.current_stream().wait_event(done)
        call(0, epoch, epoch)
        call(1, epoch, epoch)
        with torch.cuda.device(1):
            done.record()


def _stale_epoch(bench: Bench, mistake: bool) -> None:
    call = _calls(bench)
    call(1, 0 if mistake else 1, 1)
    if mistake:
        bench.settle(1)
    call(0, 1, 1)


def _twice(bench: Bench, mistake: bool) -> None:
    data, counter, out = bench.zeros(2 * N), bench.zeros(1, gpu=1), bench.empty(2 * N, gpu=1)

    def call(gpu: int, number: int) -> None:
        count = 2 if mistake else 1
        launch = signals.part[(1,)]
        bench.on(gpu, lambda: launch(data, counter, out, number, SIGNALS=count, N=N, **ONE))

    call(0, 0)
    call(1, 2)
    if mistake:
        bench.settle(1)
    call(0, 1)


def _in_place(bench: Bench, mistake: bool) -> None:
    x0, x1, flags = bench.zeros(N), bench.zeros(N, gpu=1), bench.zeros(1)
    bench.each(lambda rank: signals.in_place[(1,)](x0, x1, flags, rank, WRONG=mistake, N=N, **ONE))


def _beside(bench: Bench, mistake: bool) -> None:
    pair, out = bench.zeros(1, gpu=1, dtype=torch.int64), bench.empty(1, gpu=1)
    bench.each(lambda rank: signals.beside[(1,)](pair, out, rank, WRONG=mistake, **ONE))


def _waves(bench: Bench, mistake: bool) -> None:
    data, flags = bench.zeros(256), bench.zeros(256, gpu=1)
    out = bench.empty(256, gpu=1)
    launch = signals.waves[(1,)]
    bench.each(lambda rank: launch(data, flags, out, rank, WRONG=mistake, N=256, WAVES=4))


def _others_data(bench: Bench, mistake: bool) -> None:
    data, local, flag = bench.zeros(2 * N), bench.zeros(1), bench.zeros(1, gpu=1)
    out = bench.empty(2 * N, gpu=1)
    launch = signals.others_data[(2,)]
    bench.each(lambda rank: launch(data, local, flag, out, rank, WRONG=mistake, N=N, **ONE))


def _early_exit(bench: Bench, mistake: bool) -> None:
    counter, out = bench.zeros(1), bench.empty(2)
    bench.each(
        lambda rank: signals.early_exit[(1,)](counter, out, rank, 8 * rank, WRONG=mistake, **ONE)
    )


def _cycle(bench: Bench, mistake: bool) -> None:
    flags, out = bench.zeros(2), bench.empty(2)
    bench.each(lambda rank: signals.cycle[(1,)](flags, out, rank, WRONG=mistake, **ONE))


def _shared(kernel: Any) -> Callable[[Bench, bool], None]:
    """A kernel of a table and a counter on GPU 0, and a result."""

    def run(bench: Bench, mistake: bool) -> None:
        table, counter, out = bench.empty(2 * N), bench.zeros(1), bench.empty(4 * N)
        bench.each(lambda rank: kernel[(1,)](table, counter, out, rank, WRONG=mistake, N=N, **ONE))

    return run


def _two_buffers(kernel: Any) -> Callable[[Bench, bool], None]:
    def run(bench: Bench, mistake: bool) -> None:
        x0, x1, counter = bench.empty(2 * N), bench.empty(2 * N, gpu=1), bench.zeros(1)
        out = bench.empty(2 * N)
        bench.each(lambda rank: kernel[(1,)](x0, x1, counter, out, rank, WRONG=mistake, N=N, **ONE))

    return run


def _ragged(bench: Bench, mistake: bool) -> None:
    data, counter, out = bench.empty(N), bench.zeros(1), bench.empty(N, gpu=1)
    launch = memory.ragged[(1,)]
    bench.each(lambda rank: launch(data, counter, out, rank, 40, WRONG=mistake, N=N, **ONE))


def _bounds(bench: Bench, mistake: bool) -> None:
    pool, counter, out = bench.zeros(N), bench.zeros(1), bench.empty(N, gpu=1)
    launch = memory.bounds[(1,)]
    bench.each(lambda rank: launch(pool[: N // 2], counter, out, rank, WRONG=mistake, N=N, **ONE))


def _store_bounds(bench: Bench, mistake: bool) -> None:
    pool, counter = bench.zeros(N), bench.zeros(1)
    launch = memory.store_bounds[(1,)]
    bench.each(lambda rank: launch(pool[: N // 2], counter, rank, WRONG=mistake, N=N, **ONE))


def _lost_update(bench: Bench, mistake: bool) -> None:
    counter = bench.zeros(1)
    bench.each(lambda _: memory.lost_update[(1,)](counter, WRONG=mistake, **ONE))


def _narrow_counter(bench: Bench, mistake: bool) -> None:
    counter, scope = bench.zeros(1), "gpu" if mistake else "sys"
    bench.each(lambda _: memory.narrow_counter[(1,)](counter, SCOPE=scope, **ONE))


def _one_narrow(bench: Bench, mistake: bool) -> None:
    counter = bench.zeros(1)
    narrow = memory.one_narrow[(1,)]
    bench.each(lambda rank: narrow(counter, rank, WRONG=mistake, **ONE))


def _atomic_sum(bench: Bench, mistake: bool) -> None:
    total, counter = bench.zeros(N, dtype=torch.float32), bench.zeros(1)
    out = bench.empty(N, dtype=torch.float32)
    launch = memory.atomic_sum[(1,)]
    bench.each(lambda rank: launch(total, counter, out, rank, WRONG=mistake, N=N, **ONE))


def _both_store(bench: Bench, mistake: bool) -> None:
    outs = [bench.empty(N, gpu=gpu) for gpu in range(2)]
    bench.each(lambda rank: memory.both_store[(1,)](*outs, rank, WRONG=mistake, N=N, **ONE))


def _freed(bench: Bench, mistake: bool) -> None:
    data, out, counter = bench.zeros(N), bench.empty(2 * N), bench.zeros(1)
    heaps = bench.zeros(2, dtype=torch.int64)
    bench.on(0, lambda: memory.fill[(1,)](data, 1, N=N, **ONE))
    torch.cuda.synchronize(0)
    heaps[0] = data.data_ptr()
    if mistake:
        del data
    bench.on(1, lambda: memory.through_table[(1,)](heaps, counter, out, 1, N=N, **ONE))
    torch.cuda.synchronize(1)


def _hidden_half(bench: Bench, mistake: bool) -> None:
    """GPU 0 stores one half of each dword, GPU 1 the other one, and then it loads the first."""
    x, out = (bench.zeros(2 * N, dtype=torch.int16) for _ in range(2))
    launch, event = memory.every_other[(1,)], torch.cuda.Event()
    for gpu in range(2):
        with torch.cuda.device(gpu):
            launch(x, out, gpu, STORES=True, N=N, **ONE)
            if not gpu:
                event.record()
        bench.settle(gpu)
    with torch.cuda.device(1):
        if not mistake:
            torch.cuda.current_stream().wait_event(event)
        launch(x, out, 0, STORES=False, N=N, **ONE)


def _no_event(bench: Bench, mistake: bool) -> None:
    x, out = bench.zeros(N), bench.empty(N, gpu=1)
    event = torch.cuda.Event()
    with torch.cuda.device(0):
        memory.fill[(1,)](x, 1, N=N, **ONE)
        event.record()
    with torch.cuda.device(1):
        if not mistake:
            torch.cuda.current_stream().wait_event(event)
        memory.copy[(1,)](x, out, N=N, **ONE)


def _early_event(bench: Bench, mistake: bool) -> None:
    x, out = bench.zeros(N), bench.empty(N, gpu=1)
    event = torch.cuda.Event()
    with torch.cuda.device(0):
        if mistake:
            event.record()
        memory.fill[(1,)](x, 1, N=N, **ONE)
        if not mistake:
            event.record()
    with torch.cuda.device(1):
        torch.cuda.current_stream().wait_event(event)
        memory.copy[(1,)](x, out, N=N, **ONE)


def _other_stream(bench: Bench, mistake: bool) -> None:
    x, out = bench.zeros(N), bench.empty(N, gpu=1)
    side = torch.cuda.Stream(0)
    with torch.cuda.stream(side):
        memory.fill[(1,)](x, 1, N=N, **ONE)
    waited = torch.cuda.current_stream(0) if mistake else side
    with torch.cuda.device(1):
        torch.cuda.current_stream().wait_stream(waited)
        memory.copy[(1,)](x, out, N=N, **ONE)


def _wrong_device(bench: Bench, mistake: bool) -> None:
    x, out = bench.zeros(N, gpu=1), bench.empty(N, gpu=1)
    bench.on(1, lambda: memory.fill[(1,)](x, 1, N=N, **ONE))
    bench.on(0 if mistake else 1, lambda: memory.copy[(1,)](x, out, N=N, **ONE))


RACE: Final = "gpu-race"
CASES: Final = (
    Case("release missing", "the signal is relaxed", RACE, _hand_over(RELEASE="relaxed"),
         signals.hand_over, ("release",)),
    Case("release of the GPU", "the signal is a release of agent scope", RACE,
         _hand_over(RELEASED="gpu"), signals.hand_over, ("release",)),
    Case("release of the workgroup", "the signal is a release of workgroup scope", RACE,
         _hand_over(RELEASED="cta"), signals.hand_over, ("release",)),
    Case("acquire missing", "the poll is relaxed", RACE, _hand_over(ACQUIRE="relaxed"),
         signals.hand_over, ("acquire",)),
    Case("acquire of the GPU", "the poll acquires at agent scope", RACE,
         _hand_over(ACQUIRED="gpu"), signals.hand_over, ("acquire",)),
    Case("acquire of the workgroup", "the poll is of workgroup scope", RACE,
         _hand_over(ACQUIRED="cta"), signals.hand_over, ("acquire",)),
    Case("relaxed barrier", "the poll of a barrier is relaxed, behind an arrival that is not", RACE,
         _polled(ACQUIRE="relaxed"), signals.barrier_poll, ("arrival", "poll")),
    Case("barrier of the GPU", "the poll of a barrier is of agent scope, the arrival is not", RACE,
         _polled(ACQUIRED="gpu"), signals.barrier_poll, ("arrival", "poll")),
    Case("signal first", "the data are stored behind their signal", RACE,
         _sent(signals.signal_first), signals.signal_first, ("signal",)),
    Case("read early", "the data are loaded ahead of the poll", RACE,
         _sent(signals.read_early), signals.read_early, ("load",)),
    Case("plain flag", "the flag is stored, not atomically", RACE, _sent(signals.plain_flag),
         signals.plain_flag, ("store",)),
    Case("volatile poll", "a volatile load polls, which acquires nothing", RACE,
         _sent(signals.volatile_poll), signals.volatile_poll, ("poll",)),
    Case("own signal", "a rank waits for its own signal", RACE, _sent(signals.own_slot, 2),
         signals.own_slot, ("wait", "load")),
    Case("few ranks", "a barrier counts one rank of two", RACE, _sent(signals.few_ranks),
         signals.few_ranks, ("wait", "load")),
    Case("one wait", "the first of two chunks is waited for", RACE, _sent(signals.chunks, 2),
         signals.chunks, ("wait", "load")),
    Case("buffer reused", "the next data overwrite what the peer reads", RACE,
         _acknowledged(signals.reused), signals.reused, ("store",)),
    Case("buffer reused by a launch", "the next launch overwrites what the peer reads", RACE,
         _steps(1, 2), signals.one_step, ("store", "load")),
    Case("two buffers reused", "a launch overwrites what the peer reads two steps later", RACE,
         _steps(2, 3), signals.one_step, ("store", "load")),
    Case("launch not awaited", "the next launch does not wait for the event of the peer", RACE,
         _steps_of_one_thread, signals.epoch_call, ("store", "load")),
    Case("parity", "two steps use the same half of a double buffer", RACE,
         _acknowledged(signals.parity), signals.parity, ("half", "store")),
    Case("flag not reset", "the next launch finds the signal of the last", RACE, _not_reset,
         signals.epoch_call, ("store", "wait", "load")),
    Case("stale epoch", "a rank waits for the epoch before", RACE, _stale_epoch,
         signals.epoch_call, ("store", "wait", "load")),
    Case("signal twice", "one part signals twice, for a part that has not come", RACE, _twice,
         signals.part, ("signal", "store", "load")),
    Case("in place", "a rank stores its result to what the peer still reads", RACE, _in_place,
         signals.in_place, ("load", "store")),
    Case("value and flag", "value and flag are two stores, the peer reads them as one", RACE,
         _beside, signals.beside, ("store",)),
    Case("plain reset", "the receiver resets the flag by a plain store", RACE,
         _sent(signals.reset), signals.reset, ("store",)),
    Case("one wave signals", "a wave signals for the stores of others", RACE, _waves,
         signals.waves, ("signal", "store")),
    Case("another workgroup's data", "a workgroup signals for the stores of another", RACE,
         _others_data, signals.others_data, ("signal", "store")),
    Case("wrong flag", "the signal goes to another flag than is polled", DEADLOCK,
         _sent(signals.never, 2), signals.never),
    Case("early exit", "a rank leaves before the barrier", DEADLOCK, _early_exit,
         signals.early_exit),
    Case("cycle", "each rank waits before it signals", DEADLOCK, _cycle, signals.cycle),
    Case("rank number", "two ranks store to the row of one", RACE, _shared(memory.rank_number),
         memory.rank_number, ("store",)),
    Case("rank order", "a rank stores to the row of the receiver, not of the sender",
         "uninitialised-global", _two_buffers(memory.rank_order), memory.rank_order, ("load",)),
    Case("peer's offset", "the half of the own number is read from the peer",
         "uninitialised-global", _two_buffers(memory.peer_offset), memory.peer_offset, ("load",)),
    Case("peer's memory not written", "more is read than the peer has stored",
         "uninitialised-global", _ragged, memory.ragged, ("load",)),
    Case("load beyond the peer's buffer", "more is read than the buffer has", "out-of-bounds",
         _bounds, memory.bounds, ("load",)),
    Case("store beyond the peer's buffer", "more is stored than the buffer has", "out-of-bounds",
         _store_bounds, memory.store_bounds, ("store",)),
    Case("freed memory", "the peer has freed the buffer", "touches the address", _freed,
         memory.through_table, ("load",)),
    Case("lost update", "both GPUs load, add and store", RACE, _lost_update, memory.lost_update,
         ("store",)),
    Case("counter of the GPU", "two GPUs add to a counter at agent scope", RACE, _narrow_counter,
         memory.narrow_counter, ("add",)),
    Case("one of the GPU", "one of two GPUs takes the largest at agent scope", RACE, _one_narrow,
         memory.one_narrow, ("largest",)),
    Case("sum read early", "a sum is read while the peer adds to it", RACE, _atomic_sum,
         memory.atomic_sum, ("load",)),
    Case("both store", "two ranks store different results to one place", RACE, _both_store,
         memory.both_store, ("store",)),
    Case("hidden half", "a half of a dword is loaded of which the reader has stored the other",
         RACE, _hidden_half, memory.every_other, ("load",)),
    Case("no event", "a launch does not wait for the other GPU's stream", RACE, _no_event,
         memory.copy, ("load",)),
    Case("early event", "the event is recorded before the launch", RACE, _early_event,
         memory.copy, ("load",)),
    Case("other stream", "a launch waits for another stream than the one that stores", RACE,
         _other_stream, memory.copy, ("load",)),
    Case("wrong device", "a kernel is launched on another GPU than its data's", RACE,
         _wrong_device, memory.copy, ("load",)),
)  # fmt: skip

__all__ = ["CASES", "RACE"]
