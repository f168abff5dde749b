"""HIP programs of several processes that open each other's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import wavecast
from wavecast.compile.toolchain import find
from wavecast.emulate.errors import Unsupported
from wavecast.errors import MissingTool
from wavecast.pipeline.execute import hip_programs

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).parent / "processes.hip"
SMALL = ("-fno-exceptions", "-include", str(SOURCE.with_name("small.h")))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    path = tmp_path_factory.mktemp("processes") / "processes"
    hip_programs.build(SOURCE, "gfx942", path, SMALL)
    return path


def test_kernels_of_processes_wait_for_each_other(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = wavecast.run(program, "exchange", gpus=4, threads=1)
    out, err = capfd.readouterr()
    assert (done.code, out, err) == (0, "exchanged\n", "")


def test_a_process_that_never_writes_is_a_deadlock(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = wavecast.run(program, "absent", gpus=2, threads=1)
    assert done.code == 1
    err = capfd.readouterr().err
    assert err.startswith("wavecast: consume: deadlock: all that runs waits: ")
    assert "processes.hip:31" in err


def test_a_fork_after_the_first_call_is_refused(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = wavecast.run(program, "fork_late", threads=1)
    assert done.code == 0
    out, err = capfd.readouterr()
    assert out == "a child ended with 512\n"
    assert "a fork of a process that has used HIP cannot use it" in err


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("predict", "--predict and --trace follow one; the program was stopped"),
        ("check", "--check follows one: what orders their accesses .* is not seen"),
    ],
)
def test_one_process_at_a_time_is_checked(program: Path, option: str, why: str) -> None:
    message = f"several of its processes use HIP at once, and {why}"
    with pytest.raises(Unsupported, match=message) as error:
        wavecast.run(program, "exchange", gpus=4, threads=1, **{option: True})
    assert error.value.exit_code == 2
