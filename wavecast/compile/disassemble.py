"""An AMD code object as assembly text that `wavecast.isa.parse` reads like a compiler's.

`wavecast.isa.encoding` decodes the instructions; labels at branch targets, source lines, kernel
descriptors and metadata are written around them from the file itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from wavecast.compile.data import address_table, data_sections
from wavecast.compile.dwarf import LineTable
from wavecast.errors import InputError
from wavecast.isa import elf
from wavecast.isa.decode import wave_lanes_of
from wavecast.isa.elf_metadata import metadata_of_elf
from wavecast.isa.encoding.stream import CodeReader, Placed
from wavecast.isa.opcode import Control, OpcodeFlag
from wavecast.isa.program import KernelDescriptor
from wavecast.isa.quoting import quote
from wavecast.isa.targets import isa_target

_LAST_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)$")
_COUNTER = re.compile(r"s_get_?pc_\w+ s\[(\d+):(\d+)\]$")
_SUM = re.compile(
    r"(?P<sum>s_add\w+ (?P<register>\S+), (?P=register), )"
    r"(?:lit(?:64)?\()?(?P<number>-?(?:0x[0-9a-f]+|\d+))\)?$"
)
_DISTANCE = re.compile(
    r"(?P<start>s_add_[iu]32 (?P<register>s\d+), )(?:lit\()?(?P<number>0x[0-9a-f]+|\d+)\)?, 4$"
)
_CALL: Final = "s_swappc_b64"
_AFTER_COUNTER: Final = 4
"""Instructions from reading the program counter to the jump that a distance is for."""
_WORD: Final = (1 << 32) - 1
_PRELOAD: Final = "user_sgpr_kernarg_preload_length"
_COMPATIBLE_BYTES: Final = 256
"""Bytes of code for firmware that does not preload arguments, in front of the others' entry.
Source: LLVM "User Guide for AMDGPU Backend", "Preloaded Kernel Arguments"."""
_DATA: Final = ".long "
_ENDS: Final = frozenset({Control.BRANCH, Control.INDIRECT, Control.END})
"""Control of instructions that the next word does not follow."""


def disassemble(
    image: elf.Elf,
    lines: LineTable | None,
    target: str,
    kernels: Set[str],
    kernel: str,
    descriptor: KernelDescriptor,
) -> str:
    """One kernel of a code object as text, with the functions that are not among its `kernels` and
    the source `lines` of the object. Raises InputError for a word that is not an instruction where
    execution leads."""
    function_ranges = list(functions(image, kernels))
    out = [f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"', "\t.text"]
    if lines is not None:
        out += [
            f"\t.file\t{number} {_quote(folder)} {_quote(name)}"
            for number, (folder, name) in enumerate(lines.files)
        ]
    starts = {start: name for name, _, start, _ in function_ranges}
    sections, table = tuple(data_sections(image).values()), address_table(image)
    lanes = descriptor.wave_size or wave_lanes_of(target)
    for name, section, start, stop in function_ranges:
        if name in kernels and name != kernel:
            continue
        placed = _read(image.sections[section], start, stop, target, lanes)
        if name == kernel and descriptor.directives.get(_PRELOAD, 0):
            placed = _skip_preload_trap(placed, start)
        body = _with_symbols(_decode_body(name, placed), starts, sections, table)
        body, call_targets = _with_distances(body)
        main_body, parts = _parts(body, call_targets)
        out += _function(name, main_body, lines)
        if name == kernel:
            out += _descriptor(name, descriptor, image)
        for part in parts:
            out += _function(_function_name(part[0][0]), part, lines)
    return "\n".join([*out, *_metadata(image, kernel), ""])


@lru_cache(maxsize=8)
def _reader(target: str, wave_lanes: int) -> CodeReader:
    return CodeReader(target, wave_lanes)


def _read(
    section: elf.Section, start: int, stop: int, target: str, wave_lanes: int
) -> list[Placed]:
    first = start - section.address
    if first < 0 or first > section.size or first % 4:
        raise InputError(f"a function starts at {start:#x}, outside section {section.name}")
    last = min(section.size, max(first, stop - section.address))
    code = section.file[section.offset + first : section.offset + last]
    return _reader(isa_target(target), wave_lanes).read(code, start)


def _skip_preload_trap(placed: list[Placed], start: int) -> list[Placed]:
    """The instructions of a kernel with preloaded arguments without a trap for firmware that cannot
    preload them: other firmware starts behind it (`isa.program.first_block`)."""
    first = placed[0].decoding if placed else None
    if first is None or OpcodeFlag.TRAP not in first.row.row.flags:
        return placed
    return [item for item in placed if item.address >= start + _COMPATIBLE_BYTES]


Decoded = tuple[int, str, int | None]
"""(address, text, address branched to)"""


def _decode_body(name: str, placed: list[Placed]) -> list[Decoded]:
    """Instructions and data as text. Words of zeros that nothing leads to are data: they fill the
    end of functions, and LLVM's assembler refuses the instruction that they decode to on gfx9
    (v_cndmask_b32 of an SGPR and VCC). Raises InputError for data behind an instruction that goes
    on to it."""
    body: list[Decoded] = []
    falls = True
    goals = {item.target for item in placed}
    for item in placed:
        decoding = item.decoding
        if not falls and item.word == 0 and item.address not in goals:
            decoding = None
        if decoding is not None:
            body.append((item.address, decoding.text, item.target))
            falls = decoding.row.row.control not in _ENDS
            continue
        if falls:
            raise InputError(
                f"kernel {name}: no instruction at address {item.address:#x}: {item.word:#010x}"
            )
        body.append((item.address, f"{_DATA}{item.word:#x}", None))
    return body


def functions(image: elf.Elf, kernels: Set[str]) -> Iterator[tuple[str, int, int, int]]:
    """(name, section, start, end) of every function, by address; a size of 0 reaches to the next
    one, or to the end of the section."""
    symbols = sorted(
        (symbol.value, symbol.name, symbol.size, symbol.section)
        for symbol in image.symbols.values()
        if symbol.section is not None
        and (symbol.is_function or symbol.name in kernels)
        and image.sections[symbol.section].name.startswith(".text")
    )
    starts = [start for start, _, _, _ in symbols]
    for start, name, size, section in symbols:
        following = bisect_right(starts, start)
        end = image.sections[section].address + image.sections[section].size
        if following < len(starts):
            end = starts[following]
        yield name, section, start, start + size if size else end


def _with_symbols(
    body: list[Decoded],
    functions: Mapping[int, str],
    sections: Sequence[elf.Section],
    table: Mapping[int, str],
) -> list[Decoded]:
    """Instructions whose numbers lead from the program counter to an instruction of the body, to
    a function, to data or to a word of the `table` of addresses, as far branches, calls and
    constants have them, with symbols instead."""
    addresses = {address for address, _, _ in body}
    instructions = list(body)
    for index, (address, text, _) in enumerate(body):
        counter = _COUNTER.match(text)
        sums = _sums(body, index, counter) if counter is not None else []
        if not sums:
            continue
        here = address + 4
        numbers = [int(match["number"], 0) for _, match in sums]
        if len(sums) > 1:
            numbers = [(numbers[0] & _WORD) + ((numbers[1] & _WORD) << 32)]
        target = (here + numbers[0]) & ((1 << 64) - 1)
        parts = ("lo", "hi") if len(sums) > 1 else ("",)
        symbol = _symbol(target, functions, sections, table)
        if symbol is not None:
            name, is_table, within = symbol
            for (at, match), part in zip(sums, parts, strict=True):
                first = body[at][0]
                kind = f"{_RELOCATIONS[is_table, bool(part)]}{part}"
                where = f"{quote(name)}@{kind}+{within + first - address}"
                instructions[at] = first, f"{match['sum']}{where}", None
        elif target in addresses:
            instructions[index] = address, text, here
            jump = f"(.L{target:x}-.L{here:x})"
            for (at, match), part in zip(sums, parts, strict=True):
                instructions[at] = body[at][0], f"{match['sum']}{jump}{_HALVES[part]}", target
    return instructions


_RELOCATIONS: Final = {
    (False, True): "rel32@",
    (True, True): "gotpcrel32@",
    (False, False): "rel64",
    (True, False): "gotpcrel",
}
"""Whether a distance is that of a word of the table, and a half -> how LLVM spells it."""
_HALVES: Final = {"lo": "&4294967295", "hi": ">>32", "": ""}


def _sums(
    body: list[Decoded], index: int, counter: re.Match[str]
) -> list[tuple[int, re.Match[str]]]:
    """The instructions that add a number to the program counter, which instruction `index` reads:
    two, for its halves, or one (gfx1250). gfx12 extends the sign of the counter first."""
    low, high = f"s{counter[1]}", f"s{counter[2]}"
    at = index + 1
    if at < len(body) and body[at][1] == f"s_sext_i32_i16 {high}, {high}":
        at += 1
    sums: list[tuple[int, re.Match[str]]] = []
    for register in (low, high):
        match = _SUM.match(body[at][1]) if at < len(body) else None
        if match is None:
            return []
        sums.append((at, match))
        if register == low and match["register"] == f"s[{counter[1]}:{counter[2]}]":
            return sums
        if match["register"] != register:
            return []
        at += 1
    return sums


def _symbol(
    target: int,
    functions: Mapping[int, str],
    sections: Sequence[elf.Section],
    table: Mapping[int, str],
) -> tuple[str, bool, int] | None:
    """What lies at an address: a symbol, whether the address is that of its word in the `table`,
    and the bytes from it."""
    if target in table:
        return table[target], True, 0
    for section in sections:
        if section.address <= target < section.address + section.size:
            return section.name, False, target - section.address
    return (functions[target], False, 0) if target in functions else None


def _with_distances(body: list[Decoded]) -> tuple[list[Decoded], list[int]]:
    """Instructions with symbols where a register is set to the distance of code, as Tensile does:
    `s_add_i32 s8, label, 4`, which the program counter is then added to; and the addresses of
    functions in the body, which are called through such a sum. A far branch jumps right away."""
    order = {address: index for index, (address, _, _) in enumerate(body)}
    calls = any(text.startswith(_CALL) for _, text, _ in body)
    instructions, call_targets = list(body), set()
    for index, (address, text, _) in enumerate(body[:-_AFTER_COUNTER]):
        counter, distance = _COUNTER.match(text), _DISTANCE.match(body[index + 1][1])
        if counter is None or distance is None:
            continue
        low = f"s_add_u32 s{counter[1]}, s{counter[1]}, {distance['register']}"
        target = address + 4 + int(distance["number"], 0) + 4
        if body[index + 2][1] != low or target not in order:
            continue
        jumps = body[index + _AFTER_COUNTER][1].startswith("s_setpc_b64")
        symbol = f".L{target:x}"
        if not jumps and calls and order[target] and _ends(body[order[target] - 1][1]):
            call_targets.add(target)
            symbol = f"{_function_name(target)}@rel32@lo+0"
        where = target if jumps else None
        instructions[index + 1] = body[index + 1][0], f"{distance['start']}{symbol}, 4", where
    return instructions, sorted(call_targets)


def _parts(
    body: list[Decoded], call_targets: list[int]
) -> tuple[list[Decoded], list[list[Decoded]]]:
    """A body without the functions in it, and these. Code behind a function's end that the body
    branches to is the body's: kernels of TensileLite end there."""
    starts = [instruction[0] for instruction in body]
    cuts = [bisect_left(starts, address) for address in (*call_targets, body[-1][0] + 1)]
    main_body = body[: cuts[0]]
    parts: list[list[Decoded]] = []
    goals = sorted({target for _, _, target in main_body if target is not None})
    for first, stop in pairwise(cuts):
        part, rest = body[first:stop], 0
        for goal in goals:
            at = bisect_left(starts, goal) - first
            if not 0 < at < len(part) or part[at][0] != goal or not _ends(part[at - 1][1]):
                continue
            if all(target < goal for _, _, target in part[:at] if target is not None):
                rest = at
                break
        parts.append(part[:rest] if rest else part)
        main_body = main_body + part[rest:] if rest else main_body
    return main_body, parts


