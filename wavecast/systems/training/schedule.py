"""Pipeline schedules: the order of work of every stage, and the time it takes.

Orders are those of `torch.distributed.pipelining` (a test compares them). `simulate` runs them: an
action starts when its GPU is free and its input has arrived. Zero-bubble is ZB-H1 (Qi et al. 2023,
"Zero Bubble Pipeline Parallelism"): the gradients of weights are computed after those of inputs,
where the GPU would wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from wavecast.errors import UsageError

FORWARD, BACKWARD, INPUT_GRAD, WEIGHT_GRAD = "F", "B", "I", "W"
MOST_ACTIONS = 1 << 21
"""Actions of a step that are simulated at most."""

Action = tuple[str, int, int]
"""What is computed, of which chunk of the model, for which micro-batch."""


@dataclass(frozen=True, slots=True)
class ChunkTimes:
    """Seconds of one micro-batch on one chunk of layers."""

    forward: float
    input_grad: float
    weight_grad: float

    def of(self, work: str) -> float:
        """The time of an action."""
        if work == FORWARD:
            return self.forward
        if work == INPUT_GRAD:
            return self.input_grad
        return self.weight_grad if work == WEIGHT_GRAD else self.input_grad + self.weight_grad


@dataclass(frozen=True, slots=True)
class PipelineTime:
    """`seconds` of all micro-batches, those a GPU computes in (`busy`, of the busiest), the rest
    of them (`bubble`, the share in which the busiest GPU waits), and how many chunks have stored
    activations at most on each GPU (`stored`)."""

    seconds: float
    busy: float
    stored: tuple[int, ...]

    @property
    def bubble(self) -> float:
        """Share of the time in which the busiest GPU waits."""
        return 1 - self.busy / self.seconds if self.seconds else 0.0


def orders(schedule: str, stages: int, micro_batches: int, chunks: int = 1) -> list[list[Action]]:
    """The actions of every GPU in order. Raises UsageError for too many of them."""
    if stages * micro_batches * chunks * 3 > MOST_ACTIONS:
        raise UsageError(
            f"{micro_batches} micro-batches on {stages} stages of {chunks} chunks are too many to "
            "simulate",
            hint="a larger --micro-batch gives fewer",
        )
    if schedule == "gpipe":
        return [
            [(FORWARD, rank, m) for m in range(micro_batches)]
            + [(BACKWARD, rank, m) for m in range(micro_batches)]
            for rank in range(stages)
        ]
    if schedule == "zero-bubble":
        return [_zero_bubble(rank, stages, micro_batches) for rank in range(stages)]
    return [_interleaved_1f1b(rank, stages, micro_batches, chunks) for rank in range(stages)]


def _warmup(rank: int, stages: int, micro_batches: int, chunks: int) -> int:
    """Forward passes before the first backward pass. One chunk: 1F1B."""
    if chunks == 1:
        return min(micro_batches, stages - rank - 1)
    return min(micro_batches * chunks, (chunks - 1) * stages + 2 * (stages - 1 - rank))


def _interleaved_1f1b(rank: int, stages: int, micro_batches: int, chunks: int) -> list[Action]:
    warmup = _warmup(rank, stages, micro_batches, chunks)
    total = micro_batches * chunks
    forward = _interleave_chunks(FORWARD, rank, stages, total, chunks, last_first=False)
    backward = _interleave_chunks(BACKWARD, rank, stages, total, chunks, last_first=True)
    actions = forward[:warmup]
    for ahead, behind in zip(forward[warmup:], backward, strict=False):
        actions += [ahead, behind]
    return actions + backward[total - warmup :]


def _interleave_chunks(
    work: str, rank: int, stages: int, total: int, chunks: int, *, last_first: bool
) -> list[Action]:
    """Groups of `stages` micro-batches pass through a chunk before the next chunk."""
    next_micro_batch = [0] * chunks
    actions: list[Action] = []
    for number in range(total):
        chunk = (number // stages) % chunks
        chunk = chunks - 1 - chunk if last_first else chunk
        actions.append((work, chunk * stages + rank, next_micro_batch[chunk]))
        next_micro_batch[chunk] += 1
    return actions


def _zero_bubble(rank: int, stages: int, micro_batches: int) -> list[Action]:
    """1F1B with gradients of weights `rank` micro-batches after those of the inputs."""
    warmup = min(micro_batches, stages - rank - 1)
    actions: list[Action] = [(FORWARD, rank, m) for m in range(warmup)]
    weights = 0
    for m in range(micro_batches):
        if m + warmup < micro_batches:
            actions.append((FORWARD, rank, m + warmup))
        actions.append((INPUT_GRAD, rank, m))
        if m >= rank:
            actions.append((WEIGHT_GRAD, rank, weights))
            weights += 1
    return actions + [(WEIGHT_GRAD, rank, m) for m in range(weights, micro_batches)]


def simulate(
    work: Sequence[Sequence[Action]], times: Sequence[ChunkTimes], transfer: float
) -> PipelineTime:
    """Run the orders; `times` are those of the chunks in the order of the model, `transfer` the
    seconds from one GPU to the next. Raises as `timed`.
    """
    seconds, busy = 0.0, [0.0] * len(work)
    for rank, _, start, took in action_times(work, times, transfer):
        busy[rank] += took
        seconds = max(seconds, start + took)
    return PipelineTime(seconds, max(busy, default=0.0), tuple(map(_peak_activations, work)))


def action_times(
    work: Sequence[Sequence[Action]], times: Sequence[ChunkTimes], transfer: float
) -> Iterator[tuple[int, Action, float, float]]:
    """GPU, action, start and seconds of every action, those of a GPU in order.

    Raises UsageError for orders in which some action waits for ever.
    """
    last = len(times) - 1
    owner = {action[1]: rank for rank, actions in enumerate(work) for action in actions}
    free, position = [0.0] * len(work), [0] * len(work)
    end_times: dict[Action, float] = {}
    ready = list(range(len(work)))
    while ready:
        rank = ready.pop()
        actions = work[rank]
        while position[rank] < len(actions):
            action = actions[position[rank]]
            name, chunk, micro = action
            before = _input(name, chunk, micro, last)
            arrived = 0.0
            if before is not None:
                end_time = end_times.get(before)
                if end_time is None:
                    break
                moves = owner[before[1]] != rank
                arrived = end_time + (transfer if moves else 0.0)
            took = times[chunk].of(name)
            start = max(free[rank], arrived)
            free[rank] = start + took
            yield rank, action, start, took
            end_times[(BACKWARD if name == INPUT_GRAD else name, chunk, micro)] = free[rank]
            position[rank] += 1
            waits = chunk + 1 if name == FORWARD else chunk - 1
            if name != WEIGHT_GRAD and waits in owner and owner[waits] != rank:
                ready.append(owner[waits])
    if any(position[rank] < len(actions) for rank, actions in enumerate(work)):
        raise UsageError("the order of the pipeline never ends")


def _input(name: str, chunk: int, micro: int, last: int) -> Action | None:
    """The action whose result an action needs from a neighbour, or of its chunk."""
    if name == FORWARD:
        return (FORWARD, chunk - 1, micro) if chunk else None
    if name == WEIGHT_GRAD:
        return (BACKWARD, chunk, micro)
    return (BACKWARD, chunk + 1, micro) if chunk < last else (FORWARD, chunk, micro)


def _peak_activations(actions: Sequence[Action]) -> int:
    """Most micro-batches of chunks whose activations a GPU stores at once. Activations are kept to
    the gradients of the weights."""
    live = most = 0
    for name, _, _ in actions:
        live += {FORWARD: 1, BACKWARD: -1, WEIGHT_GRAD: -1}.get(name, 0)
        most = max(most, live)
    return most


@cache
def peak_activations(
    schedule: str, stages: int, micro_batches: int, chunks: int
) -> tuple[int, ...]:
    """Most micro-batches of chunks with stored activations, by GPU."""
    fewer = min(micro_batches, 4 * stages)  # constant once the pipeline is full, except in GPipe
    if schedule == "gpipe":
        return (micro_batches,) * stages
    return tuple(map(_peak_activations, orders(schedule, stages, fewer, chunks)))


__all__ = ["ChunkTimes", "PipelineTime", "action_times", "orders", "peak_activations", "simulate"]
