"""The blocks of a function of LLVM IR: instructions with operands, and where control goes.

A value is a name (`%4`) or a constant as the text has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wavecast.compile.llvm_ir import Position, labelled_body, positions

NAME = re.compile(r'%(?:"[^"]+"|[\w.$-]+)')
_LABEL = re.compile(r'^(?P<label>"[^"]+"|[\w.$-]+):')
_RESULT = re.compile(r'^\s*(?P<result>%(?:"[^"]+"|[\w.$-]+)) = (?P<what>.*)$')
_DEBUG = re.compile(r"!dbg !(\d+)")
_METADATA = re.compile(r",? ![\w.]+ !\d+.*$")
_WIDTH = re.compile(r"^i(\d+)$")
_CALL = re.compile(r'@(?:"(?P<quoted>[^"]+)"|(?P<plain>[\w.$-]+))\(')
_INCOMING = re.compile(r'\[ (?P<value>.+?), %(?P<label>"[^"]+"|[\w.$-]+) \]')
_TARGET = re.compile(r'label %("[^"]+"|[\w.$-]+)')
_CASE = re.compile(r'i\d+ (-?\d+), label %("[^"]+"|[\w.$-]+)')
_BINARY = frozenset(
    {
        *("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr"),
        *("and", "or", "xor", "fadd", "fsub", "fmul", "fdiv", "frem", "icmp", "fcmp"),
    }
)
_CASTS = frozenset(
    {
        *("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"),
        *("ptrtoint", "inttoptr", "bitcast", "addrspacecast"),
    }
)
ENTRY = ""
"""The label of a function's first block."""


@dataclass(frozen=True, slots=True)
class IrInstruction:
    """An instruction. `type` is that of the operands for binary ones, else of the result (`store`:
    of what is stored). `detail` is the predicate of a comparison, the callee of a call, the type a
    cast is from. `sources` are the labels a phi's operands come from."""

    result: str
    opcode: str
    type: str = ""
    operands: tuple[str, ...] = ()
    detail: str = ""
    sources: tuple[str, ...] = ()
    position: Position = ()

    @property
    def width(self) -> int:
        """Bits of the type; 0 where it is not an integer."""
        return integer_width(self.type)


@dataclass(slots=True)
class IrBlock:
    """A block. `targets` are the labels control goes to: one, two for the outcomes 1 and 0 of
    `condition`, or the default and those of `cases`."""

    label: str
    instructions: list[IrInstruction] = field(default_factory=list)
    condition: str = ""
    targets: tuple[str, ...] = ()
    cases: tuple[int, ...] = ()


def integer_width(name: str) -> int:
    """The bits of an integer type, 0 for another one."""
    width = _WIDTH.match(name)
    return int(width[1]) if width is not None else 0


def blocks_of(lines: Sequence[str], name: str) -> dict[str, IrBlock]:
    """The blocks of a function by label, in their order; none where the module lacks it."""
    located = positions(tuple(lines))
    blocks: dict[str, IrBlock] = {}
    block = IrBlock(ENTRY)
    for line in _join_switches(labelled_body(lines, name)):
        label = _LABEL.match(line)
        if label is not None:
            if block.instructions or block.targets:
                blocks[block.label] = block
            block = IrBlock(label["label"])
            continue
        _add(block, line.strip(), located)
    blocks[block.label] = block
    return _with_entry(blocks)


def _with_entry(blocks: dict[str, IrBlock]) -> dict[str, IrBlock]:
    """Blocks with labels that exist: a first block without one has a number in phis only."""

    def rename_sources(instruction: IrInstruction) -> IrInstruction:
        sources = tuple(label if label in blocks else ENTRY for label in instruction.sources)
        return IrInstruction(
            instruction.result, instruction.opcode, instruction.type, instruction.operands,
            instruction.detail, sources, instruction.position,
        )  # fmt: skip

    for block in blocks.values():
        block.instructions = [rename_sources(i) if i.sources else i for i in block.instructions]
    return blocks


def _join_switches(lines: Iterator[str]) -> Iterator[str]:
    """Lines with the cases of a switch on one."""
    text = ""
    for line in lines:
        text = f"{text} {line.strip()}" if text else line
        if text.lstrip().startswith("switch ") and "]" not in text:
            continue
        yield text
        text = ""


