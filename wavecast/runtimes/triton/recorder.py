"""What one run of a program launched on one target: launches once each, failures, notes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from wavecast.compile.codeobject import Launch
from wavecast.errors import CompileError, UsageError
from wavecast.patterns import regex
from wavecast.runtimes.triton.launches import identity
from wavecast.runtimes.triton.profiles import CapturedLaunches

Configurations = Literal["first", "all"]


@dataclass(frozen=True, slots=True)
class CaptureFailure:
    """A kernel that could not be captured for a target. `stage` is `compile` or `launch`."""

    kernel: str
    target: str
    stage: str
    message: str
    hint: str = ""


class Recorder:
    """Collects the distinct launches of one target.

    `kernels` is a regular expression searched in kernel names ("" takes all). `configurations`
    says whether an autotuned kernel gives its first configuration that compiles, or all of them.
    With `strict` a kernel that fails raises CompileError, else it becomes a `CaptureFailure`.
    `on_launch` and `on_failure` are called as things happen. Raises UsageError for a bad pattern.
    """

    def __init__(
        self,
        target: str,
        *,
        kernels: str = "",
        configurations: Configurations = "first",
        strict: bool = False,
        on_launch: Callable[[Launch], None] | None = None,
        on_failure: Callable[[CaptureFailure], None] | None = None,
    ) -> None:
        self._pattern = regex(kernels, "-k")
        if configurations not in ("first", "all"):
            raise UsageError(f"unknown choice of configurations {configurations!r}")
        self.target = target
        self.configurations = configurations
        self.strict = strict
        self.launches = CapturedLaunches()
        self.failures: list[CaptureFailure] = []
        self.notes: dict[str, None] = {}
        self.filtered: dict[str, None] = {}
        """Names of launched kernels that were not asked for."""
        self.every_launch: Callable[[Launch], None] | None = None
        """Called with every launch, equal ones included."""
        self._indices: dict[tuple, int] = {}
        self._trials: set[int] = set()
        self._on_launch = on_launch
        self._on_failure = on_failure

    def wants(self, kernel: str) -> bool:
        """Whether launches of a kernel of this name are recorded."""
        return self._pattern.search(kernel) is not None

    def knows(self, launch: Launch) -> bool:
        """Whether an equal launch is recorded."""
        return identity(launch) in self._indices

    def record(self, launch: Launch, *, trial: bool = False) -> None:
        """Add a launch, or count it once more. A `trial` is an autotuner's: the launch that
        follows with the winning configuration is the same one and is not counted again."""
        if self.every_launch:
            self.every_launch(launch)
        key = identity(launch)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self.launches)
            self.launches.append(launch)
            if self._on_launch:
                self._on_launch(launch)
        elif index not in self._trials and not trial:
            entry = self.launches[index]
            lines = tuple(dict.fromkeys((*entry.model_lines, *launch.model_lines)))
            self.launches[index] = replace(entry, count=entry.count + 1, model_lines=lines)
        if trial:
            self._trials.add(index)
        else:
            self._trials.discard(index)

    def fail(self, kernel: str, stage: str, message: str, hint: str = "") -> None:
        """Report a kernel that cannot be captured, once per message. Raises CompileError with
        `strict`."""
        failure = CaptureFailure(kernel, self.target, stage, message, hint)
        if failure in self.failures:
            return
        self.failures.append(failure)
        if self.strict:
            raise CompileError(f"{kernel} for {self.target}: {message}", hint=hint)
        if self._on_failure:
            self._on_failure(failure)

    def note(self, text: str) -> None:
        """A line the user must see once."""
        self.notes.setdefault(text)
