"""Assembly text to `AssemblyModule`: functions, instructions, blocks, descriptors.

What is read: function labels, instructions, branch labels, `.loc`/`.file`, and, through
`wavecast.isa.assembly_metadata`, `.amdhsa_*` directives and the metadata document. Other directives
do not change what the code does and are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from wavecast.errors import ParseError, UnknownOpcode
from wavecast.isa.aliases import function_names, without_aliases
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.cfg import build_program
from wavecast.isa.collector import no_collections
from wavecast.isa.decode import DecodeError, Decoder, UnknownMnemonic, wave_lanes_of
from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.isa.linking import AssemblyFunction, leaves, link_functions
from wavecast.isa.program import AssemblyModule, Kernel, Program
from wavecast.isa.quoting import QUOTED, single_spaced, unquote, without_comment
from wavecast.isa.source import SourceTable
from wavecast.isa.targets import isa_target

_LABEL = re.compile(rf"^({QUOTED}|[A-Za-z_.$][\w.$@]*|\d+):")
_INSTRUCTION = re.compile(r"[a-z][a-z0-9]*_")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_HIGH_REGISTER = re.compile(r" ?(/\*v\[?\d[\d:]*\]?(?:\.[lh])?\*/)")
"""gfx1250 prints `v0 /*v256*/` for a register above 255, which `s_set_vgpr_msb` selects."""


_BANK = re.compile(r"^\s*s_set_vgpr_msb\s+(\w+)", re.MULTILINE)


def _check_numbers(text: str, file: str) -> None:
    """Raises ParseError where `s_set_vgpr_msb` selects upper registers and no comment says which:
    the text of an operand then is not its register."""
    for match in _BANK.finditer(text):
        if int(match[1], 0) & 0xFF and not _HIGH_REGISTER.search(text):
            line = text.count("\n", 0, match.start(1)) + 1
            raise ParseError(
                "s_set_vgpr_msb without the complete numbers of registers, as LLVM prints them "
                "(v1 /*v257*/)",
                file=file,
                line=line,
                hint="assemble the file and give the object",
            )


@no_collections()
def parse(
    text: str,
    target: str,
    file: str = "",
    *,
    kernel: str | None = None,
    wave_lanes: int | None = None,
    link: bool = False,
    moved_files: Mapping[str, str] | None = None,
    is_source: bool = False,
) -> AssemblyModule:
    """Parse the assembly of one code object.

    `target` is an AMD processor; `file` is named in errors. With `kernel` only that function is
    decoded; with `link` too, its program continues with the functions it can reach.
    `wave_lanes` overrides the wave size; by default each kernel's descriptor decides.
    Source locations in a file of `moved_files` have the path it maps to. Where `file` is the source
    (`is_source`) and has no `.loc`, its lines are the locations.
    Raises UnknownOpcode or ParseError (with file, line and kernel) for text that is not a program.
    """
    isa_target(target)
    if is_source:
        _check_numbers(text, file)
    descriptors = descriptors_from_assembly(text, target)
    lanes = wave_lanes or _wave_lanes(target, [d.wave_size for d in descriptors.values()])
    sources = SourceTable(moved_files or {}, file if is_source and ".loc" not in text else "")
    text = without_aliases(text)
    functions = _Reader(text, target, file, lanes, kernel, sources).read()
    if link and functions and leaves(functions[0]):
        functions = _Reader(text, target, file, lanes, None, sources).read()
    if link and kernel is not None:
        programs = _link_program(functions, kernel, target, file)
    else:
        programs = {
            function.name: build_program(
                function.name, target, function.instructions, function.labels, file
            )
            for function in functions
            if function.instructions
        }
    kernels = {
        name: Kernel(name, programs[name], descriptor)
        for name, descriptor in descriptors.items()
        if name in programs
    }
    if kernel is not None and kernel not in programs:
        raise ParseError(f"no function {kernel!r} in the assembly", file=file)
    rest: dict[str, Program] = {n: p for n, p in programs.items() if n not in kernels}
    return AssemblyModule(target, kernels, rest)


def _link_program(
    functions: list[AssemblyFunction], kernel: str, target: str, file: str
) -> dict[str, Program]:
    """The kernel's program with the functions it reaches behind it."""
    by_name = {function.name: function for function in functions if function.instructions}
    if kernel not in by_name:
        return {}
    whole, entries = link_functions(by_name[kernel], by_name)
    program = build_program(kernel, target, whole.instructions, whole.labels, file, entries=entries)
    return {kernel: program}


def _wave_lanes(target: str, sizes: Iterable[int]) -> int:
    lane_counts = {size for size in sizes if size}
    return lane_counts.pop() if len(lane_counts) == 1 else wave_lanes_of(target)


@lru_cache(maxsize=16)
def _decoder(target: str, wave_lanes: int) -> Decoder:
    return Decoder(target, wave_lanes)


@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n"))


@lru_cache(maxsize=4)
def _function_names(text: str) -> frozenset[str]:
    return function_names(text)


