"""What the GPUs of every stage of a pipeline do in a training step: compute, send, receive, reduce.

GPUs of one stage do the same; they are numbered as in `communication`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.systems.training.communication import GroupMessage
from wavecast.systems.training.schedule import (
    BACKWARD,
    FORWARD,
    WEIGHT_GRAD,
    Action,
    orders,
)
from wavecast.systems.training.step import PASSES, TrainingModel

SEND: Final = "send"
RECEIVE: Final = "receive"


@dataclass(frozen=True, slots=True)
class StageAction:
    """One action of a stage after others of it (`after`, by number).

    It computes for `seconds`; or `moves` (`SEND`, `RECEIVE`) `size` bytes to or from the stage
    `peer` under a `tag`; or exchanges a `message` with its group.
    """

    name: str
    after: tuple[int, ...]
    seconds: float = 0.0
    moves: str = ""
    peer: int = -1
    size: int = 0
    tag: int = 0
    message: GroupMessage | None = None


def stage_actions(model: TrainingModel) -> list[list[StageAction]]:
    """The actions of every stage in a step. Raises UsageError for too many of them."""
    setup = model.setup
    work = orders(setup.schedule, setup.pipeline, setup.micro_batches, setup.chunks)
    return [_Stage(model, stage, work[stage]).actions() for stage in range(setup.pipeline)]


class _Stage:
    """The actions of one stage in the making."""

    def __init__(self, model: TrainingModel, stage: int, work: list[Action]) -> None:
        self.model, self.stage, self.work = model, stage, work
        self.stages = model.setup.pipeline
        self.last = self.stages * model.setup.chunks - 1
        self.size = round(model.communication.boundary_bytes)
        self.found: list[StageAction] = []

    def actions(self) -> list[StageAction]:
        """Micro-batches in order, then gradients and the optimizer."""
        times = self.model.chunk_times()
        computed: tuple[int, ...] = ()
        for action, chunk, micro in self.work:
            name = f"{PASSES[action]}, micro-batch {micro}, chunk {chunk}"
            step = 1 if action == FORWARD else -1
            before, after = chunk - step, chunk + step
            arrived: tuple[int, ...] = ()
            if action != WEIGHT_GRAD and 0 <= before <= self.last:
                arrived = self._transfer(RECEIVE, action, before, chunk, micro, ())
            computed = self._add(StageAction(name, computed + arrived, times[chunk].of(action)))
            if action != WEIGHT_GRAD and 0 <= after <= self.last:
                self._transfer(SEND, action, chunk, after, micro, computed)
        for message in self.model.communication.gradient_messages(self.model.rank):
            if message.ranks > 1 and message.size >= 1:
                name = f"{message.function} of gradients or weights"
                computed = self._add(StageAction(name, computed, message=message))
        self._add(StageAction("optimizer", computed, self.model.optimizer()))
        return self.found

    def _transfer(
        self, how: str, action: str, source: int, to: int, micro: int, after: tuple[int, ...]
    ) -> tuple[int, ...]:
        """What a chunk sends to the next one, where that is of another stage."""
        peer = (to if how == SEND else source) % self.stages
        if peer == self.stage:
            return ()
        kind = FORWARD if action == FORWARD else BACKWARD
        tag = 2 * (micro * (self.last + 1) + source) + (kind == BACKWARD)
        name = f"{how} {PASSES[kind]}, micro-batch {micro}, chunk {source}"
        return self._add(StageAction(name, after, moves=how, peer=peer, size=self.size, tag=tag))

    def _add(self, action: StageAction) -> tuple[int, ...]:
        self.found.append(action)
        return (len(self.found) - 1,)


__all__ = ["RECEIVE", "SEND", "StageAction", "stage_actions"]
