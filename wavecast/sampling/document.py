"""A launch profile as bytes, for the process that asked another one to execute a sample.

A document is a plain value (`plain`): a map with the fields of `LaunchProfile`, without the
program, which the reader has from the code. Nested values are maps of their fields, enums are
names, arrays have the dtypes and dimensions of `_ARRAYS`. `version` is 2, `instructions` the number
of instructions of the program.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Final

import numpy as np

from wavecast.errors import InputError
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Program
from wavecast.perfmodel.notes import Note
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import LaunchProfile, LevelTraffic, ProfileSource, SampleCoverage
from wavecast.perfmodel.streams import REQUEST, Streams
from wavecast.sampling.plain import from_bytes, to_bytes

VERSION: Final = 3
_ARRAYS: Final = {
    "steps": (np.int32, 1),
    "weights": (np.float32, 1),
    "start": (np.int64, 1),
    "rows": (np.float32, 2),
    "rows_start": (np.int64, 1),
}
"""Array of `Streams` -> dtype, dimensions."""


def encode(profile: LaunchProfile) -> bytes:
    """The document of a profile."""
    streams = {field.name: getattr(profile.streams, field.name) for field in fields(Streams)}
    return to_bytes(
        {
            "version": VERSION,
            "instructions": len(profile.program.instructions),
            "target": profile.target,
            "origin": profile.origin,
            "source": profile.source.name,
            "placement": asdict(profile.placement),
            "streams": streams,
            "traffic": asdict(profile.traffic) if profile.traffic else None,
            "dtype": profile.dtype,
            "notes": [note.name for note in profile.notes],
            "work": profile.work,
            "longest": profile.longest,
            "coverage": asdict(profile.coverage) if profile.coverage else None,
            "compiler": profile.compiler,
            "compiler_note": profile.compiler_note,
        }
    )


def decode(data: bytes, program: Program) -> LaunchProfile:
    """The profile of a document, of a launch of `program`.

    Raises InputError for a document that is damaged, of another version, or of another program.
    """
    document = from_bytes(data)
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise InputError(f"a launch profile of another version than {VERSION}")
    if document.get("instructions") != len(program.instructions):
        raise InputError(f"the launch profile is not of {program.name}")
    try:
        return _profile(document, program)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"damaged launch profile of {program.name}: {error}") from error


def _profile(document: dict[str, Any], program: Program) -> LaunchProfile:
    traffic, coverage = document["traffic"], document["coverage"]
    return LaunchProfile(
        program=program,
        target=str(document["target"]),
        origin=str(document["origin"]),
        source=ProfileSource[document["source"]],
        placement=LaunchPlacement(**document["placement"]),
        streams=_streams(document["streams"], program),
        traffic=None if traffic is None else LevelTraffic(**traffic),
        dtype=str(document["dtype"]),
        notes=tuple(Note[name] for name in document["notes"]),
        work=float(document["work"]),
        longest=float(document["longest"]),
        coverage=None if coverage is None else SampleCoverage(**coverage),
        compiler=str(document["compiler"]),
        compiler_note=str(document["compiler_note"]),
    )


def _streams(document: dict[str, Any], program: Program) -> Streams:
    """The streams of a document. Raises ValueError for arrays that do not fit each other, which
    the simulator would index without a check."""
    for name, (dtype, dimensions) in _ARRAYS.items():
        array = document[name]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != dimensions:
            raise ValueError(f"{name} is not an array of {np.dtype(dtype)} in {dimensions}-D")
    streams = Streams(**document)
    steps, rows, instructions = streams.steps, streams.rows, len(program.instructions)
    if streams.waves < 1 or len(streams.start) < 2 or (len(streams.start) - 1) % streams.waves:
        raise ValueError(f"{len(streams.start)} starts for workgroups of {streams.waves} waves")
    if len(streams.rows_start) != len(streams.start) or len(streams.weights) != len(steps):
        raise ValueError("starts or weights are missing")
    if len(steps) and not 0 <= steps.min() <= steps.max() < instructions:
        raise ValueError(f"steps beyond {instructions} instructions")
    if rows.shape[1] != REQUEST:
        raise ValueError(f"requests of {rows.shape[1]} columns, not {REQUEST}")
    for starts, length in ((streams.start, len(steps)), (streams.rows_start, len(rows))):
        if starts[0] != 0 or starts[-1] != length or (np.diff(starts) < 0).any():
            raise ValueError("starts that do not divide their array")
    asks = np.array([_asks(instruction) for instruction in program.instructions])
    before = np.concatenate([[0], np.cumsum(asks[steps])])
    if (before[streams.start] != streams.rows_start).any():
        raise ValueError("requests that are not those of the steps")
    return streams


def _asks(instruction: Instruction) -> bool:
    """Whether each execution of an instruction has a row of requests."""
    memory = instruction.memory
    return memory is not None and memory.kind is not MemoryKind.PERMUTE


__all__ = ["VERSION", "decode", "encode"]
