"""The GitHub action and the GitLab component: their scripts are executed, with stand-ins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GATE = """
import pathlib, sys
named = {name: value for name, value in zip(sys.argv, sys.argv[1:]) if name.startswith("--")}
pathlib.Path("arguments").write_text(" ".join(sys.argv[1:]))
if "broken" in sys.argv:
    sys.exit(2)
pathlib.Path(named["--summary"]).write_text("### verdict\\n")
sys.exit(int("worse" in sys.argv))
"""
"""Stands for `python -m wavecast gate`."""
HUB = """
import json, os, pathlib, sys
store = pathlib.Path(os.environ["STORE"])
comments = json.loads(store.read_text())
fields = [one.removeprefix("body=@") for one in sys.argv if one.startswith("body=@")]
if "--jq" in sys.argv:
    print(*(one["id"] for one in comments if one["body"].startswith(os.environ["MARK"])), sep="\\n")
elif "PATCH" in sys.argv:
    number = int(next(one for one in sys.argv if one.startswith("repos/")).rsplit("/", 1)[1])
    for one in comments:
        if one["id"] == number:
            one["body"] = pathlib.Path(fields[0]).read_text()
else:
    comments.append({"id": len(comments) + 1, "body": pathlib.Path(fields[0]).read_text()})
store.write_text(json.dumps(comments))
"""
"""Stands for `gh api`, with comments in a file."""


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


def action_steps() -> list[dict[str, Any]]:
    found = yaml.safe_load((ROOT / "action.yml").read_text())
    return [one for one in found["runs"]["steps"] if "run" in one]


def run_step(script: str, folder: Path, **environment: str) -> int:
    """As GitHub runs it: `bash -e -o pipefail`, with stand-ins first in PATH."""
    tools = folder / "tools"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": f"{tools}:{os.environ['PATH']}", **environment},
        check=False,
    ).returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    program(tmp_path / "tools", "python", GATE)
    program(tmp_path / "tools", "gh", HUB)
    (tmp_path / "comments").write_text(json.dumps([{"id": 1, "body": "somebody's"}]))
    return tmp_path


@pytest.mark.parametrize(("words", "code"), [("", 0), ("worse", 1), ("broken", 2)])
def test_the_gate_decides_the_step(folder: Path, words: str, code: int) -> None:
    """Its exit code is that of the step, and the verdict is in the summary of the build."""
    script = next(one["run"] for one in action_steps() if "SUBJECTS" in one.get("env", {}))
    summary = folder / "summary"
    summary.touch()
    found = run_step(
        script,
        folder,
        SUBJECTS=f"a* {words}",
        ARGUMENTS="--strict",
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert found == code
    assert (folder / "arguments").read_text().startswith("-m wavecast gate a*")
    assert summary.read_text() == ("" if code == 2 else "### verdict\n")


def test_a_pull_request_has_one_comment(folder: Path) -> None:
    """Later pushes change it, and comments of others stay."""
    step = action_steps()[-1]
    known = {
        "STORE": str(folder / "comments"),
        "REPOSITORY": "o/r",
        "NUMBER": "7",
        "MARK": "<!-- w -->",
    }
    assert run_step(step["run"], folder, **known) == 0
    assert len(json.loads((folder / "comments").read_text())) == 1
    for text in ("first\n", "second\n"):
        (folder / "wavecast-gate.md").write_text(text)
        assert run_step(step["run"], folder, **known) == 0
        bodies = [one["body"] for one in json.loads((folder / "comments").read_text())]
        assert bodies == ["somebody's", f"<!-- w -->\n{text}"]


def test_a_token_that_may_not_write_fails_nothing(folder: Path) -> None:
    program(folder / "tools", "gh", "raise SystemExit(1)")
    (folder / "wavecast-gate.md").write_text("text\n")
    known = {"REPOSITORY": "o/r", "NUMBER": "7", "MARK": "<!-- w -->"}
    assert run_step(action_steps()[-1]["run"], folder, **known) == 0


class Notes(BaseHTTPRequestHandler):
    """Notes of a merge request, as GitLab keeps them."""

    notes: ClassVar[list[dict[str, Any]]] = []

    def answer(self) -> None:
        assert self.headers["PRIVATE-TOKEN"] == "token"
        length = int(self.headers.get("Content-Length") or 0)
        text = json.loads(self.rfile.read(length))["body"] if length else ""
        query = parse_qs(urlsplit(self.path).query)
        page, size = (int(query.get(name, ["0"])[0]) for name in ("page", "per_page"))
        found: Any = self.notes[(page - 1) * size : page * size]
        if self.command == "POST":
            self.notes.append(found := {"id": len(self.notes) + 1, "body": text})
        elif self.command == "PUT":
            found = self.notes[int(self.path.rsplit("/", 1)[1]) - 1]
            found["body"] = text
        data = json.dumps(found).encode()
        self.send_response(200)
        following = str(page + 1) if page * size < len(self.notes) else ""
        self.send_header("X-Next-Page", following)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def gitlab() -> Iterator[str]:
    Notes.notes = [{"id": number, "body": "somebody's"} for number in range(1, 251)]
    with ThreadingHTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_merge_request_has_one_comment(tmp_path: Path, gitlab: str) -> None:
    _, job = yaml.safe_load_all((ROOT / "templates" / "gate.yml").read_text())
    (script,) = job["wavecast-gate"]["after_script"]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "python").symlink_to(sys.executable)
    known = {"CI_API_V4_URL": gitlab, "CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "2"}
    for text in ("first\n", "second\n"):
        (tmp_path / "wavecast-gate.md").write_text(text)
        assert run_step(script, tmp_path, **known) == 0  # no token: nothing is written
        assert run_step(script, tmp_path, WAVECAST_GITLAB_TOKEN="token", **known) == 0
        bodies = [one["body"] for one in Notes.notes]
        assert bodies == ["somebody's"] * 250 + [f"<!-- wavecast gate -->\n{text}"]
