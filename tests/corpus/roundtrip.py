"""Parse, print and re-assemble compiled kernels; the bytes must be the compiler's own.

    python -m tests.corpus.roundtrip FOLDER [PATTERN …] [--assembler llvm-mc|triton]

FOLDER holds pairs NAME.TARGET.amdgcn and NAME.TARGET.hsaco, as the shared corpus builds them.
Every instruction is printed from its parsed parts (`isa.print_instruction`), assembled, and
compared with the machine code of the kernel's symbol in the code object.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

from wavecast import isa
from wavecast.arch import capabilities
from wavecast.errors import WavecastError
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program

MC_NAMES = ("llvm-mc-22", "llvm-mc-23", "llvm-mc-24")


def llvm_mc() -> str | None:
    """The first llvm-mc that knows every target, or None."""
    return next((path for name in MC_NAMES if (path := shutil.which(name))), None)


def printed(program: Program, text: str) -> str:
    """The function as assembly: labels and alignment of `text`, instructions as wavecast prints."""
    return _function(program, text, lambda i: isa.print_instruction(i.decoded))


def original(program: Program, text: str) -> str:
    """The same, with the compiler's own instruction texts."""
    lines = text.split("\n")
    return _function(program, text, lambda i: lines[i.line - 1].split(";")[0].strip())


def _function(program: Program, text: str, spell: Callable[[Instruction], str]) -> str:
    lines = text.split("\n")
    by_line = {i.line: spell(i) for i in program.instructions}
    first, last = program.instructions[0].line, program.instructions[-1].line
    out = [".text"]
    for number in range(first, last + 1):
        line = lines[number - 1].strip()
        if number in by_line:
            out.append(f"\t{by_line[number]}")
        elif line.startswith(".p2align") or (line.endswith(":") and not line.startswith(";")):
            out.append(line)
        elif line.startswith(".L") and ":" in line:
            out.append(line.split(":")[0] + ":")
    return "\n".join(out) + "\n"


def assemble(text: str, target: str, assembler: str = "llvm-mc") -> bytes:
    """The bytes of the text section an assembler makes of `text`. Raises ValueError if it refuses.

    `llvm-mc` is Debian's; `triton` the LLVM inside Triton, the very one that compiled the kernels.
    """
    run = _with_triton if assembler == "triton" else _with_llvm_mc
    section = ELFFile(io.BytesIO(run(text, target))).get_section_by_name(".text")
    return section.data()


def _with_triton(text: str, target: str) -> bytes:
    from triton.backends.amd import compiler  # type: ignore[import-not-found]

    if not hasattr(compiler, "assemble_amdgcn"):
        raise ValueError("this Triton does not export its assembler; use 3.9")
    try:
        return compiler.assemble_amdgcn(text, target, "")
    except RuntimeError as error:
        raise ValueError(str(error).strip().split("\n")[0]) from None


def _with_llvm_mc(text: str, target: str) -> bytes:
    tool = llvm_mc()
    assert tool is not None
    # Triton's LLVM uses 16-bit halves of registers where LLVM 22 does only when asked to.
    features = ["-mattr=+real-true16"] if capabilities(target).true16 else []
    done = subprocess.run(
        [tool, "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", *features, "-filetype=obj"],
        input=text.encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(done.stderr.decode().strip().split("\n")[0])
    return done.stdout


def machine_code(elf: bytes, symbol: str) -> bytes:
    """The bytes of a function symbol in a code object."""
    file = ELFFile(io.BytesIO(elf))
    entry = file.get_section_by_name(".symtab").get_symbol_by_name(symbol)[0]
    section = file.get_section(entry["st_shndx"])
    start = entry["st_value"] - section["sh_addr"]
    return section.data()[start : start + entry["st_size"]]


def check(text: str, elf: bytes, target: str, assembler: str) -> tuple[int, list[str]]:
    """Instructions checked and what differs, for every kernel of one compiled text.

    The reference is the code object's own machine code. LLVM versions differ in bits no hardware
    reads and in what they refuse, so with `llvm-mc` on targets after gfx9 the reference is the
    compiler's text through the same assembler, and a text it refuses as it stands is skipped.
    """
    count, problems = 0, []
    module = isa.parse(text, target)
    for kernel in module.kernels.values():
        program = kernel.program
        theirs = machine_code(elf, kernel.name)
        if assembler == "llvm-mc" and capabilities(target).true16:
            try:
                theirs = assemble(original(program, text), target, assembler)
            except ValueError:
                continue
        count += len(program.instructions)
        try:
            ours = assemble(printed(program, text), target, assembler)
        except ValueError as error:
            problems.append(f"{kernel.name}: {error}")
            continue
        if ours != theirs[: len(ours)] or len(theirs) - len(ours) >= 256:
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), -1)
            problems.append(f"{kernel.name}: {len(ours)} bytes differ from {len(theirs)} at {at}")
    return count, problems


def pairs(folder: Path, patterns: list[str]) -> Iterator[tuple[Path, Path]]:
    """The assembly and code object files of a folder."""
    for path in sorted(folder.glob("*.amdgcn")):
        if not patterns or any(pattern in path.name for pattern in patterns):
            yield path, path.with_suffix(".hsaco")


def main() -> int:
    parser = argparse.ArgumentParser(description="Parse, print, assemble, compare.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--assembler", choices=["llvm-mc", "triton"], default="triton")
    options = parser.parse_args()
    total = bad = kernels = skipped = 0
    for text_path, elf_path in pairs(options.folder, options.patterns):
        kernels += 1
        target = text_path.name.split(".")[-2]
        text, elf = text_path.read_text(), elf_path.read_bytes()
        try:
            count, problems = check(text, elf, target, options.assembler)
        except WavecastError as error:
            count, problems = 0, [str(error)]
        total += count
        bad += bool(problems)
        skipped += not count and not problems
        for problem in problems:
            print(f"{text_path.name}: {problem}")
    print(
        f"{kernels} code objects, {total} instructions, {bad} with differences, "
        f"{skipped} that {options.assembler} refuses as the compiler wrote them"
    )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
