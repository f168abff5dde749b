"""`python -m tests.fuzz.files --count 1000`: damaged files that verbs read.

Every input follows from a valid small one and a seed. A command ends with 0, 1 or 3, or with one
line and exit code 2; it does not take more than `SECONDS` of the processor or `MEGABYTES`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz import file_inputs
from tests.fuzz.file_inputs import DamagedInput

SECONDS = 30
MEGABYTES = 3000
_LONGEST = 1000
_SHOWN = 3000
CODES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended: its exit code (negative: a signal), output, errors, and the most memory
    it took in MB."""

    code: int
    out: str
    err: str
    megabytes: int


def run(arguments: Sequence[str], folder: Path) -> CommandEnd:
    """A command line in a fork, in a folder."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os._exit(_child(arguments, folder, out.fileno(), err.fileno()))
        _, status, used = os.wait4(child, 0)
        out.seek(0)
        err.seek(0)
        return CommandEnd(
            os.waitstatus_to_exitcode(status),
            out.read().decode("utf-8", "replace"),
            err.read().decode("utf-8", "replace"),
            used.ru_maxrss >> 10,
        )


def _child(arguments: Sequence[str], folder: Path, out: int, err: int) -> int:
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(4 * SECONDS)
        os.environ["COLUMNS"] = "100"
        from wavecast import files
        from wavecast.benchmarking.store import sqlite
        from wavecast.cli.main import run as run_command

        files.WAIT_SECONDS = 0.05
        defaults = sqlite.open_store.__kwdefaults__
        assert defaults is not None
        defaults["wait"] = 0.2
        run_command(list(arguments))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:
        traceback.print_exc()
        code = 71
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    return code


def fault(end: CommandEnd) -> str:
    """What is wrong with how a command ended; "" if nothing is."""
    said = end.err
    if "Traceback" in said or "internal error" in said + end.out:
        return f"a traceback: {said[-_SHOWN:] or end.out[-_SHOWN:]}"
    if end.code not in CODES:
        return f"exit code {end.code}: {said[-_SHOWN:]}"
    if end.megabytes > MEGABYTES:
        return f"{end.megabytes} MB"
    line = said.startswith("wavecast: ") and said.count("\n") == 1 and len(said) < _LONGEST
    if end.code == 2 and not line:
        return f"not one line: {said[:_SHOWN]!r}"
    return ""


def attempt(damaged: DamagedInput, seed: int, folder: Path) -> tuple[list[str], CommandEnd]:
    """The command of a seed and how it ended."""
    draw = random.Random(f"{damaged.name} {seed}")
    arguments = damaged.make(draw, folder)
    return arguments, run(arguments, folder)


@cache
def prepare(name: str) -> None:
    """Execute the undamaged command of an input, which must not be refused, and import here what it
    imported: its forks need not."""
    damaged = file_inputs.INPUTS[name]
    with tempfile.TemporaryDirectory() as folder:
        arguments = damaged.make(None, Path(folder))
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            with tempfile.TemporaryFile() as out:
                code = _child(arguments, Path(folder), out.fileno(), out.fileno())
                out.seek(0)
                said = out.read().decode("utf-8", "replace").replace("\n", " ") if code else ""
            names = [name for name in sys.modules if re.match(r"(wavecast|rich|numpy)\b", name)]
            with os.fdopen(writer, "w") as pipe:
                pipe.write("\n".join([f"{code} {said}", *names]))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            end, *names = pipe.read().split("\n")
        os.waitpid(child, 0)
    assert end == "0 ", f"{name}: the undamaged input ended with {end}"
    for module in names:
        importlib.import_module(module)


def main() -> int:
    """Damage files of every kind, and print what falls."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.files", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="number of the first case")
    parser.add_argument("--count", type=int, default=100, help="cases per kind")
    parser.add_argument("names", nargs="*", help=", ".join(file_inputs.INPUTS))
    options = parser.parse_args()
    faults = total = 0
    for name in options.names or file_inputs.INPUTS:
        prepare(name)
        codes = Counter[int]()
        for seed in range(options.seed, options.seed + options.count):
            with tempfile.TemporaryDirectory() as folder:
                arguments, end = attempt(file_inputs.INPUTS[name], seed, Path(folder))
            codes[end.code] += 1
            total += 1
            if problem := fault(end):
                faults += 1
                print(f"{name} {seed}: {arguments}: {problem}", flush=True)
        ends = ", ".join(f"{number} with {code}" for code, number in sorted(codes.items()))
        print(f"{name}: {ends}", flush=True)
    print(f"{total} inputs, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
