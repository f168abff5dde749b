"""Source lines of two versions of a kernel, matched by their text."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path, PurePath

from wavecast.compile.codeobject import CodeObject
from wavecast.isa.instruction import SourceLocation

LinePair = tuple[str, int, int]
"""A line of a file in both versions: file, number before, number after; 0 where it is not there."""


class LineMatcher:
    """Says of a location of either version which line of both it is.

    Lines of the kernel's own file are matched by text if the compiler kept it; lines of
    other files by number. `roots` are the folders the two versions lie in.
    """

    def __init__(self, before: CodeObject, after: CodeObject, roots: tuple[Path, Path]) -> None:
        self._codes = (before, after)
        self._roots = roots
        self._texts = (_lines(before), _lines(after))
        first, second = (list(texts.items()) for texts in self._texts)
        matcher = SequenceMatcher(
            None, [t.strip() for _, t in first], [t.strip() for _, t in second], autojunk=False
        )
        self._forth: dict[int, int] = {}
        for start, other, size in matcher.get_matching_blocks():
            for offset in range(size):
                self._forth[first[start + offset][0]] = second[other + offset][0]
        self._back = {after: before for before, after in self._forth.items()}

    def of(self, location: SourceLocation | None, side: int) -> LinePair | None:
        """The line of a location of a version (0 before, 1 after), at its outermost call site."""
        if location is None:
            return None
        location = location.outermost
        if not _same_file(location.file, self._codes[side].source):
            return self._name(location.file, side), location.line, location.line
        texts, map_ = self._texts[side], (self._forth, self._back)[side]
        line = location.line
        other = map_.get(line, 0) if texts else line
        before, after = (line, other) if side == 0 else (other, line)
        return PurePath(self._codes[1].source).name, before, after

    def text(self, pair: LinePair) -> str:
        """The text of a line, the later version's first; "" where no compiler kept it."""
        name, before, after = pair
        if name != PurePath(self._codes[1].source).name:
            return ""
        return (self._texts[1].get(after) or self._texts[0].get(before) or "").strip()

    def _name(self, file: str, side: int) -> str:
        pair = Path(file)
        root = self._roots[side]
        if pair.is_absolute() and pair.is_relative_to(root):
            return str(pair.relative_to(root))
        return file


def _lines(code: CodeObject) -> dict[int, str]:
    """The source a compiler kept by line number: Triton the function, others the whole file."""
    first = max(code.source_line, 1) if code.origin == "triton" else 1
    if code.origin in ("assembly", "elf"):
        return {}
    return dict(enumerate(code.source_text.splitlines(), first))


def _same_file(path: str, other: str) -> bool:
    """Whether recorded paths mean one file; a compiler may keep only the name of one."""
    if path == other:
        return True
    first, second = PurePath(path), PurePath(other)
    if first.is_absolute() and second.is_absolute():
        return False
    return bool(path) and bool(other) and first.name == second.name


__all__ = ["LineMatcher", "LinePair"]
