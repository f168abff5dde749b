"""Files of kernels, loaded: `wavecast.load("k.hip", arch="gfx942")["saxpy"]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wavecast import arch as devices
from wavecast import compile as compilers
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.names import distinct_names
from wavecast.emulate.check.collected import Reports, gathering
from wavecast.errors import UsageError
from wavecast.runtimes.module.function import Function

if TYPE_CHECKING:
    from wavecast.emulate.launch_counts import LaunchCounts
    from wavecast.emulate.trace.mode import TraceMode

DEFAULT_TARGET = "gfx942"
"""The target that HIP source is compiled for by default."""


class UnknownKernel(UsageError, KeyError):
    """A module has no kernel of this name, or several; the message lists them."""


class Module(Mapping[str, Function]):
    """The kernels of a file by symbol.

    A kernel is also found by the name its source gives it, without parameters and template
    arguments, if only one has that name: `reduce`, `gpu::reduce`. `reports` has the
    warnings and notes that checks have found.
    """

    def __init__(self, functions: Sequence[Function], source: str, reports: Reports) -> None:
        self.reports = reports
        self._functions = {function.symbol: function for function in functions}
        self.source = source

    def __getitem__(self, name: str) -> Function:
        """Raises UnknownKernel."""
        functions = self._functions_by_name(name)
        if len(functions) == 1:
            return functions[0]
        what = "several kernels are" if functions else "no kernel is"
        known = distinct_names(function.symbol for function in functions or self.values())
        names = ", ".join(known.values())
        where = f" in {self.source}" if self.source else ""
        raise UnknownKernel(f"{what} called {name!r}{where}", hint=f"there are {names}")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(self._functions_by_name(name)) == 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"<module {self.source}: {', '.join(f.name for f in self.values())}>"

    def _functions_by_name(self, name: str) -> list[Function]:
        exact = self._functions.get(name)
        if exact is not None:
            return [exact]
        functions = []
        names = distinct_names(self._functions)
        for function in self._functions.values():
            if name == names[function.symbol]:
                return [function]
            qualified = function.name.removesuffix("<…>")
            if name.removesuffix("<…>") in (qualified, qualified.rpartition("::")[2]):
                functions.append(function)
        return functions


def load(
    code: str | Path | bytes | CodeObject | Sequence[CodeObject],
    arch: str = "",
    *,
    options: Sequence[str] = (),
    threads: int | None = None,
    check: bool | Reports = False,
    max_instructions: int | None = None,
    trace: TraceMode | None = None,
    launched: LaunchCounts | None = None,
) -> Module:
    """The kernels of a HIP file, assembly, code object, bundle or program, ready to be executed.

    `code` is a path, the content of a file as bytes, or compiled code. `arch` is an AMD GPU by name
    or target (`mi300x`, `gfx942`): what HIP source is compiled for (default gfx942) and which of
    several targets a bundle is read for; other code knows its own. `options` go to the HIP
    compiler (`-DBLOCK=256`). `threads` is the number of host threads of a launch (default: all),
    `max_instructions` how many instructions each wave may execute (default: minutes' worth).
    `trace` collects what launches execute and touch (docs/trace.md), `launched` counts them.
    With `check`, HIP source keeps its private arrays in scratch, launches are watched
    (docs/checks.md), and one with errors raises ChecksFailed
    when it has ended; warnings and notes are added to `reports`. Given a `Reports`, all reports are
    added to it.

    Raises UnknownName for an unknown GPU, InputError for a file that cannot be read, CompileError,
    MissingTool, and UsageError for code that is not AMD's or another value of `check`.
    """
    from wavecast.emulate.checked_emulator import checked_emulator

    target = devices.load(arch).target if arch else ""
    check_reports = gathering(check)
    codes = _codes(code, target, options, checked=check_reports is not None)
    source = str(code) if isinstance(code, (str, Path)) else codes[0].source
    targets = list(dict.fromkeys(item.target for item in codes))
    if not codes[0].is_amd:
        raise UsageError(f"only AMD code can be executed, not code for {codes[0].target}")
    if len(targets) > 1:
        raise UsageError(
            f"{source or 'the code'} holds code for {', '.join(targets)}",
            hint=f'choose one: arch="{targets[0]}"',
        )
    device = devices.load(arch or targets[0])
    reports = check_reports if check_reports is not None else Reports()
    emulator = checked_emulator(
        check_reports, device, trace=trace, threads=threads, max_instructions=max_instructions
    ).emulator
    emulator.launched = launched
    raised = None if reports is check else reports
    functions = [Function(item, device, emulator, raised) for item in codes]
    return Module(functions, source, reports)


def _codes(
    code: str | Path | bytes | CodeObject | Sequence[CodeObject],
    target: str,
    options: Sequence[str],
    *,
    checked: bool,
) -> Sequence[CodeObject]:
    if isinstance(code, (str, Path)):
        return compilers.load(code, target, options, hip_target=DEFAULT_TARGET, checked=checked)
    if isinstance(code, bytes):
        return compilers.loads(code, target, options, hip_target=DEFAULT_TARGET, checked=checked)
    if options:
        raise UsageError("compiler options are for HIP source; this code is compiled")
    codes = [code] if isinstance(code, CodeObject) else code
    if not isinstance(codes, Sequence) or not all(isinstance(c, CodeObject) for c in codes):
        raise UsageError(f"load takes a path, bytes or compiled code, not {type(code).__name__}")
    if not codes:
        raise UsageError("load takes at least one piece of compiled code")
    return codes
