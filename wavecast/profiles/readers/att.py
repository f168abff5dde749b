"""Thread traces of rocprofv3 (`--att`): the folder `ui_output_agent_A_dispatch_D` with its decoded
JSON.

`code.json` has a row per instruction with sums over all traced waves, below a row with the name of
its kernel; `filenames.json` the first and the last cycle of every traced wave; `occupancy.json`
when waves of all traced shader engines start and end; `realtime.json` pairs of cycles and ticks of
a clock of known frequency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from wavecast import files
from wavecast.errors import InputError
from wavecast.profiles.profile import (
    Profile,
    ProfiledKernel,
    ThreadTrace,
    TracedInstruction,
)

CODE: Final = "code.json"
_COLUMNS: Final = ("ISA", "Source", "Hit", "Latency", "Stall", "Idle")
_NAME: Final = "; "
_MOST_CYCLES: Final = 1 << 53
_FASTEST: Final = 10.0
"""GHz that no clock exceeds."""


class _Code(msgspec.Struct, frozen=True):
    code: list[list[Any]] = msgspec.field(default_factory=list)
    header: str = ""


class _Names(msgspec.Struct, frozen=True):
    waves: dict[str, dict[str, dict[str, dict[str, list[Any]]]]] = msgspec.field(
        default_factory=dict, name="wave_filenames"
    )


def is_trace(folder: Path) -> bool:
    """Whether a folder has a decoded thread trace."""
    return (folder / CODE).is_file()


def read(folder: Path) -> Profile:
    """The traced launch, with its cycles by instruction in `Profile.traces`.

    Raises InputError where the instructions cannot be read; without the other files the trace has
    no times.
    """
    profile = Profile("rocprofv3 thread trace")
    kernels = _kernels(profile, _decode_file(folder / CODE, _Code))
    if not kernels:
        raise InputError(f"{folder / CODE}: no instruction was executed by a traced wave")
    waves = list(_waves(profile, _optional(profile, folder / "filenames.json", _Names)))
    clock = _clock(_optional(profile, folder / "realtime.json", dict[str, Any]))
    span = _span(_optional(profile, folder / "occupancy.json", dict[str, Any]))
    if clock is None:
        profile.notes.append("the trace has no clock (realtime.json): cycles have no times")
    nanoseconds = round(span / clock) if clock else 0
    mean = sum(waves) / len(waves) if waves else 0.0
    main = max(kernels, key=lambda name: sum(instruction.latency for instruction in kernels[name]))
    number = profile.kernels.number(ProfiledKernel(main))
    profile.launches.add(number, 0, 0, 0, nanoseconds)
    profile.traces[number] = ThreadTrace(main, tuple(kernels[main]), len(waves), mean, clock)
    if len(kernels) > 1:
        others = ", ".join(name for name in kernels if name != main)
        profile.notes.append(f"not shown: other code in the trace ({others})")
    return profile


def _decode_file(file: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(files.read(file), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from None


def _optional(profile: Profile, file: Path, kind: Any) -> Any:
    """A file that a trace can lack; None, with a note, where it cannot be read."""
    if not file.is_file():
        profile.notes.append(f"{file.name} is missing")
        return None
    try:
        return _decode_file(file, kind)
    except InputError as error:
        profile.notes.append(error.message)
        return None


def _kernels(profile: Profile, listing: _Code) -> dict[str, list[TracedInstruction]]:
    """The instructions of each kernel that a wave executed, in the order of the code."""
    columns = [name.strip() for name in listing.header.split(",")]
    missing = [name for name in _COLUMNS[:4] if name not in columns]
    if missing:
        raise InputError(
            f"{CODE} has no column {', '.join(missing)}", hint="rocprofv3 of ROCm 7 writes them"
        )
    at = {name: columns.index(name) for name in _COLUMNS if name in columns}
    kernels: dict[str, list[TracedInstruction]] = {}
    kernel = "kernel without a name"
    for row in listing.code:
        try:
            text = str(row[at["ISA"]])
            if text.startswith(_NAME):
                kernel = text.removeprefix(_NAME).removesuffix(".kd")
                continue
            kernels.setdefault(kernel, []).append(_instruction(row, at, text))
        except (IndexError, ValueError):
            profile.damaged += 1
    return {
        name: rows
        for name, rows in kernels.items()
        if any(instruction.executions for instruction in rows)
    }


def _instruction(row: Sequence[Any], at: Mapping[str, int], text: str) -> TracedInstruction:
    """Raises IndexError and ValueError for a row that cannot be read."""

    def cycles(name: str) -> int:
        value = row[at[name]] if name in at else 0
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name}: {value!r}")
        if not 0 <= value < _MOST_CYCLES:
            raise ValueError(f"{name}: {value}")
        return value

    return TracedInstruction(text, str(row[at["Source"]]), *(cycles(name) for name in _COLUMNS[2:]))


def _waves(profile: Profile, names: _Names | None) -> Iterator[int]:
    """Cycles of every traced wave that ended; others are counted."""
    for engine in names.waves.values() if names else ():
        for simd in engine.values():
            for slot in simd.values():
                for wave in slot.values():
                    whole = len(wave) == 3 and all(isinstance(cycle, int) for cycle in wave[1:])
                    if whole and wave[2] > wave[1]:
                        yield wave[2] - wave[1]
                    else:
                        profile.unfinished += whole


def _span(occupancy: Mapping[str, Any] | None) -> int:
    """Cycles from the first start of a wave to the last end, of the shader engine that took the
    longest: cycles of different engines are not comparable."""
    longest = 0
    for rows in (occupancy or {}).values():
        if not isinstance(rows, list):
            continue
        times = [row[0] for row in rows if isinstance(row, list) and row and type(row[0]) is int]
        if times:
            longest = max(longest, max(times) - min(times))
    return longest


def _clock(realtime: Mapping[str, Any] | None) -> float | None:
    """GHz, by the first and the last pair of cycles and ticks; None where there are no two."""
    if not realtime or not isinstance(realtime.get("metadata"), dict):
        return None
    frequency = realtime["metadata"].get("frequency")
    for name, pairs in realtime.items():
        if name == "metadata" or not isinstance(pairs, list) or len(pairs) < 2:
            continue
        try:
            (first, early), (last, late) = pairs[0], pairs[-1]
            clock = (last - first) / (late - early) * frequency / 1e9
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            continue
        if 0 < clock < _FASTEST:
            return clock
    return None


__all__ = ["is_trace", "read"]
