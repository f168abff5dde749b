"""Kernels of two GPUs that hand data over by signals, each with a mistake where it is planted.

Rank 0 of a hand-over stores `data` and signals; rank 1 waits and loads. A case names its kernel and
the line; `WRONG` selects the mistake.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import triton
import triton.language as tl


@triton.jit
def signal(flag, value):
    tl.atomic_xchg(flag, value, sem="release", scope="sys")


@triton.jit
def wait(flag, value):
    while tl.atomic_add(flag, 0, sem="acquire", scope="sys") < value:
        pass


@triton.jit
def hand_over(
    data, flag, out, rank,
    RELEASE: tl.constexpr, RELEASED: tl.constexpr, ACQUIRE: tl.constexpr, ACQUIRED: tl.constexpr,
    N: tl.constexpr,
):  # fmt: skip
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs + 1)
        tl.atomic_xchg(flag, 1, sem=RELEASE, scope=RELEASED)  # planted: release
    else:
        while tl.atomic_add(flag, 0, sem=ACQUIRE, scope=ACQUIRED) < 1:  # planted: acquire
            pass
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def barrier_poll(
    data, counter, out, rank, ACQUIRE: tl.constexpr, ACQUIRED: tl.constexpr, N: tl.constexpr
):
    """A barrier of two ranks: a rank arrives at system scope, and polls what it has added to. LLVM
    gives the poll the line of the arrival."""
    offs = tl.arange(0, N)
    tl.store(data + rank * N + offs, offs + rank)
    tl.atomic_add(counter, 1, sem="release", scope="sys")  # planted: arrival
    while tl.atomic_add(counter, 0, sem=ACQUIRE, scope=ACQUIRED) < 2:  # planted: poll
        pass
    tl.store(out + rank * N + offs, tl.load(data + (1 - rank) * N + offs))


@triton.jit
def signal_first(data, flag, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if rank == 0:
        if WRONG:
            signal(flag, 1)  # planted: signal
            tl.store(data + offs, offs + 1)
        else:
            tl.store(data + offs, offs + 1)
            signal(flag, 1)
    else:
        wait(flag, 1)
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def read_early(data, flag, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs + 1)
        signal(flag, 1)
    elif WRONG:
        found = tl.load(data + offs)  # planted: load
        wait(flag, 1)
        tl.store(out + offs, found)
    else:
        wait(flag, 1)
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def plain_flag(data, flag, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs + 1)
        if WRONG:
            tl.store(flag, 1)  # planted: store
        else:
            signal(flag, 1)
    else:
        wait(flag, 1)
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def volatile_poll(data, flag, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs + 1)
        signal(flag, 1)
    else:
        if WRONG:
            while tl.load(flag, volatile=True) < 1:  # planted: poll
                pass
        else:
            wait(flag, 1)
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def reused(data, flags, ack, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """The buffer is sent twice, with a flag per step."""
    offs = tl.arange(0, N)
    for step in range(2):
        if rank == 0:
            if not WRONG:
                wait(ack, step)
            tl.store(data + offs, offs + step)  # planted: store
            signal(flags + step, 1)
        else:
            wait(flags + step, 1)
            tl.store(out + step * N + offs, tl.load(data + offs))
            signal(ack, step + 1)


@triton.jit
def parity(data, flags, ack, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Two halves of a buffer are used in turns; the sender is one step ahead at most."""
    offs = tl.arange(0, N)
    for step in range(3):
        number = step // 2 if WRONG else step % 2  # planted: half
        half = data + number * N + offs
        if rank == 0:
            if step == 2:
                wait(ack, 1)
            tl.store(half, offs + step)  # planted: store
            signal(flags + step, 1)
        else:
            wait(flags + step, 1)
            tl.store(out + step * N + offs, tl.load(half))
            signal(ack, step + 1)


