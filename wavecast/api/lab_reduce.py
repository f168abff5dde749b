"""`wavecast lab reduce` from Python: a smaller input for which something is still true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.result import ShownResult
from wavecast.errors import UnknownName, UsageError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import ANY, OneOf, Several

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.arch import Device
    from wavecast.lab.codegen import CodeGenerator
    from wavecast.lab.reproducer import Reproducer


@dataclass(frozen=True, kw_only=True)
class LabReduceOptions(Options):
    """Options of a reduction."""

    REQUIRED: ClassVar = ("arch", "condition")

    arch: str = option("", "An AMD GPU or target.", "-a", "--arch", metavar="GPU")
    condition: str = option(
        "",
        "crash, lost-wait, missing-wait, hazard, instructions>N, vgprs>N, spills>N, or more than "
        "another compiler or attribute: vgprs>llc-22+16, spills>amdgpu-sched-strategy=max-ilp+8.",
        "--if",
        metavar="CONDITION",
    )
    compiler: str = option(
        "triton",
        "Triton's code generator, or an llc, clang or zig program.",
        metavar="triton|PROGRAM",
    )
    llc_options: tuple[str, ...] = option(
        (),
        "Option of llc, such as --option=-enable-misched=0.",
        "--option",
        values=Several(ANY),
        metavar="OPTION",
    )
    edits: tuple[str, ...] = option(
        (), "Change the IR first: iglp_opt or sched_group_barrier.", "--edit", metavar="AXIS=VALUE"
    )
    reducer: str = option(
        "auto",
        "auto: llvm-reduce, where it is installed, of what llc compiles; then own.",
        values=OneOf(("auto", "own", "llvm-reduce")),
    )

    def edited(self, text: str) -> str:
        """LLVM IR with the changes of `edits`. Raises UnknownName, UsageError."""
        from wavecast.lab.edits import EDITS

        for edit in self.edits:
            name, _, value = edit.partition("=")
            if name not in EDITS:
                raise UnknownName("axis", name, EDITS)
            try:
                text = EDITS[name](text, value)
            except (ValueError, KeyError) as error:
                raise UsageError(f"--edit {edit}: {value!r} is not a value of {name}") from error
        return text

    def generator(self, text: str, device: Device) -> CodeGenerator:
        """What compiles LLVM IR or MIR. Raises UsageError where it cannot, MissingTool."""
        from wavecast.lab.codegen import Llc, TritonGenerator, find_llc, generator_of
        from wavecast.lab.llvm_reduce import is_machine_ir

        machine = is_machine_ir(text)
        if self.compiler != "triton":
            if not (machine or self.llc_options or Path(self.compiler).name.startswith("llc")):
                return generator_of(self.compiler, device.target)
            llc = find_llc(self.compiler)
            if not Path(llc).name.startswith("llc"):
                raise UsageError(f"MIR and --option are for llc, not {self.compiler}")
            return Llc(llc, device.target, self.llc_options, machine=machine)
        if machine:
            raise UsageError("MIR is for llc", hint="--compiler llc")
        if self.llc_options:
            raise UsageError("--option is for llc", hint="--compiler llc")
        return TritonGenerator(device)


@dataclass(frozen=True, slots=True, repr=False)
class ReduceReport(ShownResult):
    """Reduced IR with its command, what was expected and what happens."""

    reproducer: Reproducer

    def render(self, console: Console) -> None:
        console.out(self.markdown(), highlight=False, end="")

    def markdown(self) -> str:
        """The report for an issue."""
        return self.reproducer.markdown()

    def to_dict(self) -> dict[str, Any]:
        reproducer = self.reproducer
        return {
            "condition": reproducer.condition.text,
            "target": reproducer.target,
            "compiler": reproducer.compiler.name,
            "command": reproducer.compiler.command,
            "lines_before": reproducer.lines_before,
            "text": reproducer.text,
        }

    def subject(self) -> str:
        return f"{self.reproducer.condition.text} on {self.reproducer.target}"


def reduce(path: str | Path, *, progress: Progress = silent, **options: Any) -> ReduceReport:
    """Reduce LLVM IR or MIR while a condition is true.

    `options` are those of the command line, by the names of `LabReduceOptions`; `condition` is
    `--if`. Raises UsageError where the condition is not true for the input, UnknownName,
    InputError, MissingTool.
    """
    from wavecast import files
    from wavecast.lab.codegen import generator_of
    from wavecast.lab.llvm_reduce import programs_of, reduced_by_llvm
    from wavecast.lab.reduce import Condition, reduce_text
    from wavecast.lab.reproducer import Reproducer
    from wavecast.pipeline import select

    stated = LabReduceOptions.of(options)
    condition = Condition(stated.condition)
    device = select([stated.arch], ()).devices[0]
    if device.vendor != "amd":
        raise UsageError(f"{device.name}: only code of AMD GPUs is reduced", hint="--arch gfx942")
    if condition.compared and condition.attribute is None:
        condition = replace(condition, other=generator_of(condition.compared, device.target))
    text = stated.edited(files.read_text(path))
    generator = stated.generator(text, device)
    condition = condition.like(text, generator)

    reason = condition.why_not(text, generator, device.target)
    if reason:
        raise UsageError(f"the condition does not hold for {Path(path).name}: {reason}")

    def holds(candidate: str) -> bool:
        return condition.holds(candidate, generator, device.target)

    smaller = text
    for program in programs_of(text, stated.reducer, generator):
        if program:
            smaller = reduced_by_llvm(smaller, holds, program, progress)
        else:
            smaller = reduce_text(smaller, holds, progress)
    lines = text.count("\n") + 1
    return ReduceReport(Reproducer(smaller, condition, generator, device.target, lines))


__all__ = ["LabReduceOptions", "ReduceReport", "reduce"]
