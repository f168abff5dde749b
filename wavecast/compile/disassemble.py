"""An AMD code object as assembly text that `wavecast.isa.parse` reads like a compiler's.

llvm-objdump decodes the instructions; labels at branch targets, source lines, kernel descriptors
and metadata are written around them from the file itself.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from wavecast.compile import process
from wavecast.compile.dwarf import LineTable, line_table
from wavecast.errors import InputError, MissingTool
from wavecast.isa import elf
from wavecast.isa.metadata import metadata_of_elf
from wavecast.isa.program import KernelDescriptor
from wavecast.isa.quoting import quoted
from wavecast.isa.targets import TARGET_SETS, isa_target

VARIABLE: Final = "WAVECAST_LLVM_OBJDUMP"
OLDEST: Final = 22
_VERSIONED = tuple(f"llvm-objdump-{number}" for number in range(40, OLDEST - 1, -1))
_INSTRUCTION = re.compile(
    r"^\t(?P<text>.+?)\s*// (?P<address>[0-9A-F]{6,16}): (?P<words>[0-9A-F ]+?)"
    r"(?P<target> <[^>]*>)?\s*$",
    re.MULTILINE,
)
_UNDECODED = re.compile(r"<unknown>|^\.(?:long|byte|short)\b|^// ")
_LAST_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)$")
_COUNTER = re.compile(r"s_get_?pc_\w+ s\[(\d+):(\d+)\]$")
_SUM = re.compile(
    r"(?P<sum>s_add\w+ (?P<register>\S+), (?P=register), )"
    r"(?:lit\()?(?P<number>-?(?:0x[0-9a-f]+|\d+))\)?$"
)
_WORD: Final = (1 << 32) - 1


def objdump() -> str:
    """The llvm-objdump to use. Raises MissingTool, naming the package, when there is none."""
    rocm = os.environ.get("ROCM_PATH", "/opt/rocm")
    own = process.find_program((), variable=VARIABLE)
    if os.environ.get(VARIABLE):
        if not own:
            raise MissingTool(f"{VARIABLE} names no program: {os.environ[VARIABLE]!r}")
        return own
    found = process.find_program(_VERSIONED)
    if found:
        return found
    plain = process.find_program(("llvm-objdump",), folders=(f"{rocm}/llvm/bin",))
    if plain and (plain.startswith(rocm) or _version_number(plain) >= OLDEST):
        return plain
    older = f" (found {version(plain)}, too old)" if plain else ""
    raise MissingTool(
        f"disassembling a code object needs llvm-objdump {OLDEST} or newer{older}",
        hint=f"install Debian's llvm-{OLDEST} or ROCm's rocm-llvm package, or set {VARIABLE}",
    )


@lru_cache(maxsize=8)
def version(program: str) -> str:
    """The version line of an LLVM program, `LLVM version 22.1.8`."""
    printed = process.run([program, "--version"]).text
    found = re.search(r"LLVM version \S+", printed)
    return found[0] if found else "an unknown version"


def _version_number(program: str) -> int:
    digits = re.search(r"(\d+)", version(program))
    return int(digits[1]) if digits else 0


def disassemble(
    data: bytes, image: elf.Elf, target: str, descriptors: Mapping[str, KernelDescriptor]
) -> str:
    """The whole code object as text. Raises MissingTool, or InputError for code llvm-objdump
    cannot decode."""
    listing = _listing(data, image)
    instructions = [_instruction(match) for match in _INSTRUCTION.finditer(listing)]
    functions = list(_functions(image, descriptors))
    if not functions:
        raise InputError("AMD code object without function symbols", hint="build it without -s")
    lines = line_table(data, image)
    out = [f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"', "\t.text"]
    if lines is not None:
        out += [
            f"\t.file\t{number} {_quoted(folder)} {_quoted(name)}"
            for number, (folder, name) in enumerate(lines.files)
        ]
    starts = {start: name for name, start, _ in functions}
    for name, start, stop in functions:
        body = [item for item in instructions if start <= item[0] < stop]
        body = _with_symbols(body, starts)
        out += _function(name, body, lines)
        if name in descriptors:
            out += _descriptor(name, descriptors[name], image)
    return "\n".join([*out, *_metadata(image), ""])


def _listing(data: bytes, image: elf.Elf) -> str:
    program = objdump()
    processor = elf.processor(image)
    options = ["-d", f"--mcpu={processor}"]
    if isa_target(processor) in TARGET_SETS["gfx11+"]:
        options.append("--mattr=+real-true16")  # the file does not say that 16-bit halves are named
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        path = Path(folder) / "code.hsaco"
        path.write_bytes(data)
        done = process.run([program, *options, path])
    if done.status:
        first = (done.log.strip().splitlines() or ["no message"])[0]
        raise InputError(f"llvm-objdump refused the code object: {first}")
    return done.text


Decoded = tuple[int, str, int | None]
"""(address, text, address branched to)"""


def _instruction(match: re.Match[str]) -> Decoded:
    address = int(match["address"], 16)
    text = match["text"]
    if match["target"] is None:
        return address, text, None
    offset = int(match["words"].split()[0], 16) & 0xFFFF
    offset -= (offset & 0x8000) << 1
    return address, text, address + 4 + 4 * offset


def _functions(
    image: elf.Elf, descriptors: Mapping[str, KernelDescriptor]
) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of every function, by address; a size of 0 reaches to the next one."""
    found = sorted(
        (symbol.value, symbol.name, symbol.size)
        for symbol in image.symbols.values()
        if symbol.section is not None
        and (symbol.is_function or symbol.name in descriptors)
        and image.sections[symbol.section].name.startswith(".text")
    )
    for index, (start, name, size) in enumerate(found):
        later = [value for value, _, _ in found[index + 1 :] if value > start]
        yield name, start, start + size if size else min(later, default=1 << 64)


