"""The shared corpus executed: `python -m tests.emulate.corpus [--check] [--target T]… [NAME…]`.

Prints per kernel and target whether the results are right or wrong, the launch broke off, or it was
unsupported or refused by Triton's compiler, and why. With `--check` launches are checked as well:
a case whose results are right but for which errors are found is `reported`. Exit code 1 when
anything is wrong, broken or reported. Errors of other kinds are not expected and end the program.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.emulate.corpus_cases import CASES, wrong
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.errors import Unsupported
from wavecast.errors import WavecastError

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
KERNELS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "kernels.py"
Verdict = tuple[str, str]
"""`right`, `wrong`, `broken`, `unsupported`, `refused` or another word, and what about it."""
_FAILURES = {"wrong", "broken", "reported"}


def load_kernels(path: Path = KERNELS) -> Any:
    """The corpus as a module."""
    spec = importlib.util.spec_from_file_location("corpus_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["corpus_kernels"] = module
    spec.loader.exec_module(module)
    return module


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Which cases to run, on which targets; `chosen` reads them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    return parser


def chosen(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """(name, target) of every case asked for; none where there is no corpus."""
    if not KERNELS.exists():
        print(f"no corpus at {KERNELS}")
        return
    for target in given.target or TARGETS:
        for name in given.names or CASES:
            yield name, target


def executed(kernels: Any, name: str, device: AbstractContextManager[Any]) -> Verdict:
    """Run a case inside `device`, which executes launches."""
    import torch
    from triton.errors import TritonError

    torch.manual_seed(len(name))
    try:
        with device:
            triples = CASES[name](kernels, torch)
    except Unsupported as error:
        return "unsupported", error.message
    except WavecastError as error:
        return "broken", error.message
    except TritonError as error:
        return "refused", f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    problems = list(wrong(torch, triples))
    return ("wrong", "; ".join(problems)) if problems else ("right", "")


def each(given: argparse.Namespace, verdict: Callable[[Any, str, str], Verdict]) -> int:
    """Print `verdict(kernels, name, target)` of every case, and how many of each kind there are by
    target. The exit code."""
    kernels: Any = None
    totals: dict[str, Counter[str]] = {}
    for name, target in chosen(given):
        kernels = kernels or load_kernels()
        started = time.perf_counter()
        state, text = verdict(kernels, name, target)
        totals.setdefault(target, Counter())[state] += 1
        seconds = time.perf_counter() - started
        print(f"{target} {name:14} {state:11} {seconds:6.2f} s  {text}", flush=True)
    for target, count in totals.items():
        print(target, ", ".join(f"{number} {state}" for state, number in count.items()))
    return int(any(_FAILURES & set(count) for count in totals.values()))


def _plain(kernels: Any, name: str, target: str) -> Verdict:
    import wavecast

    return executed(kernels, name, wavecast.device(target))


def _checked(kernels: Any, name: str, target: str) -> Verdict:
    import wavecast

    reports = Reports()
    state, text = executed(kernels, name, wavecast.device(target, check=reports))
    found = "; ".join(f"{r.kind.rule} {r.kernel} {r.text!r} {r.message}" for r in reports)
    return "reported" if reports.errors and state == "right" else state, text or found


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    return each(given, _checked if given.check else _plain)


if __name__ == "__main__":
    sys.exit(main())
