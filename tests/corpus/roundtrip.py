"""Parse, print and re-assemble compiled kernels; the bytes must be the compiler's own.

    python -m tests.corpus.roundtrip FOLDER [PATTERN …]

FOLDER holds pairs NAME.TARGET.amdgcn and NAME.TARGET.hsaco, as the shared corpus builds them.
Every instruction is printed from its parsed parts (`isa.print_instruction`), assembled with LLVM's
`llvm-mc`, and compared with the machine code of the kernel's symbol in the code object.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

from wavecast import isa
from wavecast.errors import WavecastError
from wavecast.isa.program import Program

MC_NAMES = ("llvm-mc-22", "llvm-mc-23", "llvm-mc-24")


def llvm_mc() -> str | None:
    """The first llvm-mc that knows every target, or None."""
    return next((path for name in MC_NAMES if (path := shutil.which(name))), None)


def printed(program: Program, text: str) -> str:
    """The function as assembly: labels and alignment of `text`, instructions as wavecast prints."""
    lines = text.split("\n")
    by_line = {i.line: isa.print_instruction(i.decoded) for i in program.instructions}
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


def assemble(text: str, target: str) -> bytes:
    """The bytes of the text section llvm-mc makes of `text`. Raises ValueError with its message."""
    tool = llvm_mc()
    assert tool is not None
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.o"
        done = subprocess.run(
            [tool, "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-filetype=obj", "-o", output],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ValueError(done.stderr.strip().split("\n")[0])
        section = ELFFile(io.BytesIO(output.read_bytes())).get_section_by_name(".text")
        return section.data()


def machine_code(elf: bytes, symbol: str) -> bytes:
    """The bytes of a function symbol in a code object."""
    file = ELFFile(io.BytesIO(elf))
    entry = file.get_section_by_name(".symtab").get_symbol_by_name(symbol)[0]
    section = file.get_section(entry["st_shndx"])
    start = entry["st_value"] - section["sh_addr"]
    return section.data()[start : start + entry["st_size"]]


def check(text: str, elf: bytes, target: str) -> tuple[int, list[str]]:
    """Instructions checked and what differs, for every kernel of one compiled text."""
    count, problems = 0, []
    module = isa.parse(text, target)
    for kernel in module.kernels.values():
        program = kernel.program
        count += len(program.instructions)
        try:
            ours = assemble(printed(program, text), target)
        except ValueError as error:
            problems.append(f"{kernel.name}: {error}")
            continue
        theirs = machine_code(elf, kernel.name)
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
    folder, patterns = Path(sys.argv[1]), sys.argv[2:]
    total = bad = kernels = 0
    for text_path, elf_path in pairs(folder, patterns):
        kernels += 1
        target = text_path.name.split(".")[-2]
        try:
            count, problems = check(text_path.read_text(), elf_path.read_bytes(), target)
        except WavecastError as error:
            count, problems = 0, [str(error)]
        total += count
        bad += bool(problems)
        for problem in problems:
            print(f"{text_path.name}: {problem}")
    print(f"{kernels} code objects, {total} instructions, {bad} with differences")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