@triton.jit
def chunks(data, flags, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Every chunk has a signal; the mistake waits for the first one only."""
    offs = tl.arange(0, N)
    for chunk in range(2):
        if rank == 0:
            tl.store(data + chunk * N + offs, offs + chunk)
            signal(flags + chunk, 1)
        else:
            if WRONG:
                wait(flags, 1)  # planted: wait
            else:
                wait(flags + chunk, 1)
            value = tl.load(data + chunk * N + offs)  # planted: load
            tl.store(out + chunk * N + offs, value)


@triton.jit
def own_slot(data, flags, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Both ranks send; flags[r] is the signal of rank r."""
    offs = tl.arange(0, N)
    peer = 1 - rank
    tl.store(data + rank * N + offs, offs + rank)
    signal(flags + rank, 1)
    if WRONG:
        wait(flags + rank, 1)  # planted: wait
    else:
        wait(flags + peer, 1)
    value = tl.load(data + peer * N + offs)  # planted: load
    tl.store(out + rank * N + offs, value)


@triton.jit
def few_ranks(data, counter, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """A barrier of two ranks that one rank alone passes."""
    offs = tl.arange(0, N)
    tl.store(data + rank * N + offs, offs + rank)
    tl.atomic_add(counter, 1, sem="release", scope="sys")
    if WRONG:
        wait(counter, 1)  # planted: wait
    else:
        wait(counter, 2)
    value = tl.load(data + (1 - rank) * N + offs)  # planted: load
    tl.store(out + rank * N + offs, value)


@triton.jit(do_not_specialize=["epoch", "value"])
def epoch_call(data, flag, out, rank, epoch, value, N: tl.constexpr):
    """One of several calls: the flag stays set, and every call waits for its epoch."""
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs + value)  # planted: store
        signal(flag, epoch)
    else:
        wait(flag, epoch)  # planted: wait
        found = tl.load(data + offs)  # planted: load
        tl.store(out + offs, found)


@triton.jit(do_not_specialize=["epoch", "rank"])
def one_step(
    data, flag, ack, out, rank, epoch,
    BUFFERS: tl.constexpr, WRONG: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """One step of many, each a launch of both ranks; `BUFFERS` are used in turns."""
    offs = tl.arange(0, N)
    half = data + epoch % BUFFERS * N + offs
    if rank == 0:
        if not WRONG:
            wait(ack, epoch - BUFFERS)
        tl.store(half, offs + epoch)  # planted: store
        signal(flag, epoch)
    else:
        wait(flag, epoch)
        tl.store(out + offs, tl.load(half))  # planted: load
        signal(ack, epoch)


@triton.jit
def part(data, counter, out, number, SIGNALS: tl.constexpr, N: tl.constexpr):
    """Parts 0 and 1 are sent by launches of GPU 0, number 2 is the receiver."""
    offs = tl.arange(0, N)
    if number < 2:
        tl.store(data + number * N + offs, offs + 1)  # planted: store
        for _ in range(SIGNALS):
            tl.atomic_add(counter, 1, sem="release", scope="sys")  # planted: signal
    else:
        wait(counter, 2)
        for one in range(2):
            value = tl.load(data + one * N + offs)  # planted: load
            tl.store(out + one * N + offs, value)


@triton.jit
def in_place(x0, x1, flags, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """x0 = x1 = x0 + x1; a rank that stores must know that its peer has read."""
    offs = tl.arange(0, N)
    tl.atomic_add(flags, 1, sem="acq_rel", scope="sys")
    wait(flags, 2)
    total = tl.load(x0 + offs) + tl.load(x1 + offs)  # planted: load
    if not WRONG:
        tl.atomic_add(flags, 1, sem="acq_rel", scope="sys")
        wait(flags, 4)
    if rank == 0:
        tl.store(x0 + offs, total)  # planted: store
    else:
        tl.store(x1 + offs, total)  # planted: store


@triton.jit
def beside(pair, out, rank, WRONG: tl.constexpr):
    """Value and flag in eight bytes that are polled together (the LL protocol)."""
    words = pair.to(tl.pointer_type(tl.int32))
    if rank == 0:
        if WRONG:
            tl.store(words, 7)  # planted: store
            tl.atomic_xchg(words + 1, 1, sem="relaxed", scope="sys")
        else:
            tl.atomic_xchg(pair, (1 << 32) + 7, sem="relaxed", scope="sys")
    else:
        found = tl.atomic_add(pair, 0, sem="relaxed", scope="sys")
        while found < 1 << 32:
            found = tl.atomic_add(pair, 0, sem="relaxed", scope="sys")
        tl.store(out, found & 0xFFFFFFFF)


@triton.jit
def reset(data, flag, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """The receiver resets the flag, which the sender then sets again."""
    offs = tl.arange(0, N)
    for step in range(2):
        if rank == 0:
            while tl.atomic_add(flag, 0, sem="acquire", scope="sys") != 0:
                pass
            tl.store(data + offs, offs + step)
            signal(flag, 1)
        else:
            wait(flag, 1)
            tl.store(out + step * N + offs, tl.load(data + offs))
            if WRONG:
                tl.store(flag, 0)  # planted: store
            else:
                signal(flag, 0)


@triton.jit
def waves(
    data, flags, out, rank, WRONG: tl.constexpr, N: tl.constexpr, WAVES: tl.constexpr
):  # fmt: skip
    """Several waves store; every one has to release its own stores."""
    offs = tl.arange(0, N)
    thread = tl.arange(0, WAVES * 64)
    if rank == 0:
        tl.store(data + offs, offs + 1)  # planted: store
        if WRONG:
            tl.debug_barrier()
            mask = thread == 0
            tl.atomic_xchg(
                flags + thread, WAVES, mask=mask, sem="release", scope="sys"
            )  # planted: signal
        else:
            first = thread % 64 == 0
            tl.atomic_add(flags + thread * 0, 1, mask=first, sem="release", scope="sys")
    else:
        wait(flags, WAVES)
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def others_data(data, local, flag, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Two workgroups of GPU 0 store; the mistake lets the first one signal for both."""
    offs = tl.arange(0, N)
    pid = tl.program_id(0)
    if rank == 0:
        tl.store(data + pid * N + offs, offs + pid)  # planted: store
        if WRONG:
            if pid == 0:
                signal(flag, 1)  # planted: signal
        elif tl.atomic_add(local, 1, sem="acq_rel", scope="sys") == 1:
            signal(flag, 1)
    elif pid == 0:
        wait(flag, 1)
        for one in range(2):
            tl.store(out + one * N + offs, tl.load(data + one * N + offs))


@triton.jit
def never(data, flags, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """The signal goes to another flag than the one that is polled."""
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs + 1)
        signal(flags + WRONG, 1)
    else:
        wait(flags, 1)  # planted: wait
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def early_exit(counter, out, rank, n, WRONG: tl.constexpr):
    """A rank without work leaves before the barrier."""
    if n == 0 and WRONG:
        return
    tl.atomic_add(counter, 1, sem="acq_rel", scope="sys")
    wait(counter, 2)  # planted: wait
    tl.store(out + rank, n)


@triton.jit
def cycle(flags, out, rank, WRONG: tl.constexpr):
    """Both wait for the other's signal before they send theirs."""
    if not WRONG:
        signal(flags + rank, 1)
    wait(flags + 1 - rank, 1)  # planted: wait
    if WRONG:
        signal(flags + rank, 1)
    tl.store(out + rank, 1)
