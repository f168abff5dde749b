"""Profiles of engines: every row has a status, and reports say why a profile is of its version."""

from __future__ import annotations

import tomllib
from importlib import resources

import wavecast
from wavecast.report.kit.terminal import plain
from wavecast.systems.engine import engines

STATUSES = {"source", "recalled", "measured", "fitted", "assumed"}


def test_every_row_has_a_status_and_a_source() -> None:
    text = (resources.files("wavecast.systems") / "engines.toml").read_text(encoding="utf-8")
    for name, table in tomllib.loads(text).items():
        rows = {key: row for key, row in table.items() if key != "on"}
        for generation in table.get("on", {}).values():
            rows |= generation
        for key, row in rows.items():
            assert row["status"] in STATUSES, f"{name}.{key}"
            assert row["source"], f"{name}.{key}"


def test_the_full_report_says_why_the_profile_is_of_its_version() -> None:
    report = wavecast.model("Qwen3-8B", system="1xMI300X", engine="vllm")
    profile = engines()["vllm"]
    line = f"profile of vllm {profile.version}: assumed: the release whose defaults the profile has"
    assert line in plain(lambda console: report.render(console, detail="full"), 200)
    assert line not in str(report)