def _ends(text: str) -> bool:
    """Whether the next instruction is not executed after this one."""
    return text.startswith(("s_endpgm", "s_setpc_b64", "s_branch", _DATA))


def _function_name(address: int) -> str:
    """The name of a function that only code knows by its address."""
    return f"function_{address:x}"


def _function(name: str, body: list[Decoded], lines: LineTable | None) -> Iterator[str]:
    addresses = {address for address, _, _ in body}
    targets = {target for _, _, target in body if target is not None}
    symbol, end = quote(name), quote(f".Lfunc_end_{name}")
    yield f"\t.globl\t{symbol}"
    yield f"\t.type\t{symbol},@function"
    yield f"{symbol}:"
    previous = ""
    for address, text, target in body:
        if address in targets:
            yield f".L{address:x}:"
        position = _position(lines, address) if lines is not None else ""
        if position and position != previous:
            yield f"\t.loc\t{position}"
        previous = position
        if target in addresses and ".L" not in text:
            text = _LAST_NUMBER.sub(f".L{target:x}", text)
        yield "\t" + text
    yield f"{end}:"
    yield f"\t.size\t{symbol}, {end}-{symbol}"


def _position(lines: LineTable, address: int) -> str:
    """What `.loc` says of an address; "" for no line. Code that was inlined from another file than
    the kernel's has the calls up to the innermost in that file, as LLVM's comment has them."""
    row = lines.at(address)
    if row is None:
        return ""
    text, sites = " ".join(map(str, row)), lines.calls.at(address)
    chain = (row, *sites)
    own = lines.files[chain[-1][0]]
    sites = sites[: [lines.files[file] == own for file, _, _ in chain].index(True)]
    if not sites:
        return text
    chain = [f"{'/'.join(filter(None, lines.files[n]))}:{y}:{x}" for n, y, x in (row, *sites)]
    return f"{text} ; {' @[ '.join(chain)}{' ]' * len(sites)}"


