"""`wavecast run` with code: arguments as text and TOML, what is printed, and exit codes."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.cli.test_main import call
from wavecast.compile import toolchain
from wavecast.errors import MissingTool

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "tests/compile/data/saxpy.gfx942.s"
EXAMPLES = ROOT / "examples/hip"


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`a * x + y` with its arguments' names, as a kernel's metadata may keep them."""
    text = SAXPY.read_text()
    for name, offset in (("a", 0), ("x", 8), ("y", 16), ("n", 24)):
        place = f".offset:         {offset}\n"
        assert place in text
        text = text.replace(place, f"{place}        .name:           {name}\n", 1)
    path = tmp_path_factory.mktemp("code") / "saxpy.s"
    path.write_text(text)
    return path


LAUNCH = ("--grid", "2", "--block", "256", "--arg", "a=2.0", "--arg", "x=f32[500]:arange")
REST = ("--arg", "y=f32[500]:ones", "--arg", "n=500")


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    return call(capsys, "run", *map(str, arguments))


def test_what_a_launch_did_is_shown(
    capsys, monkeypatch: pytest.MonkeyPatch, saxpy: Path, tmp_path: Path
) -> None:
    target = tmp_path / "y.npy"
    monkeypatch.delenv("COLUMNS", raising=False)
    code, out, err = run(capsys, saxpy, *LAUNCH, *REST, "--save", f"y={target}")
    assert (code, err) == (0, "")
    first, x, y, written = out.splitlines()
    assert first.startswith("saxpy on gfx942, grid 2, block 256: ")
    assert x == "  x  float32[500]  unchanged"
    assert y == "  y  float32[500]  499 of 500 changed: 1, 3, 5, 7, …; 1 to 999, mean 500"
    assert written.strip() == f"written to {target}"
    assert (np.load(target) == 2 * np.arange(500) + 1).all()
    monkeypatch.setenv("COLUMNS", "50")
    _, out, _ = run(capsys, saxpy, *LAUNCH, *REST)
    lines = out.splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[-2:] == [
        "  y  float32[500]  499 of 500 changed: 1, 3, 5, 7,",
        "     …; 1 to 999, mean 500",
    ]


def test_expectations_decide_the_exit_code(capsys, saxpy: Path, tmp_path: Path) -> None:
    wanted = 2 * np.arange(500, dtype=np.float32) + 1
    np.save(tmp_path / "good.npy", wanted)
    wanted[7] += 0.25
    np.save(tmp_path / "bad.npy", wanted)
    code, out, _ = run(capsys, saxpy, *LAUNCH, *REST, "--expect", f"y={tmp_path}/good.npy")
    assert code == 0
    assert "as expected: largest difference 0 (rtol 1e-05, atol 1e-06)" in out
    bad = ("--expect", f"y={tmp_path}/bad.npy")
    code, out, _ = run(capsys, saxpy, *LAUNCH, *REST, *bad)
    assert code == 1
    assert "not as expected: 1 of 500 elements differ, by up to 0.25" in out
    assert "first [7]: 15, expected 15.25" in out
    code, _, _ = run(capsys, saxpy, *LAUNCH, *REST, *bad, "--rtol", "0", "--atol", "0.25")
    assert code == 0


def test_a_file_of_arguments_and_options_before_it(capsys, saxpy: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full(64, 3, np.float32))
    (tmp_path / "launch.toml").write_text("""
        kernel = "saxpy"
        grid = 1
        block = [64, 1]
        [args]
        a = 2.0
        x = "x.npy"
        n = 64
        [args.y]
        value = "f32[64]:arange"
        expect = "f32[64]:arange"
        save = "out.npy"
        rtol = 0
        """)
    plan = ("--args", tmp_path / "launch.toml")
    code, out, _ = run(capsys, saxpy, *plan)
    assert (code, "64 of 64 elements differ, by up to 6" in out) == (1, True)
    assert (np.load(tmp_path / "out.npy") == np.arange(64) + 6).all()
    code, out, _ = run(capsys, saxpy, *plan, "--arg", "a=0.0", "--block", "256")
    assert code == 0
    assert "block 256:" in out


def test_arguments_by_number_and_by_place(capsys, saxpy: Path) -> None:
    numbered = ("1=2.0", "2=f32[500]:arange", "y=f32[500]:ones", "4=500")
    placed = ("@0=f32:2", "@8=f32[500]:arange", "@16=f32[500]:ones", "@24=i32:500", "@0x20=i32:2",
              "@44=u16:256")  # fmt: skip
    bare = saxpy.with_name("bare.s")
    bare.write_text(saxpy.read_text().partition("\t.amdgpu_metadata")[0])
    for path, given in ((saxpy, numbered), (bare, placed)):
        options = [word for text in given for word in ("--arg", text)]
        code, out, err = run(capsys, path, "--grid", 2, "--block", 256, *options)
        assert (code, err) == (0, "")
        assert "499 of 500 changed: 1, 3, 5, 7" in out
    for argument, says in (("@x=i32:1", "@x is not an offset"), ("@0=1", "the size of @0 is not")):
        code, _, err = run(capsys, bare, "--grid", 2, "--block", 256, "--arg", argument)
        assert code == 2
        assert says in err
    offsets = [word.replace("=f32:2", "=2.0") for word in placed[:4]]
    options = [word for text in offsets for word in ("--arg", text)]
    code, out, err = run(capsys, saxpy, "--grid", 2, "--block", 256, *options)
    assert (code, err) == (0, "")
    assert "499 of 500 changed: 1, 3, 5, 7" in out