def _add(block: IrBlock, line: str, located: Mapping[int, Position]) -> None:
    if not line or line.startswith((";", "#")):
        return
    debug = _DEBUG.search(line)
    position = located.get(int(debug[1]), ()) if debug is not None else ()
    line = _METADATA.sub("", line)
    definition = _RESULT.match(line)
    result, what = (definition["result"], definition["what"]) if definition else ("", line)
    opcode = what.split(" ", 1)[0]
    if opcode == "br":
        block.targets = tuple(_TARGET.findall(what))
        if len(block.targets) == 2:
            block.condition = what.removeprefix("br i1 ").split(",", 1)[0]
    elif opcode == "switch":
        block.targets = tuple(_TARGET.findall(what))
        block.cases = tuple(int(value) for value, _ in _CASE.findall(what.split("[", 1)[1]))
        block.condition = what.split(",", 1)[0].rsplit(" ", 1)[1]
    else:
        block.instructions.append(_instruction(result, opcode, what, position))


def _instruction(result: str, opcode: str, what: str, position: Position) -> IrInstruction:
    if opcode in ("tail", "musttail", "notail", "call"):
        return _call(result, what, position)
    rest = what.removeprefix(opcode).strip()
    if opcode in _BINARY:
        *flags, kind, first = _words(rest.split(", ", 1)[0])
        second = rest.rsplit(", ", 1)[1]
        detail = flags[-1] if flags else ""
        return IrInstruction(result, opcode, kind, (first, second), detail, (), position)
    if opcode in _CASTS:
        value, kind = rest.rsplit(" to ", 1)
        *_, source, name = _words(value)
        return IrInstruction(result, opcode, kind, (name,), source, (), position)
    if opcode == "phi":
        pairs = [(m["value"], m["label"]) for m in _INCOMING.finditer(rest)]
        kind = _words(rest.split(" [ ", 1)[0] + " x")[-2]
        values, labels = tuple(v for v, _ in pairs), tuple(label for _, label in pairs)
        return IrInstruction(result, opcode, kind, values, "", labels, position)
    if opcode in ("load", "store"):
        return _access(result, opcode, rest, position)
    if opcode in ("atomicrmw", "cmpxchg"):
        return IrInstruction(result, opcode, "", tuple(NAME.findall(rest)), "", (), position)
    parts = split_operands(rest)
    values = tuple(_words(part)[-1] for part in parts)
    kind = _words(parts[0])[-2] if parts and len(_words(parts[0])) > 1 else ""
    if opcode == "select":
        kind = _words(parts[1])[-2]
    elif opcode == "getelementptr":
        kind, values = "ptr", values[1:]
    return IrInstruction(result, opcode, kind, values, "", (), position)


def _access(result: str, opcode: str, rest: str, position: Position) -> IrInstruction:
    """A load or a store, whose detail is the type of its pointer."""
    first, pointer, *_ = split_operands(rest)
    words = [word for word in _words(first) if word not in ("atomic", "volatile")]
    space, address, *_ = _words(pointer)
    operands = (*words[1:], address)
    return IrInstruction(result, opcode, words[0], operands, space, (), position)


def _call(result: str, what: str, position: Position) -> IrInstruction:
    match = _CALL.search(what)
    if match is None:  # through a pointer, or inline assembly
        names = tuple(NAME.findall(what))
        return IrInstruction(result, "call", "", names, "", (), position)
    callee = match["quoted"] or match["plain"]
    arguments = split_operands(what[match.end() : what.rindex(")")])
    values = tuple(_words(part)[-1] for part in arguments if part)
    before = _words(what[: match.start()].strip() + " x")
    return IrInstruction(result, "call", before[-2], values, callee, (), position)


def _words(text: str) -> list[str]:
    """The words of `flags type value`, brackets kept together."""
    words: list[str] = []
    depth, word = 0, ""
    for character in text:
        depth += (character in "(<[{") - (character in ")>]}")
        if character == " " and not depth:
            if word:
                words.append(word)
            word = ""
        else:
            word += character
    if word:
        words.append(word)
    joined: list[str] = []
    for word in words:
        if word.startswith("addrspace(") and joined and joined[-1] == "ptr":
            joined[-1] = f"ptr {word}"
        else:
            joined.append(word)
    return joined


def split_operands(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


__all__ = ["ENTRY", "IrBlock", "IrInstruction", "blocks_of", "integer_width", "split_operands"]
