"""Decode library code, print it and assemble it again: the bytes must be those of the library.

    python -m tests.corpus.library_code FILE … [--target gfx942] [--limit 10000000] [--encode N]

Every distinct instruction of the files is compared (equal bytes print equally): its text goes to
llvm-mc. Where the bytes differ, LLVM's own text of the original decides: where it is the same, the
difference is in bits that nothing reads, and LLVM changes them as well. `--encode` gives N texts of
each target to our encoder too, whose bytes must be llvm-mc's.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.oracle import encodings
from wavecast.arch import capabilities
from wavecast.compile import containers, map_file
from wavecast.errors import WavecastError
from wavecast.isa import elf
from wavecast.isa.decode import DecodeError, wave_lanes_of
from wavecast.isa.encoding.decoder import MOST_WORDS
from wavecast.isa.encoding.encoder import EncodeError, machine_encoder
from wavecast.isa.encoding.stream import CodeReader
from wavecast.isa.targets import TARGETS, isa_target

_BATCH = 20_000
_SHOWN = 12


@dataclass
class Seen:
    """The instructions of one target: words -> text, and what is data, with up to five words."""

    instructions: int = 0
    seconds: float = 0.0
    texts: dict[tuple[int, ...], str] = field(default_factory=dict)
    data: set[tuple[int, ...]] = field(default_factory=set)


def sections(path: Path) -> Iterator[tuple[str, bytes, int]]:
    """(target, content, address) of every section of code in a file."""
    for member in containers.members(map_file(path)):
        try:
            image = elf.read(member.data)
            target = isa_target((member.target or elf.processor(image)).split(":")[0])
        except WavecastError:
            continue
        for section in image.sections:
            if section.name.startswith(".text") and section.size and target in TARGETS:
                content = section.file[section.offset : section.offset + section.size]
                yield target, bytes(content), section.address


def read(paths: list[Path], only: set[str], limit: int) -> dict[str, Seen]:
    """What the files have, at most about `limit` instructions of each target."""
    found: dict[str, Seen] = defaultdict(Seen)
    for path in paths:
        try:
            for target, content, address in sections(path):
                if (not only or target in only) and found[target].instructions < limit:
                    _add(found[target], target, content, address)
        except WavecastError as error:
            print(f"{path}: {error}", file=sys.stderr)
    return found


def _add(seen: Seen, target: str, content: bytes, address: int) -> None:
    began = time.process_time()
    placed = CodeReader(target, wave_lanes_of(target)).read(content, address)
    seen.seconds += time.process_time() - began
    words = memoryview(content[: len(content) // 4 * 4]).cast("I")
    for item in placed:
        first = (item.address - address) // 4
        if item.decoding is None:
            seen.data.add(tuple(words[first : first + MOST_WORDS]))
            continue
        seen.instructions += 1
        text = item.decoding.text
        if "/*" not in text:
            seen.texts.setdefault(tuple(words[first : first + item.decoding.words]), text)


def compare(target: str, seen: Seen, encoded: int) -> tuple[Counter[str], list[str]]:
    """Counts of distinct instructions by outcome, and lines for those that are wrong."""
    attributes = "+real-true16" if capabilities(target).true16 else ""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    items = iter(seen.texts.items())
    encoder = machine_encoder(target, wave_lanes_of(target))
    chosen = set(random.Random(0).sample(range(len(seen.texts)), min(encoded, len(seen.texts))))
    number = 0
    while batch := list(islice(items, _BATCH)):
        assembled = encodings.assemble(target, [text for _, text in batch], attributes)
        changed = []
        for (words, text), item in zip(batch, assembled, strict=True):
            if number in chosen and item is not None:
                try:
                    value = encoder.encode(text).value
                except (EncodeError, DecodeError):
                    value = -1
                counts["encoded" if value == item.value else "encoded otherwise"] += 1
                if value != item.value:
                    problems.append(f"encoder: {text}")
            number += 1
            if item is not None and item.words == words:
                counts["same bytes"] += 1
            else:
                changed.append((words, text))
        theirs = encodings.disassemble(target, [words for words, _ in changed], attributes)
        for (words, text), other in zip(changed, theirs, strict=True):
            if other == encodings.plain(text):
                counts["bits that nothing reads"] += 1
            elif not other:
                counts["unknown to llvm-mc"] += 1
            else:
                counts["different"] += 1
                problems.append(f"{text}  LLVM: {other}  {' '.join(f'{w:08x}' for w in words)}")
    data = sorted(seen.data)[:_BATCH]
    for words, other in zip(data, encodings.disassemble(target, data, attributes), strict=True):
        counts["data that llvm-mc reads" if other else "data"] += 1
        if other:
            problems.append(f"not read: {other}  {' '.join(f'{w:08x}' for w in words)}")
    return counts, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Decode, print, assemble, compare.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--limit", type=int, default=10_000_000)
    parser.add_argument("--encode", type=int, default=2000)
    options = parser.parse_args()
    bad = 0
    for target, seen in read(options.files, set(options.target), options.limit).items():
        counts, problems = compare(target, seen, options.encode)
        shown = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        speed = seen.instructions / max(seen.seconds, 1e-9)
        print(
            f"{target}: {seen.instructions:,} instructions ({speed:,.0f}/s), "
            f"{len(seen.texts):,} distinct: {shown}",
            flush=True,
        )
        kinds: Counter[str] = Counter()
        for problem in problems:
            key = " ".join(problem.split()[:2])
            kinds[key] += 1
            if kinds[key] <= 1 and len(kinds) <= _SHOWN:
                print(f"  {problem}", flush=True)
        bad += counts["different"] + counts["encoded otherwise"]
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
