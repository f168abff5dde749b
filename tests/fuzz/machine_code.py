"""Random machine code: what decodes is encoded again, and prints as LLVM's disassembler prints it.

    python -m tests.fuzz.machine_code [--target gfx942] [--count 20000] [--seed 0]

Words are drawn with the identity and the opcode number of a row; their other bits are random, often
those of registers and constants that exist. An instruction that is read must print as LLVM prints
it, or as something that LLVM's assembler encodes as LLVM's text; and our encoder must find bytes
that print the same.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator

from tests.oracle import encodings
from wavecast.arch import capabilities
from wavecast.isa.decode import DecodeError, wave_lanes_of
from wavecast.isa.encoding.decoder import machine_decoder
from wavecast.isa.encoding.encoder import EncodeError, machine_encoder
from wavecast.isa.encoding.formats import Format, formats
from wavecast.isa.encoding.opcodes import encoded_rows
from wavecast.isa.targets import TARGETS

_SHOWN = 15
_CHUNK = 400


def drawn(target: str, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Instructions of two words more than their formats have."""
    draw = random.Random(f"{target} {seed}")
    numbers: dict[str, list[int]] = {}
    for name, number in encoded_rows(target):
        numbers.setdefault(name, []).append(number)
    shapes = [shape for shape in formats(target) if shape.name in numbers]
    for _ in range(count):
        shape = draw.choice(shapes)
        yield _instruction(shape, numbers[shape.name], draw)


def _instruction(shape: Format, numbers: list[int], draw: random.Random) -> tuple[int, ...]:
    words = shape.words + 2
    value = draw.getrandbits(32 * words)
    if draw.random() < 0.8:  # bits of modifiers are mostly clear in programs
        value &= draw.getrandbits(32 * words) | draw.getrandbits(32 * words)
    for name, bits in shape.fields.items():
        if bits.width == 9 and name.startswith("src"):
            code = draw.choice((draw.randrange(256, 512), draw.randrange(106), 128, 193, 240, 255))
            value = value & ~(bits.mask << bits.low) | code << bits.low
    value = value & ~shape.mask | shape.value
    for name in ("op", "opx", "opy"):
        if name in shape.fields:
            bits = shape.fields[name]
            number = draw.choice(numbers) & bits.mask
            value = value & ~(bits.mask << bits.low) | number << bits.low
    return tuple(value >> 32 * index & 0xFFFFFFFF for index in range(words))


def disassembled(target: str, codes: list[tuple[int, ...]], attributes: str) -> list[str]:
    """LLVM's texts; "" for what it does not know or crashes on, as it does on some bits."""
    if not codes:
        return []
    found = encodings.disassemble(target, codes, attributes)
    if any(found) or len(codes) == 1:
        return found
    half = len(codes) // 2
    return disassembled(target, codes[:half], attributes) + disassembled(
        target, codes[half:], attributes
    )


def compare(target: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Counts by outcome, and lines for what is wrong."""
    lanes = wave_lanes_of(target)
    attributes = "+real-true16" if capabilities(target).true16 else ""
    decoder, encoder = machine_decoder(target, lanes), machine_encoder(target, lanes)
    counts: Counter[str] = Counter()
    problems: list[str] = []
    read: dict[tuple[int, ...], str] = {}
    for words in drawn(target, count, seed):
        value = sum(word << 32 * index for index, word in enumerate(words))
        found = decoder.decode(value, len(words))
        if found is None or "invalid" in found.text:
            counts["not read"] += 1
            continue
        read[words[: found.words]] = found.text
        try:
            again = encoder.encode(found.text)
            shown = decoder.decode(again.value, again.words)
            assert shown is not None
            counts["encoded" if shown.text == found.text else "encoded otherwise"] += 1
        except (EncodeError, DecodeError) as error:
            counts["not encoded"] += 1
            problems.append(f"encoder: {found.text}: {error}")
    codes = list(read)
    theirs = [
        text
        for first in range(0, len(codes), _CHUNK)
        for text in disassembled(target, codes[first : first + _CHUNK], attributes)
    ]
    other: list[tuple[str, str]] = []
    for text, shown in zip(read.values(), theirs, strict=True):
        if not shown:
            counts["unknown to llvm-mc"] += 1
        elif shown == encodings.plain(text):
            counts["as LLVM prints"] += 1
        else:
            other.append((text, shown))
    pairs = zip(
        other,
        encodings.assemble(target, [own for own, _ in other], attributes),
        encodings.assemble(target, [shown for _, shown in other], attributes),
        strict=True,
    )
    for (text, shown), own, llvm in pairs:
        if own is not None and llvm is not None and own.words == llvm.words:
            counts["another spelling"] += 1
        elif llvm is None:
            counts["LLVM's text is no assembly"] += 1
        else:
            counts["different"] += 1
            problems.append(f"{text}  LLVM: {shown}")
    return counts, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Random machine code against LLVM.")
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = 0
    for target in options.target or TARGETS:
        counts, problems = compare(target, options.count, options.seed)
        print(f"{target}: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()), flush=True)
        kinds: set[str] = set()
        for problem in problems:
            key = " ".join(problem.split()[:2]) if problem.startswith("enc") else problem.split()[0]
            if key not in kinds and len(kinds) < _SHOWN:
                kinds.add(key)
                print(f"  {problem[:240]}", flush=True)
        bad += len(problems)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
