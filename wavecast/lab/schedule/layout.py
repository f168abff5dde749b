"""Assembly with the instructions of some blocks in another order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wavecast.isa.program import Block, Program

Item = int | str
"""An instruction of the compiler's code by its index, or the text of a new one."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The items of every block of a program, block after block."""

    program: Program
    blocks: tuple[tuple[Item, ...], ...]

    @staticmethod
    def of(program: Program) -> Layout:
        """The compiler's order."""
        return Layout(program, tuple(tuple(range(b.start, b.stop)) for b in program.blocks))

    def with_block(self, block: int, items: Sequence[Item]) -> Layout:
        """The same with other items in one block."""
        return replace(self, blocks=(*self.blocks[:block], tuple(items), *self.blocks[block + 1 :]))

    def with_texts(self, texts: dict[int, list[str]]) -> Layout:
        """The same with new instructions before items, by the position of an item in the code."""
        blocks, at = [], 0
        for block in self.blocks:
            items: list[Item] = []
            for item in block:
                items += texts.get(at, ())
                items.append(item)
                at += 1
            blocks.append(tuple(items))
        return replace(self, blocks=tuple(blocks))

    @property
    def items(self) -> list[Item]:
        """All items in order: those of a program that is parsed from `text`."""
        return [item for block in self.blocks for item in block]

    def text(self, assembly: str) -> str:
        """The assembly of the program in this order; `assembly` is that of the compiler.

        Every instruction takes its source line with it (`.loc`), so the files of source lines
        (`.file`) come before all instructions. Labels and other directives stay before the same
        number of the compiler's instructions.
        """
        lines = assembly.split("\n")
        instructions = self.program.instructions
        location, current = {}, ""
        rows = {instruction.line - 1: instruction.index for instruction in instructions}
        for number, line in enumerate(lines):
            if _is_location(line):
                current = line
            elif number in rows:
                location[rows[number]] = current
        start = min(rows, default=0)
        written = [*lines[:start], *(line for line in lines[start:] if _is_file(line))]
        lines[start:] = ["" if _is_file(line) else line for line in lines[start:]]
        at = start
        for block, items in zip(self.program.blocks, self.blocks, strict=True):
            first = instructions[block.start].line - 1
            last = instructions[block.stop - 1].line - 1
            written += lines[at:first]
            others = _others(lines, first, last, rows)
            written += self._block_lines(block, items, others, lines, location)
            at = last + 1
        return "\n".join([*written, *lines[at:]])

    def _block_lines(
        self,
        block: Block,
        items: Sequence[Item],
        others: Iterator[list[str]],
        lines: Sequence[str],
        location: Mapping[int, str],
    ) -> Iterator[str]:
        """The lines of one block."""
        current = location[block.start]
        for item in items:
            if isinstance(item, str):
                yield f"\t{item}"
                continue
            yield from next(others, ())
            if location[item] != current:
                current = location[item]
                yield current
            yield lines[self.program.instructions[item].line - 1]
        for rest in others:
            yield from rest
        if location[block.stop - 1] not in ("", current):
            yield location[block.stop - 1]


def _others(
    lines: Sequence[str], first: int, last: int, rows: Mapping[int, int]
) -> Iterator[list[str]]:
    """Labels and directives before each instruction of a block, but for source lines."""
    group: list[str] = []
    for number in range(first, last + 1):
        if number in rows:
            yield group
            group = []
        elif not _is_location(lines[number]):
            group.append(lines[number])


def _is_location(line: str) -> bool:
    return line.strip().startswith((".loc ", ".loc\t"))


def _is_file(line: str) -> bool:
    return line.strip().startswith((".file ", ".file\t"))


__all__ = ["Item", "Layout"]
