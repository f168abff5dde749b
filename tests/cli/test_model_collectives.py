"""`wavecast model --collectives`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from wavecast.cli.model import command
from wavecast.errors import WavecastError


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    return done.output


def test_text_json_and_xml(tmp_path: Path):
    asked = ("--collectives", "all_reduce:64M", "--system", "2x8xMI300X")
    text = run(*asked, "--what-if", "network*2", "--msccl", str(tmp_path / "best.xml"))
    assert "all_reduce of 67,108,864 bytes" in text
    assert "network*2: " in text
    found = json.loads(run(*asked, "--format", "json"))["collectives"][0]
    times = [one["seconds"] for one in found["schedules"]]
    assert times == sorted(times)
    assert len(times) > 5
    assert (found["gpus"], found["nodes"], found["bytes"]) == (16, 2, 1 << 26)
    root = ElementTree.parse(tmp_path / "best.xml").getroot()
    assert root.attrib["coll"] == "allreduce"
    assert len(root) == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--collectives", "all_reduce"), "is not a collective: NAME:SIZE"),
        (("--collectives", "all_reduce:64M:0"), "is not a collective: NAME:SIZE"),
        (("--collectives", "dispatch:14M:"), "is not a collective: NAME:SIZE"),
        (("--collectives", ""), "--collectives is empty"),
        (("--collectives", "dispatch:14M:999"), "999 experts of a token; at most 256"),
        (("--collectives", "all_sum:4K"), "unknown collective 'all_sum'"),
        (("--collectives", "all_reduce:4K", "--tp", "2"), "--tp does not apply to --collectives"),
        (("--leaf", "2"), "--leaf belongs to --collectives"),
        (("--collectives", "all_reduce:4K", "--what-if", "hbm*2"), "'hbm\\*2' is not a change"),
        (("--collectives", "all_reduce:4K", "--system", "mi300x"), "two GPUs or more"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str):
    with pytest.raises(WavecastError, match=message):
        run(*arguments)
