"""Options of kernels in code that no script launches, and of the GPUs they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wavecast.errors import UsageError
from wavecast.options import Options, option
from wavecast.options.values import ANY, FILE, Dimensions, Integers, NameList, Regex, Several

if TYPE_CHECKING:
    from wavecast.pipeline.explain.selection import Selection
    from wavecast.pipeline.plan import Plan


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """The GPUs that something is explained for."""

    arch: tuple[str, ...] = option(
        (),
        "GPUs by name (mi300x) or target (gfx942, sm_90).",
        "-a",
        "--arch",
        values=NameList(),
        metavar="GPU[,GPU…]",
        default_text="the target of a code file, gfx942 for source",
    )
    arch_files: tuple[Path, ...] = option(
        (),
        "TOML that adds a device or overrides facts of one.",
        "--arch-file",
        values=Several(FILE),
    )

    def selection(self, *paths: str | Path) -> Selection:
        """The devices, by default those that the code files name. Raises UnknownName and
        UsageError."""
        from wavecast.pipeline.explain.selection import select, selectors

        return select(self.arch or selectors(None, paths), self.arch_files)


@dataclass(frozen=True, kw_only=True)
class KernelOptions(DeviceOptions):
    """The kernels of a script or a file."""

    kernels: str = option("", "Only kernels whose name matches.", "-k", "--kernels", values=Regex())


@dataclass(frozen=True, kw_only=True)
class ScriptOutput(Options):
    """What becomes of the output of a script that is captured."""

    show_output: bool = option(False, "Print the script's output to stderr. Its numbers are wrong.")


@dataclass(frozen=True, kw_only=True)
class CompilerOptions(Options):
    """How source is compiled."""

    compiler_options: tuple[str, ...] = option(
        (),
        "Passed to the HIP compiler, e.g. -X -DBLOCK=128.",
        "-X",
        "--compiler-option",
        values=Several(ANY),
        metavar="OPTION",
    )


@dataclass(frozen=True, kw_only=True)
class LaunchOptions(CompilerOptions):
    """The launch of a kernel in code that no script launches, and how its source is compiled."""

    grid: tuple[int, int, int] | None = option(
        None, "Workgroups, for code that no script launches.", values=Dimensions()
    )
    block: tuple[int, int, int] | None = option(
        None, "Threads per workgroup, for code that no script launches.", values=Dimensions()
    )
    lds: int | None = option(
        None,
        "Dynamic LDS in bytes, for code that no script launches.",
        values=Integers(),
        default_text="",
    )
    cluster: tuple[int, int, int] | None = option(
        None,
        "Workgroups of a cluster (gfx1250), for code that no script launches.",
        values=Dimensions(),
    )
    arguments: tuple[str, ...] = option(
        (),
        "An argument of code that no script launches: n=4096, x=f32[4096].",
        "--arg",
        metavar="NAME=VALUE",
    )
    plan_file: Path | None = option(
        None,
        "A file with grid, block and arguments; options override it.",
        "--args",
        values=FILE,
        metavar="TOML",
    )

    def plan(self, *paths: Path) -> Plan:
        """The launch that the options state, for files. Raises UsageError where one is a script,
        InputError and UnknownName for a plan that cannot be read."""
        from wavecast.pipeline.plan import Plan, Planned, named_value, read_plan

        has_plan = self.arguments or self.plan_file is not None
        for path in paths:
            if path.suffix == ".py" and has_plan:
                raise UsageError(f"{path} is a script: it makes its own launches and arguments")
        values: Mapping[str, str] = dict(map(named_value, self.arguments))
        arguments = {name: Planned(value) for name, value in values.items()}
        plan = Plan("", self.grid, self.block, self.lds, arguments, self.cluster)
        return plan if self.plan_file is None else plan.over(read_plan(self.plan_file))


__all__ = ["CompilerOptions", "DeviceOptions", "KernelOptions", "LaunchOptions", "ScriptOutput"]
