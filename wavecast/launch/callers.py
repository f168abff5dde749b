"""Who asks for a launch: a call of a library, and the line of the user's program."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.launch.group_calls import current_call
from wavecast.launch.script_lines import location_suffix, script_line


@dataclass(frozen=True, slots=True)
class LaunchCaller:
    """What a program asks for a launch by: a `call` that is more than one launch (`all_reduce of
    1000 float32`), "" for none, and file and line, None where no line of the program is known."""

    call: str
    line: tuple[str, int] | None

    def __str__(self) -> str:
        return f"{self.call or 'launched'}{location_suffix(self.line)}"


def launch_caller() -> LaunchCaller:
    """Who asks for what the calling thread launches."""
    return LaunchCaller(current_call(), script_line())


__all__ = ["LaunchCaller", "launch_caller"]
