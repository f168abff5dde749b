"""How many HIP programs of a folder build and run, why others do not, and what takes the time.

python benchmarks/hip_programs.py FOLDER RESULTS.jsonl [--match 'a*'] [--seconds 40] [--no-run]

Each folder below FOLDER with a Makefile is one program: `make CC="wavecast hipcc"` builds it, and
the first command of `make -n run` runs it. The last number of that command, which is the number of
repetitions in most collections, becomes 1, and numbers above `--size` are halved until they are
not; a program that does not end right is run again with its own sizes. RESULTS has one JSON line
per program; programs that it names already are skipped. The table counts

right        ended with exit code 0, and says PASS, "correct" or similar, and no failure
no verdict   ended with exit code 0 and says neither
wrong        says FAIL, "mismatch" or similar, or ended with another exit code
too long     needed more than `--seconds` of processor time
not built    with the first error
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

_WAVECAST = f"{shlex.quote(sys.executable)} -m wavecast"
_GOOD = re.compile(r"\bpass(ed)?\b|\bcorrect\b|\bsuccess|\bmatch(es)?\b|\bok\b|verified", re.I)
_BAD = re.compile(r"\bfail|mismatch|incorrect|\bwrong\b|not equal|does not match", re.I)
_ERROR = re.compile(r"^.*(?:\berror\b|Error:|No rule|No such file|undefined).*$", re.M)
_OWN = re.compile(r"^(?:wavecast|Error): (?!.* computed by the host$).*$", re.M)


@dataclass
class Result:
    """How one program ended; times are seconds of processor time."""

    program: str
    verdict: str
    why: str = ""
    command: str = ""
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    output: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description="HIP programs of a folder, built and run.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--match", default="*")
    parser.add_argument("--only", type=Path, help="file with names of programs")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--check", action="store_true", help="run with --check")
    parser.add_argument("--no-run", action="store_true")
    given = parser.parse_args()
    done = _read(given.results)
    names = sorted(path.parent.name for path in given.folder.glob("*/Makefile"))
    if given.only:
        asked = given.only.read_text().split()
        names = [name for name in asked if name in set(names)]
    for name in fnmatch.filter(names, given.match):
        if name in done:
            continue
        result = _one(given.folder / name, given)
        print(f"{result.program}: {result.verdict} {result.why}"[:160], flush=True)
        with given.results.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        done[name] = result
    counts = collections.Counter(one.verdict for one in done.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))


def _read(path: Path) -> dict[str, Result]:
    lines = path.read_text().splitlines() if path.is_file() else []
    return {one.program: one for one in (Result(**json.loads(line)) for line in lines)}


def _one(folder: Path, given: argparse.Namespace) -> Result:
    before = _used()
    make = ["make", "-s", f"CC={_WAVECAST} hipcc"]
    subprocess.run([*make, "clean"], cwd=folder, capture_output=True, check=False)
    # The goal is what `run` needs, without running it.
    status, text = _limited([*make, "-k"], folder, 10 * given.seconds)
    built = _used() - before
    command = _command(folder, make)
    if status or command is None:
        why = _OWN.search(text) or _ERROR.search(text)
        return Result(
            folder.name, "not built", why[0].strip() if why else f"status {status}",
            build_seconds=built, output=text[-2000:],
        )  # fmt: skip
    if given.no_run:
        return Result(folder.name, "built", build_seconds=built)
    result = Result(folder.name, "", build_seconds=built)
    for size in (given.size, None):
        words = _cut(command, size)
        if shlex.join(words) == result.command:
            break
        before = _used()
        options = ["--threads", "1", *(["--check"] if given.check else [])]
        run = [*shlex.split(_WAVECAST), "run", *options, words[0], "--", *words[1:]]
        status, text = _limited(run, folder, given.seconds)
        result.run_seconds = _used() - before
        result.command, result.output = shlex.join(words), text[-2000:]
        result.verdict, result.why = _verdict(status, text)
        if result.verdict != "wrong":
            break
    return result


def _command(folder: Path, make: list[str]) -> list[str] | None:
    printed = subprocess.run(
        [*make, "-n", "run"], cwd=folder, capture_output=True, text=True
    ).stdout
    for line in printed.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line.split("|")[0].split(">")[0])
        except ValueError:
            continue
        for at, word in enumerate(words):
            if "/" in word and (folder / word).is_file() and os.access(folder / word, os.X_OK):
                return words[at:]
    return None


def _cut(command: list[str], size: int | None) -> list[str]:
    """The command with one repetition and sizes up to `size`."""
    words = list(command)
    numbers = [at for at, word in enumerate(words) if at and word.isdigit()]
    for at in numbers:
        value = int(words[at])
        while size is not None and value > size:
            value //= 2
        words[at] = str(value)
    if len(numbers) > 1 or (numbers and int(words[numbers[0]]) <= 1000):
        words[numbers[-1]] = "1"
    return words


def _verdict(status: int, text: str) -> tuple[str, str]:
    if status == 124:
        return "too long", ""
    bad = _OWN.search(text) or _BAD.search(text)
    if status or bad:
        line = bad[0].strip() if bad else ""
        return "wrong", line or f"exit code {status}"
    return ("right" if _GOOD.search(text) else "no verdict"), ""


def _limited(command: list[str], folder: Path, seconds: int) -> tuple[int, str]:
    """Exit status, 124 where the limit of processor time is reached, and what was printed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        os.setsid()

    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=limit,
    ) as child:  # fmt: skip
        try:
            text, _ = child.communicate(timeout=10 * seconds)
            status = child.returncode
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            text, _ = child.communicate()
            status = 124
    ended_by_limit = status in (-24, -9, 128 + 24, 128 + 9) or "SIGXCPU" in text
    return (124 if ended_by_limit else status), text


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
