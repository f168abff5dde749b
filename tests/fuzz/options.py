"""`python -m tests.fuzz.options --count 1000`: every option and argument of every verb with values
that nobody means. A command ends with 0, 1 or 3, or with one line and exit code 2.

`make` draws a command by its seed; `fault` executes it in an empty folder with a few inputs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import click

from tests.warm_python import run_python
from wavecast.cli.main import cli

SAXPY = Path(__file__).parents[1] / "compile/data/saxpy.gfx942.s"
FILES = {
    "saxpy.s": SAXPY.read_text(encoding="utf-8"),
    "x.py": "print(1)\n",
    "k.hip": "__global__ void k(float *a) { a[0] = 1; }\n",
    "x.ll": "define void @f() {\n ret void\n}\n",
    "model.json": (
        '{"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2,'
        ' "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 512,'
        ' "vocab_size": 1024}'
    ),
    "trace.csv": "Kernel_Name,Start_Timestamp,End_Timestamp\nk,100,200\n",
    "pyproject.toml": '[tool.wavecast.gate]\narch = ["gfx942"]\nsubjects = ["rms_norm"]\n',
}
VALUES = (
    "", "-1", "0", "nan", "9" * 30, "1e400", "a,b,,", "[", "/dev/null", ".", "missing-file",
    "é\u202e", "x" * 5000, "=", ":", "0..0", "1:2:3", "none", "true", "mi300x,", "{}", "\x7f",
)  # fmt: skip
COMMANDS = {
    "arch": "mi300x",
    "bench": "rms_norm -a rows=8 --arch gfx942",
    "cache clear": "",
    "coefficients": "",
    "compare": "a b",
    "diff": "saxpy.s saxpy.s",
    "doctor": "",
    "explain": "saxpy.s --grid 1 --block 64",
    "export": "rms_norm -o x",
    "gate": "",
    "history": "",
    "lab compilers": "k.hip",
    "lab passes": "x.py",
    "lab reduce": "x.ll",
    "lab schedule": "x.py",
    "lab tune": "x.py",
    "learn notebook": "1",
    "model": "model.json --system mi300x --tp 1 --in 8 --out 2",
    "ops": "-k rms_norm",
    "profile": "trace.csv",
    "rules": "",
    "run": "saxpy.s --grid 1 --block 64",
    "schema": "explain",
    "store check": "",
    "store export": "out.json",
    "store import": "trace.csv",
    "store list": "",
    "tune": "x.py -a gfx942",
    "validate": "trace.csv",
    "vllm-report": "model.json",
}
"""Verbs and the arguments that they work with; those that serve a client are left out."""
CLUSTERS = "--ray"
"""An option that waits for other machines."""
_LONGEST = 1000


def all_verbs() -> set[str]:
    """The names of all verbs."""
    return {verb for verb, _ in _verbs(cli, ())}


@cache
def places() -> tuple[tuple[str, str], ...]:
    """(verb, option with a value) of every verb in `COMMANDS`; "" stands for its arguments."""
    return tuple(
        (verb, "" if isinstance(parameter, click.Argument) else parameter.opts[-1])
        for verb, command in _verbs(cli, ())
        if verb in COMMANDS
        for parameter in command.params
        if not (isinstance(parameter, click.Option) and parameter.is_flag)
        and CLUSTERS not in parameter.opts
    )


def _verbs(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None:
            yield from _verbs(child, (*path, name))


def make(seed: int) -> list[str]:
    """The arguments of a command."""
    draw = random.Random(seed)
    verb, option = draw.choice(places())
    value, usual = draw.choice(VALUES), COMMANDS[verb].split()
    return [*verb.split(), *([*usual, option, value] if option else [value, *usual[1:]])]


def fault(arguments: Sequence[str], folder: Path) -> str:
    """What is wrong with how a command ends; "" if nothing is."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    cache = {"WAVECAST_CACHE_DIR": str(folder / "cache")} if arguments[0] == "cache" else {}
    environment = {**os.environ, **cache, "BROWSER": "true"}
    done = run_python("-m", "wavecast", *arguments, folder=folder, environment=environment)
    code, said = done.returncode, done.stderr
    if "Traceback" in said or "internal error" in said:
        return f"a traceback: {said[-_LONGEST:]}"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    line = said.startswith("wavecast: ") and said.count("\n") == 1 and len(said) < _LONGEST
    return f"not one line: {said[:_LONGEST]}" if code == 2 and not line else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.options", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="number of the first command")
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    faults = 0
    for seed in range(options.seed, options.seed + options.count):
        with tempfile.TemporaryDirectory() as folder:
            if problem := fault(make(seed), Path(folder)):
                faults += 1
                print(f"{seed}: {make(seed)}: {problem}", flush=True)
    print(f"{options.count} commands, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
