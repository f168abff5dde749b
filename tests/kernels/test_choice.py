"""Which configuration a launch takes: what is passed over, and what is said about what is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

from tests.targets import thorough_beyond  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast.errors import CompileError, ParseError  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.spec import KernelSpec  # noqa: E402
from wavecast.perfmodel.ranking import Constant  # noqa: E402
from wavecast.runtimes.triton import capture  # noqa: E402

pytestmark = pytest.mark.torch

COUNT = 1 << 15


@triton.jit
def reversed_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    """Holds all of a block at once, and passes it through the LDS."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.flip(x + tl.sum(x), 0))


def spec(*blocks: int) -> KernelSpec:
    """Blocks in the order they are tried in, two waves each."""
    return KernelSpec(
        function=reversed_kernel,
        grid=lambda problem, settings: (COUNT // settings["BLOCK"],),
        axes={"BLOCK": blocks, "num_warps": (2,)},
        demand=lambda problem, settings, device: Constant(blocks.index(settings["BLOCK"])),
    )


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    choice.forget()
    yield
    choice.forget()


def decided(target: str, *blocks: int) -> choice.Decision:
    x = torch.empty(COUNT)
    with capture(arch.load(target)), choice.record_decisions() as decisions:
        choice.run(spec(*blocks), {"count": COUNT}, x=x, y=torch.empty_like(x))
    return decisions[0]


@pytest.mark.parametrize("target", thorough_beyond(["gfx1100"], ["sm_90", "gfx1100"]))
def test_what_spills_is_passed_over_on_every_vendor(target: str) -> None:
    found = decided(target, 16384, 256)
    assert (found.configuration.settings["BLOCK"], found.spills) == (256, 0)


@pytest.mark.parametrize(
    ("target", "most", "least"),
    thorough_beyond(
        [("gfx1100", 16384, 8192)], [("gfx1100", 16384, 8192), ("sm_90", 32768, 16384)]
    ),
)
def test_the_least_spills_are_taken_with_a_warning_where_all_spill(
    target: str, most: int, least: int
) -> None:
    with pytest.warns(UserWarning, match=r"spills \d+ registers in every configuration"):
        found = decided(target, most, least)
    assert found.configuration.settings["BLOCK"] == least
    assert found.spills > 0


def test_what_the_compiler_left_a_race_in_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    races = iter(["the first", ""])
    monkeypatch.setattr(choice, "unfinished_stores", lambda program: next(races))
    assert decided("gfx942", 512, 256).configuration.settings["BLOCK"] == 256
    choice.forget()
    monkeypatch.setattr(choice, "unfinished_stores", lambda program: "every one")
    with pytest.raises(CompileError, match="lost a wait before a barrier"):
        decided("gfx942", 512, 256)


def test_code_that_cannot_be_checked_for_races_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decided("gfx942", 256).unchecked == ""
    choice.forget()

    def unknown(text: str, target: str) -> Any:
        raise ParseError("v_new_instruction is not known")

    monkeypatch.setattr(choice.isa, "parse", unknown)
    with pytest.warns(UserWarning, match="not checked for waits that the compiler lost"):
        found = decided("gfx942", 256)
    assert found.unchecked == "v_new_instruction is not known"


def test_a_triton_that_compiles_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", "3.7.1")
    with pytest.raises(CompileError, match=r"gfx942 needs Triton 3.8 or newer: 3.7.1 compiles"):
        decided("gfx942", 1024)
    monkeypatch.setattr(triton, "__version__", "3.8.0+git12")
    assert decided("gfx942", 1024).source == "formula"
