"""Reduction by llvm-reduce, of LLVM IR or machine IR (MIR).

llvm-reduce runs a program on every candidate and reads its exit status. The program here is a shell
script that asks this process through two named pipes, so a candidate costs what the condition
costs.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from wavecast import files, limits, processes
from wavecast.compile import process
from wavecast.errors import CompileError, MissingTool, UsageError
from wavecast.lab.codegen import LLVM_VERSIONS, CodeGenerator, Llc, portable
from wavecast.lab.reduce import Holds

_PROGRAMS: Final = ("llvm-reduce", *(f"llvm-reduce-{number}" for number in LLVM_VERSIONS))
_SCRIPT: Final = """#!/bin/sh
echo "$1" > "{folder}/candidate"
read answer < "{folder}/answer"
exit "$answer"
"""
_END: Final = "end"
CLOCK: Final = 3600.0
"""Seconds after which the reduction ends with what it has."""


def find_llvm_reduce() -> str:
    """The llvm-reduce of the newest LLVM in PATH. Raises MissingTool."""
    path = process.newest(_PROGRAMS)
    if not path:
        raise MissingTool("there is no llvm-reduce in PATH", hint="install LLVM's tools")
    return path


def programs_of(text: str, reducer: str, compiler: CodeGenerator) -> list[str]:
    """The reducers to run in turn: programs of llvm-reduce, and "" for our own.

    `auto` is llvm-reduce for what llc compiles, where it is installed, then our own, which knows no
    MIR. IR that Triton compiles may be newer than llvm-reduce. Raises MissingTool, UsageError.
    """
    machine = is_machine_ir(text)
    if reducer == "own":
        if machine:
            raise UsageError("MIR is reduced by llvm-reduce", hint="--reducer llvm-reduce")
        return [""]
    if reducer == "llvm-reduce" or machine:
        return [find_llvm_reduce()]
    path = process.newest(_PROGRAMS) if isinstance(compiler, Llc) else ""
    return [path, ""] if path else [""]


def reduced_by_llvm(
    text: str, holds: Holds, program: str, progress: Callable[[str], None] = lambda _: None
) -> str:
    """The text with what `holds` does not need deleted by llvm-reduce, as IR of its LLVM.

    Raises UsageError where the condition does not hold for the text itself, CompileError where
    llvm-reduce refuses the text.
    """
    machine = is_machine_ir(text)
    text = text if machine else portable(text)
    if not holds(text):
        raise UsageError("the condition does not hold for the input")
    with tempfile.TemporaryDirectory(prefix="wavecast-") as name:
        folder = Path(name)
        suffix = "mir" if machine else "ll"
        source, output = folder / f"input.{suffix}", folder / f"reduced.{suffix}"
        files.write_text(source, text)
        script = folder / "test.sh"
        files.write_text(script, _SCRIPT.format(folder=folder))
        script.chmod(0o700)
        for pipe in ("candidate", "answer"):
            os.mkfifo(folder / pipe)
        command = [program, "-x=mir" if machine else "-x=ir", "-j", "1", "--test", str(script)]
        command += ["-o", str(output), str(source)]
        results: list[processes.Finished] = []
        runner = threading.Thread(target=_run, args=(command, folder, results), daemon=True)
        runner.start()
        _serve(folder, holds, progress)
        runner.join()
        if not output.is_file():
            messages = results[0].log.strip().splitlines() if results else []
            raise CompileError(f"{program}: {_failure(messages)}")
        return files.read_text(output)


def _failure(messages: list[str]) -> str:
    """The line that says why llvm-reduce ended, among those of its progress."""
    marks = ("error:", "LLVM ERROR", "Bad machine code")
    errors = [line for line in messages if any(mark in line for mark in marks)]
    return (errors or messages or ["it could not run"])[0].strip("* ")


def is_machine_ir(text: str) -> bool:
    """Whether a text is MIR, which is YAML, and not LLVM IR."""
    return text.startswith("---") or "\n---\nname:" in text


def _run(command: list[str], folder: Path, results: list[processes.Finished]) -> None:
    """Run llvm-reduce in a thread; the other one then stops waiting for candidates."""
    bounds = limits.of_compilers()
    bounds = limits.ProcessLimits(CLOCK, CLOCK, bounds.memory)
    try:
        results.append(processes.run(command, bounds))
    except OSError:
        pass  # there is no output then
    finally:
        (folder / "candidate").write_text(f"{_END}\n")


def _serve(folder: Path, holds: Holds, progress: Callable[[str], None]) -> None:
    """Answer for every candidate whether the condition holds, until the reduction ends."""
    while True:
        name = (folder / "candidate").read_text().strip()
        if name == _END:
            return
        text = files.read_text(Path(name))
        good = holds(text)
        if good:
            progress(f"{text.count(chr(10))} lines")
        (folder / "answer").write_text("0\n" if good else "1\n")


__all__ = ["find_llvm_reduce", "is_machine_ir", "programs_of", "reduced_by_llvm"]
