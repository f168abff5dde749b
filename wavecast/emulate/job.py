"""The words of the job that `resident` gives to the native loop of `scheduler.ll`, which names them
`$STATUS`."""

from __future__ import annotations

from enum import IntEnum, auto
from string import Template


class JobWord(IntEnum):
    """Numbers of words of 64 bits."""

    COUNTER = 0
    """Pointer to the number of the next workgroup."""
    GROUPS = auto()
    """Workgroups to run."""
    GRID_X = auto()
    GRID_Y = auto()
    WAVES = auto()
    """Waves of a workgroup."""
    STATE_WORDS = auto()
    """Words of 32 bits of a wave's state."""
    TEMPLATE = auto()
    """Pointer to the state that waves begin with."""
    COPIED_WORDS = auto()
    """Words of it that are copied."""
    STATES = auto()
    """Pointer to the states of the waves."""
    CONTEXT = auto()
    """Pointer."""
    FLAGS = auto()
    """Pointer to a byte per wave: 0 can run, 1 ended, 2 waits at a barrier."""
    ID_X = auto()
    """Word of the state with the workgroup's x."""
    ID_Y = auto()
    ID_Z = auto()
    ID_CLUSTER = auto()
    """Word of the state with the workgroup within its cluster."""
    CLUSTER_X = auto()
    """Workgroups of a cluster along x."""
    CLUSTER_Y = auto()
    CLUSTER_Z = auto()
    CLUSTER_BARRIERS = auto()
    """Pointer to the barriers of the clusters, 0 without clusters."""
    PACKED = auto()
    """Whether y and z share a word."""
    STATUS = auto()
    """What a wave returned that broke off."""
    GROUP = auto()
    """Its workgroup."""
    WAVE = auto()
    """Its number."""
    SCRATCH = auto()
    """Pointer."""
    SCRATCH_BYTES = auto()
    """Per wave."""
    BUDGET = auto()
    """Instructions a wave may execute."""
    FAILED = auto()
    """Pointer to a word that is not 0 once a host thread has failed."""
    CHOSEN = auto()
    """Pointer to the numbers of the workgroups to run, 0 for all."""
    EXECUTED = auto()
    """Pointer to the instructions executed, a word per wave."""
    SLICE = auto()
    """Instructions a wave executes at once."""
    ACTIVE = auto()
    """Whether a workgroup is under way."""
    QUANTUM = auto()
    """Instructions after which the loop returns."""
    CUT = auto()
    """Whether a wave ends that has executed all it may, which else is an error."""
    ORDER = auto()
    """Pointer to the order in which waves run, 0 for that of their numbers."""


class LoopResult(IntEnum):
    """What the native loop returns."""

    NONE_LEFT = 0
    """No workgroup is left."""
    ACTIVE = 1
    """A slice or the quantum was used up; a workgroup may be under way."""
    BROKEN = 2
    """After an error."""


def with_numbers(text: str) -> str:
    """LLVM IR with the numbers of the words and results it names. Raises KeyError for others."""
    numbers = {word.name: int(word) for word in JobWord}
    results = {f"RETURN_{result.name}": int(result) for result in LoopResult}
    return Template(text).substitute(numbers | results)


__all__ = ["JobWord", "LoopResult", "with_numbers"]
