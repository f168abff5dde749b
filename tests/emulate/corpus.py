"""The shared corpus executed: `python -m tests.emulate.corpus [--target T]… [NAME…]`.

Prints right, wrong or unsupported (with the reason) per kernel and target. Exit code 1 when
anything is wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

from tests.emulate.corpus_cases import CASES, wrong

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
KERNELS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "kernels.py"


def load_kernels(path: Path = KERNELS) -> Any:
    """The corpus as a module."""
    spec = importlib.util.spec_from_file_location("corpus_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["corpus_kernels"] = module
    spec.loader.exec_module(module)
    return module


def verdict(kernels: Any, name: str, target: str) -> tuple[str, str]:
    """(`right`, `wrong`, `unsupported` or `refused`, what about it)."""
    import torch

    import wavecast
    from wavecast.emulate.errors import Unsupported
    from wavecast.errors import WavecastError

    torch.manual_seed(len(name))
    try:
        with wavecast.device(target):
            triples = CASES[name](kernels, torch)
    except Unsupported as error:
        return "unsupported", error.message
    except WavecastError as error:
        return "wrong", error.message
    except Exception as error:
        return "refused", f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    problems = list(wrong(torch, triples))
    return ("wrong", "; ".join(problems)) if problems else ("right", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    given = parser.parse_args()
    if not KERNELS.exists():
        print(f"no corpus at {KERNELS}")
        return 0
    kernels = load_kernels()
    totals: dict[str, dict[str, int]] = {}
    for target in given.target or TARGETS:
        count = totals.setdefault(target, {})
        for name in given.names or CASES:
            started = time.perf_counter()
            state, text = verdict(kernels, name, target)
            count[state] = count.get(state, 0) + 1
            seconds = time.perf_counter() - started
            print(f"{target} {name:14} {state:11} {seconds:6.2f} s  {text}", flush=True)
    for target, count in totals.items():
        print(target, ", ".join(f"{number} {state}" for state, number in count.items()))
    return int(any("wrong" in count for count in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