def _descriptor(name: str, descriptor: KernelDescriptor, image: elf.Elf) -> Iterator[str]:
    yield f"\t.amdhsa_kernel {quote(name)}"
    for directive, value in descriptor.directives.items():
        yield f"\t\t.amdhsa_{directive} {value}"
    yield "\t.end_amdhsa_kernel"
    yield "\t.text"
    if f"{name}.num_vgpr" in image.symbols:
        yield f"\t.set {quote(f'{name}.num_vgpr')}, {descriptor.vgprs}"


def has_functions(image: elf.Elf, kernels: Set[str]) -> bool:
    """Whether symbols name functions or `kernels`."""
    return next(functions(image, kernels), None) is not None


def _metadata(image: elf.Elf, kernel: str) -> Iterator[str]:
    document: dict[str, Any] = dict(metadata_of_elf(image))
    if not document:
        return
    kernels = document.get("amdhsa.kernels")
    if isinstance(kernels, list):
        symbol = f"{kernel}.kd"
        document["amdhsa.kernels"] = [
            item for item in kernels if isinstance(item, dict) and item.get(".symbol") == symbol
        ]
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yield "\t.amdgpu_metadata"
    yield "---"
    yield yaml.dump(document, Dumper=dumper, default_flow_style=False).rstrip()
    yield "..."
    yield "\t.end_amdgpu_metadata"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