@lru_cache(maxsize=4)
def _landmarks(text: str) -> tuple[Mapping[int, str], frozenset[int]]:
    """The labels of a text that may begin a function, by the index of their line, and the lines of
    directives that count outside functions."""
    names, labels, directives = _function_names(text), {}, set[int]()
    for index, raw in enumerate(_lines(text)):
        line = raw.strip()
        if line.startswith(_OUTER_DIRECTIVES):
            directives.add(index)
        elif ":" in line and (label := _LABEL.match(line)) is not None:
            name = unquote(label[1])
            if name in names or not name.startswith(".L"):
                labels[index] = name
    return labels, frozenset(directives)


class _Reader:
    """One pass over the lines of a text, or over those that a function and what is outside
    functions have."""

    def __init__(
        self,
        text: str,
        target: str,
        file: str,
        wave_lanes: int,
        only: str | None,
        sources: SourceTable,
    ) -> None:
        if "/*" in text:
            text = _HIGH_REGISTER.sub(r"\1", text)
            text = _BLOCK_COMMENT.sub(_without_comment, text)
        self.text = text
        self.names = _function_names(text)
        self.file = file
        self.only = only
        self.decoder = _decoder(isa_target(target), wave_lanes)
        self.sources = sources
        self.functions: list[AssemblyFunction] = []

    def read(self) -> list[AssemblyFunction]:
        in_text, location, current = True, None, None
        instructions: list[Instruction] = []
        decode = self.decoder.decode
        cache = self.decoder.cache
        lines_of = self.sources.text_file
        for number, raw in self._numbered_lines():
            line = raw.strip()
            decoded = cache.get(line)
            if lines_of:
                location = SourceLocation(lines_of, number)
            if decoded is not None and in_text and current is not None:
                instructions.append(Instruction(decoded, len(instructions), number, location))
                continue
            if not line or line[0] in ";#/":
                continue
            if line[0] == ".":
                directive, _, _ = line.partition(" ")
                directive, _, _ = directive.partition("\t")
                if directive == ".loc":
                    location = self.sources.location(line)
                    continue
                if directive == ".file":
                    self.sources.file(line)
                    continue
                if directive in _SECTION_DIRECTIVES:
                    in_text = self._is_text(line, number)
                    continue
                if not _LABEL.match(line):
                    continue
            if not in_text:
                continue
            label = _LABEL.match(line) if ":" in line else None
            if label is not None:
                name = unquote(label[1])
                if name in self.names or (current is None and not name.startswith(".L")):
                    current = self._start(name)
                    location = location if lines_of else None
                    instructions = current.instructions if current else []
                elif name.startswith(".Lfunc_end"):
                    current = None
                elif current is not None:
                    current.labels[name] = len(instructions)
                line = line[label.end() :].strip()
                if not line or line[0] in ";/":
                    continue
            text = without_comment(line) if ";" in line or "//" in line else line
            if current is None:
                self._outside(text, number)
                continue
            try:
                decoded = decode(single_spaced(text) if "\t" in text else text)
            except DecodeError as error:
                raise self._error(error, number, current.name) from None
            if text is line or text == line:
                cache.setdefault(line, decoded)
            instructions.append(Instruction(decoded, len(instructions), number, location))
        return self.functions

    def _numbered_lines(self) -> Iterable[tuple[int, str]]:
        lines = _lines(self.text)
        if self.only is None or len(self.names) == 1:
            return enumerate(lines, 1)
        labels, directives = _landmarks(self.text)
        indices = {*labels, *directives}
        ends = [*(at for at, name in labels.items() if name in self.names), len(lines)]
        for at in (at for at, name in labels.items() if name == self.only):
            indices.update(range(at, next(end for end in ends if end > at)))
        return ((index + 1, lines[index]) for index in sorted(indices))

    def _is_text(self, line: str, number: int) -> bool:
        words = line.replace(",", " ").split()
        if words[0] != ".section":
            return words[0] == ".text"
        if len(words) == 1:
            raise ParseError(".section without a name", file=self.file, line=number)
        return words[1].startswith(".text")

    def _start(self, name: str) -> AssemblyFunction | None:
        if self.only is not None and name != self.only:
            return None
        function = AssemblyFunction(name)
        self.functions.append(function)
        return function

    def _outside(self, text: str, number: int) -> None:
        if self.only is None and not self.functions and _INSTRUCTION.match(text):
            raise ParseError(
                f"instruction {text.split()[0]!r} outside a function",
                file=self.file,
                line=number,
                hint="put a label before it",
            )

    def _error(self, error: DecodeError, number: int, kernel: str) -> ParseError:
        if isinstance(error, UnknownMnemonic):
            hint = "nearest known: " + ", ".join(error.nearest) if error.nearest else ""
            return UnknownOpcode(str(error), file=self.file, line=number, kernel=kernel, hint=hint)
        return ParseError(str(error), file=self.file, line=number, kernel=kernel)


_SECTION_DIRECTIVES = frozenset(
    {".text", ".section", ".data", ".bss", ".rodata", ".amdgpu_metadata"}
)
_OUTER_DIRECTIVES = (".file", *_SECTION_DIRECTIVES)


def _without_comment(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("/*v") else "\n" * match[0].count("\n")
