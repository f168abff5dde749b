"""A short, fixed slice of `python -m tests.fuzz`, and shapes whose cost must not explode."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz import limits, options, shapes
from tests.fuzz.kinds import Kind, Seeds, kinds, outcome
from tests.fuzz.minimize import minimize
from wavecast import isa

CASES = {
    "parse": 400,
    "assembly": 12,
    "execution": 24,
    "shapes": 6,
    "arch-file": 60,
    "settings": 200,
}
KINDS = kinds(Seeds())
LIMIT = 60.0


@pytest.mark.parametrize("name", CASES)
def test_damage_gives_a_result_or_a_refusal(name: str) -> None:
    kind: Kind = KINDS[name]
    found = set()
    for number in range(CASES[name]):
        seed = f"{name} {number}"
        with limits.seconds(LIMIT):
            found.add(outcome(kind, kind.make(random.Random(seed)), seed))
    assert "result" in found


@pytest.mark.llvm
def test_damaged_code_objects() -> None:
    kind = KINDS["elf"]
    if not Seeds().objects():
        pytest.skip("llvm-mc 22 or newer is not installed (apt install llvm-22)")
    with limits.seconds(LIMIT):
        found = [outcome(kind, kind.make(random.Random(f"e{n}")), f"e{n}") for n in range(60)]
    assert "refused" in found


@pytest.mark.parametrize("shape", shapes.FIXED)
def test_small_shapes_are_explained(shape: str) -> None:
    with limits.seconds(LIMIT):
        outcome(KINDS["shapes"], shapes.FIXED[shape].encode(), shape)


@pytest.mark.parametrize("shape", shapes.large(random.Random(0)))
def test_large_shapes_are_parsed(shape: str) -> None:
    with limits.seconds(LIMIT):
        module = isa.parse(shapes.large(random.Random(0))[shape], "gfx942")
    assert module.kernels["k"].program.blocks


@pytest.mark.torch
@pytest.mark.parametrize(
    "seed", [n if n <= 12 else pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 121)]
)
def test_hostile_options_end_in_one_line(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton")
    assert options.fault(options.make(seed), tmp_path) == "", options.make(seed)


def test_every_verb_has_hostile_options() -> None:
    """Verbs that serve a client until it ends have tests in tests/servers."""
    verbs = {verb for verb, _ in options.places()}
    assert verbs == options.COMMANDS.keys()
    assert options.all_verbs() - verbs == {
        *(f"learn {name}" for name in ("check", "list", "solution", "start")),
        *("cache show", "hipcc", "lsp", "mcp", "serve"),
    }


def test_a_case_follows_from_its_seed() -> None:
    kind = KINDS["assembly"]
    assert kind.make(random.Random("a 7")) == kind.make(random.Random("a 7"))


def test_minimal_inputs_keep_what_fails() -> None:
    text = b"\n".join(b"line %d" % number for number in range(200))
    assert minimize(text, lambda smaller: b"line 77" in smaller) == b"line 77"