@pytest.mark.hip
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples(capsys, path: Path, arch: str) -> None:
    if "mfma" in path.stem and not arch.startswith("gfx9"):
        pytest.skip("the instruction is of CDNA")
    try:
        toolchain.find()
    except MissingTool as error:
        pytest.skip(str(error))
    code, out, err = run(capsys, path.with_suffix(".hip"), "--args", path, "--arch", arch)
    assert (code, err) == (0, "")
    assert "\n" in out.partition("as expected: ")[2]


@pytest.mark.hip
def test_commands_of_the_documentation(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        toolchain.find()
    except MissingTool as error:
        pytest.skip(str(error))
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/run.md").read_text().replace("\\\n", " ")
    commands = [line for line in text.splitlines() if line.startswith("wavecast run examples/hip")]
    assert len(commands) == 2
    for command in commands:
        code, out, err = call(capsys, *shlex.split(command)[1:])
        assert (code, err) == (0, "")
        assert "as expected" in out


BAD = {
    "no file": (("nowhere.hip",), "no such file: nowhere.hip"),
    "no grid": (("SAXPY", "--arg", "n=1"), "saxpy needs a grid and a block"),
    "empty grid": (("SAXPY", "--grid", "0"), "positive"),
    "other target": (("SAXPY", "--arch", "gfx1100"), "for gfx942, not for gfx1100"),
    "no kernel": (("SAXPY", "--kernel", "saxby"), "no kernel is called 'saxby'"),
    "regex": (("SAXPY", "-k", "saxpy"), "--kernel NAME chooses one"),
    "GPUs": (("SAXPY", "--gpus", "2", *LAUNCH), "--gpus does not apply to"),
    "predict": (("SAXPY", "--predict", *LAUNCH), "--predict does not apply to"),
    "tolerance": (("SAXPY", *LAUNCH, *REST, "--rtol", "3"), "--rtol belongs to --expect"),
    "script arguments": (("SAXPY", "--", "4"), "is not a script; 4 needs one"),
    "not named": (("SAXPY", "--arg", "4096"), "'4096' is not NAME=VALUE"),
    "missing": (("SAXPY", *LAUNCH), "saxpy: no value for y, n"),
    "wrong and missing": (("SAXPY", *LAUNCH, "--arg", "n=abc"), "'abc' is not a value"),
    "unknown": (("SAXPY", *LAUNCH, *REST, "--arg", "m=1"), "unknown argument of saxpy: 'm'"),
    "twice": (("SAXPY", *LAUNCH, *REST, "--arg", "4=1"), "argument n is given twice"),
    "a place": (("SAXPY", *LAUNCH[:4], "--arg", "@4=i32:1"), "no argument at @4 (it has @0 a"),
    "no size": (("SAXPY", *LAUNCH[:4], "--arg", "@0=1"), "no value for x, y, n"),
    "a scalar": (("SAXPY", *LAUNCH, *REST, "--arg", "x=1.5"), "takes a pointer, not 1.5"),
    "a word": (("SAXPY", *LAUNCH, *REST, "--arg", "n=many"), "'many' is not a value"),
    "no array": (("SAXPY", *LAUNCH, *REST, "--expect", "n=1"), "n is not an array"),
    "shape": (("SAXPY", *LAUNCH, *REST, "--expect", "y=f32[4]"), "(500,), what is expected in it"),
    "nothing": (("SAXPY", *LAUNCH, *REST, "--expect", "z=1"), "unknown argument 'z'"),
    "no npy": (("SAXPY", *LAUNCH, *REST, "--arg", "x=no.npy"), "no such file: no.npy"),
    "options": (("SAXPY", "-X", "-DN=1", *LAUNCH, *REST), "options are for HIP and CUDA source"),
    "no TOML": (("SAXPY", "--args", "no.toml"), "no such file: no.toml"),
}


@pytest.mark.parametrize(("arguments", "says"), BAD.values(), ids=BAD)
def test_bad_use_is_one_line_and_exit_code_2(
    capsys, saxpy: Path, tmp_path: Path, monkeypatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [saxpy if word == "SAXPY" else word for word in arguments]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.startswith("wavecast: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--arg", "y=f32[4]"), "touches y[4], outside y (4 elements)"),
        (("--max-instructions", "3"), "longer than"),
    ],
    ids=["wild", "endless"],
)
def test_a_kernel_that_breaks_off_is_one_line_and_exit_code_1(
    capsys, saxpy: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = run(capsys, saxpy, *LAUNCH, *REST, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert says in err
    assert err.startswith("wavecast: saxpy: ")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("grid = ", "launch.toml"),
        ("gird = 1", "unknown key in"),
        ("grid = 0", "grid is not one to three positive integers"),
        ("grid = [1, 2, 3, 4]", "grid is not one to three positive integers"),
        ("grid = 'many'", "grid cannot be 'many'"),
        ("lds = true", "lds cannot be True"),
        ("[args]\nx = [1, 2]", "args.x"),
        ("[args]\nx = {expect = 1}", "args.x has no value"),
        ("[args]\nx = {value = 1, rtol = -1}", "rtol is negative"),
        ("[args]\nx = {value = 1, tolerance = 1}", "args.x.rtol"),
    ],
)
def test_bad_files_of_arguments(
    capsys, saxpy: Path, tmp_path: Path, content: str, says: str
) -> None:
    path = tmp_path / "launch.toml"
    path.write_text(content)
    code, out, err = run(capsys, saxpy, "--args", path)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_script_makes_its_own_launches(capsys, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('ran')\n")
    code, _, err = run(capsys, script, "--grid", 4)
    assert (code, "makes its own launches" in err) == (2, True)
