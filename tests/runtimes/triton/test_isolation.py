"""A compiler that aborts, ends or hangs in its fork, and what the program sees of that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from tests.waiting import runs, sleeps, until  # noqa: E402
from wavecast.errors import CompileError  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.runtimes.triton import capture, isolation  # noqa: E402
from wavecast.runtimes.triton.isolation import Crashed, diagnostic, rehearse  # noqa: E402

GOOD, ABORTS = "=v,v", "=v,5"
"""Constraints of inline assembly. The second is one that LLVM aborts on, in every build of it."""


@triton.jit
def moved(x_ptr, y_ptr, CONSTRAINTS: tl.constexpr, BLOCK: tl.constexpr):
    tl.static_print("compiling moved")
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place)
    y = tl.inline_asm_elementwise(
        "v_mov_b32 $0, $1",
        CONSTRAINTS,  # type: ignore[arg-type]
        [x],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.store(y_ptr + place, y)


@pytest.fixture
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of compiled kernels that is empty, on disk and in the process."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    moved.device_caches.clear()


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The forks of a test; all are gone at its end."""
    made: list[int] = []
    original = isolation._fork

    def fork(work: Callable[[], NoReturn]) -> int:
        child = original(work)
        made.append(child)
        return child

    monkeypatch.setattr(isolation, "_fork", fork)
    yield made
    for child in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


@pytest.mark.usefixtures("_fresh", "forks")
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_an_abort_is_an_error_that_names_kernel_and_target(target: str) -> None:
    x, y = torch.randn(256), torch.empty(256)
    said = rf"moved for {target}: the compiler crashed \(SIGABRT\): .*failed to parse constraints"
    with capture(target) as launches:
        with pytest.raises(CompileError, match=said):
            moved[(1,)](x, y, ABORTS, 256)
        moved[(1,)](x, y, GOOD, 256)
    assert [launch.code.kernel for launch in launches] == ["moved"]
    with wavecast.device(target):
        with pytest.raises(Crashed, match=said):
            moved[(1,)](x, y, ABORTS, 256)
        moved[(1,)](x, y, GOOD, 256)
    assert torch.equal(x, y)


@pytest.mark.usefixtures("_fresh")
def test_only_what_is_not_in_the_cache_takes_a_fork(
    forks: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launched() -> str:
        moved.device_caches.clear()
        with capture("gfx942"):
            moved[(1,)](torch.empty(64), torch.empty(64), GOOD, 64)
        return capsys.readouterr().out

    assert "compiling moved" in launched()
    assert len(forks) == 1
    assert launched() == ""
    assert len(forks) == 1
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    assert launched().count("compiling moved") == 1
    assert len(forks) == 2


@pytest.mark.usefixtures("_fresh")
def test_kernels_compile_in_threads(forks: list[int]) -> None:
    x, ended = torch.randn(512), []

    def launch(size: int) -> None:
        y = torch.empty(512)
        moved[(1,)](x, y, GOOD, size)
        ended.append(size)

    with capture("gfx942"):
        threads = [threading.Thread(target=launch, args=(2**bits,)) for bits in range(5, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(ended) == [32, 64, 128, 256]
    assert len(forks) == 4


@pytest.mark.usefixtures("_fresh")
@pytest.mark.operators
def test_kernels_of_the_library_compile_in_forks(forks: list[int]) -> None:
    choice.forget()
    with capture("gfx90a") as launches:
        wavecast.ops.silu(torch.empty(3, 80))
    assert launches
    assert forks


@pytest.mark.usefixtures("_fresh")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kernels_that_inductor_writes_compile_in_forks(forks: list[int]) -> None:
    with capture("gfx942") as launches:
        torch.compile(lambda x: 3 * x.relu())(torch.empty(5, 17))
    assert launches
    assert forks


def test_outside_of_a_block_the_compiler_is_tritons_own() -> None:
    from triton.compiler import compiler
    from triton.runtime.jit import JITFunction

    before = triton.compile, compiler.make_backend
    with capture("gfx942"):
        assert triton.compile is not before[0]
    assert (triton.compile, compiler.make_backend) == before
    assert "compile" not in vars(JITFunction)


@pytest.mark.usefixtures("forks")
def test_a_crash_is_an_error_with_the_compilers_last_words() -> None:
    def crash() -> None:
        os.write(2, b"LLVM ERROR: Cannot select: intrinsic\n")
        os.abort()

    with pytest.raises(CompileError, match=r"crashed \(SIGABRT\): LLVM ERROR: Cannot select"):
        rehearse(crash)


@pytest.mark.usefixtures("forks")
@pytest.mark.parametrize("code", [0, 1])
def test_a_compiler_that_exits_is_an_error(code: int) -> None:
    with pytest.raises(Crashed, match="the compiler ended its process"):
        rehearse(lambda: os._exit(code))


@pytest.mark.usefixtures("forks")
def test_a_fork_the_system_ends_says_why_that_may_be() -> None:
    with pytest.raises(Crashed, match=r"crashed \(SIGKILL\): perhaps the system has no memory"):
        rehearse(lambda: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.usefixtures("forks")
def test_children_that_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert not rehearse(lambda: None).raised
        with pytest.raises(Crashed, match="ended its process"):
            rehearse(os.abort)
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("forks")
def test_what_was_printed_comes_back_and_exceptions_do_not() -> None:
    def complain() -> None:
        print("seen")
        os.write(2, b"kernel.py:3:4: error: no such layout\n")
        raise ValueError

    told = rehearse(complain)
    assert (told.raised, told.out) == (True, "seen\n")
    assert diagnostic(told.err) == "error: no such layout"
    assert not rehearse(lambda: None).raised


def test_an_interrupt_takes_the_fork_with_it(forks: list[int]) -> None:
    def interrupt() -> None:
        until(lambda: sleeps(os.getppid()))
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(60)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            rehearse(interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not runs(forks[0])


_WAITING = """
import os, sys, time
from pathlib import Path
from wavecast.runtimes.triton.isolation import rehearse
def wait():
    Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(60)
rehearse(wait)
"""


def test_a_fork_ends_with_the_process_that_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", _WAITING, str(started)], env={**os.environ, "PYTHONPATH": root}
    ) as own:
        until(lambda: started.exists() and started.read_text() != "")
        own.kill()
    until(lambda: not runs(int(started.read_text())))


@pytest.mark.usefixtures("_fresh")
def test_a_kernel_that_is_not_compiled_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVECAST_COMPILE_SECONDS", "0.001")
    x = torch.zeros(64)
    limit = r"(needs more than 0.001 s of processor time|did not finish in 0.01 s)"
    late = f"moved for gfx942: .* {limit}"
    with wavecast.device("gfx942"), pytest.raises(Crashed, match=late) as caught:
        moved[(1,)](x, x, GOOD, 64)
    assert "WAVECAST_COMPILE_SECONDS" in str(caught.value)


def test_a_compiler_that_allocates_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVECAST_COMPILE_GIB", "0.1")
    with pytest.raises(Crashed, match=r"it needs more than 0.1 GiB of memory"):
        rehearse(lambda: bytearray(1 << 30))
