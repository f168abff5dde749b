"""A reduced reproducer as one Markdown text that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavecast import isa
from wavecast.errors import CompileError, WavecastError
from wavecast.lab.codegen import CodeGenerator
from wavecast.lab.figures import faults
from wavecast.lab.llvm_reduce import is_machine_ir
from wavecast.lab.reduce import Condition, with_attribute
from wavecast.runtimes.triton.isolation import diagnostic
from wavecast.version import __version__

_EXPECTED = {
    "crash": "code, or an error message",
    "lost-wait": "a wait for the stores to LDS before the barrier",
    "missing-wait": "a wait before the register is used",
    "hazard": "wait states between the two instructions",
}


@dataclass(frozen=True, slots=True)
class Reproducer:
    """Reduced LLVM IR for which a condition holds, and the number of lines it had before."""

    text: str
    condition: Condition
    compiler: CodeGenerator
    target: str
    lines_before: int

    def markdown(self) -> str:
        """Command, target, what was expected and what was found, and the IR."""
        output, assembly = self._outcome()
        machine = is_machine_ir(self.text)
        language, fence = ("MIR", "yaml") if machine else ("LLVM IR", "llvm")
        lines = self.text.count("\n") + 1
        expectation = _EXPECTED.get(self.condition.text, f"not {self.condition.text}")
        parts = [
            f"# {self.condition.text} on {self.target}",
            f"Compiler: {self.compiler.name}. Command: `{self.compiler.command}`.",
            f"Expected: {expectation}.",
            "Found:",
            _code_fence("", output),
            *self._other_outcome(),
            f"{language}, reduced from {self.lines_before} to {lines} lines:",
            _code_fence(fence, self.text.strip("\n")),
        ]
        if assembly:
            parts += ["Assembly:", _code_fence("", assembly.strip("\n"))]
        parts.append(f"Reduced by wavecast {__version__}.")
        return "\n\n".join(parts) + "\n"

    def _other_outcome(self) -> list[str]:
        """What the condition compares with, and its figures."""
        condition = self.condition
        if not condition.compared:
            return []
        attribute = condition.attribute
        text = with_attribute(self.text, *attribute) if attribute is not None else self.text
        output, _ = self._outcome(text, condition.other or self.compiler)
        return [f"With {condition.compared}:", _code_fence("", output)]

    def _outcome(self, text: str = "", compiler: CodeGenerator | None = None) -> tuple[str, str]:
        """(what a compiler gives, its assembly)."""
        try:
            assembly = (compiler or self.compiler).assembly(text or self.text)
        except CompileError as error:
            return diagnostic(error.log) or error.message, ""
        try:
            kernels = list(isa.parse(assembly, self.target).kernels.values())
        except WavecastError as error:
            return error.message, assembly
        lines: list[str] = []
        for kernel in kernels:
            descriptor = kernel.descriptor
            lines += faults(kernel)
            lines.append(
                f"{len(kernel.program.instructions)} instructions, {descriptor.vgprs} VGPRs, "
                f"{descriptor.agprs} AGPRs, {descriptor.vgpr_spills} spilled VGPRs"
            )
        return "\n".join(lines), _body(assembly.split("\n"))


def _body(lines: Sequence[str]) -> str:
    """The instructions of assembly, without directives and metadata."""
    end = next((n for n, line in enumerate(lines) if line.startswith(".Lfunc_end")), len(lines))
    lines = lines[:end]
    code = [line for line in lines if not line.strip().startswith((".", ";")) or line[:1] == "."]
    return "\n".join(line for line in code if line.strip() and not line.startswith(".amd"))


def _code_fence(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


__all__ = ["Reproducer"]
