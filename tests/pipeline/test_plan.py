"""Plans of launches: TOML files, options that override them, and their mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.api.launch import LaunchOptions
from wavecast.errors import InputError, UnknownName, UsageError
from wavecast.pipeline.plan import ATOL, RTOL, Plan, Planned, named_value, read_plan

WHOLE = """
kernel = "saxpy"
grid = [4, 2]
block = 256
lds = 1024

[args]
n = 500
flag = true
[args.y]
value = "f32[500]:ones"
expect = "a * x + y"
rtol = 1e-3
save = "out/y.npy"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, WHOLE))
    assert (plan.kernel, plan.grid, plan.block, plan.dynamic_lds) == (
        "saxpy",
        (4, 2, 1),
        (256, 1, 1),
        1024,
    )
    assert plan.arguments["n"] == Planned("500", folder=tmp_path)
    assert plan.arguments["flag"].value == "true"
    saved = tmp_path / "out" / "y.npy"
    expected = Planned("f32[500]:ones", "a * x + y", 1e-3, ATOL, saved, tmp_path)
    assert plan.arguments["y"] == expected


def test_zero_bytes_of_lds_override_those_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    assert LaunchOptions(plan_file=path).plan().dynamic_lds == 1024
    assert LaunchOptions(plan_file=path, lds=0).plan().dynamic_lds == 0


def test_an_empty_file_states_nothing(tmp_path: Path) -> None:
    assert read_plan(written(tmp_path, "")) == Plan()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid = [1, 2, 3, 4]", "grid is not one to three positive integers"),
        ("grid = []", "grid is not one to three positive integers"),
        ("grid = [0]", "grid is not one to three positive integers"),
        ("block = 2147483648", "block is not one to three positive integers"),
        ("block = 1.5", "block cannot be 1.5"),
        ("lds = true", "lds cannot be True"),
        ("kernel = 3", "kernel cannot be 3"),
        ("[args.y]\nexpect = 1", "args.y has no value"),
        ("[args.y]\nvalue = 1\natol = -1", "args.y.atol is negative"),
        ("[args.y]\nvalue = 1\nrtol = nan", "args.y.rtol is negative"),
        ("[args.y]\nvalue = [1]", r"args.y.value cannot be \[1\]"),
        ("kernel = ", "plan.toml: "),
    ],
)
def test_mistakes_name_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_plan(path)
    assert "plan.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "right"), [("gird = 1", "grid"), ("[args.y]\nvalue = 1\nexpekt = 1", "args.y.expect")]
)
def test_an_unknown_key_suggests_the_right_one(tmp_path: Path, text: str, right: str) -> None:
    with pytest.raises(UnknownName, match=right):
        read_plan(written(tmp_path, text))


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "none.toml")


def test_options_override_the_file() -> None:
    file = Plan("a", (1, 1, 1), None, 64, {"n": Planned("1"), "x": Planned("2")})
    options = Plan("", (5, 1, 1), (64, 1, 1), None, {"n": Planned("7")})
    arguments = {"n": Planned("7"), "x": Planned("2")}
    assert options.over(file) == Plan("a", (5, 1, 1), (64, 1, 1), 64, arguments)


def test_expectations_and_files_belong_to_arguments_of_the_plan(tmp_path: Path) -> None:
    plan = Plan(arguments={"y": Planned("f32[4]")})
    found = plan.with_expected("y", "x", 0.5, 0.25).with_saved("y", tmp_path)
    assert found.arguments["y"] == Planned("f32[4]", "x", 0.5, 0.25, tmp_path)
    assert plan.arguments["y"].rtol == RTOL
    with pytest.raises(UnknownName, match="argument"):
        plan.with_expected("z", "x", 0, 0)
    with pytest.raises(UnknownName, match="argument"):
        plan.with_saved("z", tmp_path)


def test_values_of_the_command_line() -> None:
    assert [part.strip() for part in named_value("y = f32[4]:k=1")] == ["y", "f32[4]:k=1"]
    for text in ("y", "=3", " =3"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            named_value(text)