def _with_symbols(body: list[Decoded], functions: Mapping[int, str]) -> list[Decoded]:
    """Instructions whose numbers lead from the program counter to an instruction of the body or to
    a function, as far branches and calls have them, with symbols instead."""
    addresses = {address for address, _, _ in body}
    found = list(body)
    for index, (address, text, _) in enumerate(body[:-2]):
        counter = _COUNTER.match(text)
        low, high = _SUM.match(body[index + 1][1]), _SUM.match(body[index + 2][1])
        if counter is None or low is None or high is None:
            continue
        if (low["register"], high["register"]) != (f"s{counter[1]}", f"s{counter[2]}"):
            continue
        here = address + 4
        distance = (int(low["number"], 0) & _WORD) + ((int(high["number"], 0) & _WORD) << 32)
        target = (here + distance) & ((1 << 64) - 1)
        first, second = body[index + 1][0], body[index + 2][0]
        if target in functions:
            name = quoted(functions[target])
            found[index + 1] = first, f"{low['sum']}{name}@rel32@lo+{first - address}", None
            found[index + 2] = second, f"{high['sum']}{name}@rel32@hi+{second - address}", None
        elif target in addresses:
            jump = f"(.L{target:x}-.L{here:x})"
            found[index] = address, text, here
            found[index + 1] = first, f"{low['sum']}{jump}&4294967295", target
            found[index + 2] = second, f"{high['sum']}{jump}>>32", target
    return found


def _function(name: str, body: list[Decoded], lines: LineTable | None) -> Iterator[str]:
    own = {address for address, _, _ in body}
    targets = {target for _, _, target in body if target is not None}
    symbol, end = quoted(name), quoted(f".Lfunc_end_{name}")
    yield f"\t.globl\t{symbol}"
    yield f"\t.type\t{symbol},@function"
    yield f"{symbol}:"
    previous = None
    for address, text, target in body:
        if _UNDECODED.search(text):
            raise InputError(f"kernel {name}: no instruction at address {address:#x}: {text}")
        if address in targets:
            yield f".L{address:x}:"
        row = lines.at(address) if lines is not None else None
        if row is not None and row != previous:
            yield f"\t.loc\t{row[0]} {row[1]} {row[2]}"
        previous = row
        if target in own and not text.endswith((">>32", "&4294967295")):
            text = _LAST_NUMBER.sub(f".L{target:x}", text)
        yield "\t" + text
    yield f"{end}:"
    yield f"\t.size\t{symbol}, {end}-{symbol}"


def _descriptor(name: str, descriptor: KernelDescriptor, image: elf.Elf) -> Iterator[str]:
    yield f"\t.amdhsa_kernel {quoted(name)}"
    for directive, value in descriptor.directives.items():
        yield f"\t\t.amdhsa_{directive} {value}"
    yield "\t.end_amdhsa_kernel"
    yield "\t.text"
    if f"{name}.num_vgpr" in image.symbols:
        yield f"\t.set {quoted(f'{name}.num_vgpr')}, {descriptor.vgprs}"


def _metadata(image: elf.Elf) -> Iterator[str]:
    document: Mapping[str, Any] = metadata_of_elf(image)
    if not document:
        return
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yield "\t.amdgpu_metadata"
    yield "---"
    yield yaml.dump(dict(document), Dumper=dumper, default_flow_style=False).rstrip()
    yield "..."
    yield "\t.end_amdgpu_metadata"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
