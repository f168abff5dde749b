"""Options of the laboratory's searches: kernels of a script, or of code whose launch is stated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wavecast.api.launch import KernelOptions, LaunchOptions, ScriptOutput
from wavecast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wavecast.lab.searching import LabSource


@dataclass(frozen=True, kw_only=True)
class LabKernelOptions(ScriptOutput, LaunchOptions, KernelOptions):
    """The kernels of a search, and their launch."""

    def source(self, path: Path, arguments: Sequence[object]) -> LabSource:
        """Where the kernels are from. Raises UsageError for a script with a launch, and as
        `plan`."""
        from wavecast.lab.searching import LabSource

        if path.suffix == ".py" and self.states(*LaunchOptions.described()):
            raise UsageError(f"{path} is a script: it makes its own launches and arguments")
        return LabSource(
            path,
            tuple(map(str, arguments)),
            self.kernels,
            not self.show_output,
            tuple(str(file.absolute()) for file in self.arch_files),
            self.plan(path),
            self.compiler_options,
        )


__all__ = ["LabKernelOptions"]
