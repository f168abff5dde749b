"""The workbench: the session, its permalink, the server's security, and the page in a browser."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.report.browser import CHROMIUM, Page
from wavecast.errors import InputError, UsageError
from wavecast.servers.workbench import session as sessions

pytestmark = pytest.mark.torch
HOSTILE = "</script><img src=x onerror=\"document.title='run'\">"
SCRIPT = f"""\
import torch
import triton
import triton.language as tl

# {HOSTILE}
SIZE = 1 << 16
BLOCK = 1024


@triton.jit
def strided_copy(out, x, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs * 64, mask=offs < n), mask=offs < n)


x = torch.zeros(1 << 22, device="cuda")
strided_copy[(64,)](torch.empty(SIZE, device="cuda"), x, SIZE, BLOCK=BLOCK, num_warps=4)
"""


# --- the session --------------------------------------------------------------------------------


def session(folder: Path, text: str = SCRIPT, name: str = "copy.py") -> sessions.WorkbenchSession:
    path = folder / name
    path.write_text(text)
    (folder / "copies").mkdir()
    return sessions.of_file(path, "gfx942", ("--fast",), folder / "copies")


def test_edits_are_written_to_the_copy(tmp_path: Path) -> None:
    changed = session(tmp_path).with_changes({"text": "x = 1\n", "arch": "gfx1201"})
    assert changed.write().read_text() == "x = 1\n"
    assert changed.write().parent == tmp_path / "copies"
    assert (tmp_path / "copy.py").read_text() == SCRIPT
    assert changed.question()["imports"] == str(tmp_path)


def test_a_permalink_opens_elsewhere(tmp_path: Path) -> None:
    saved = session(tmp_path).permalink()
    found = sessions.open_session(json.dumps(saved), "", tmp_path)
    assert found.permalink() == saved
    assert sessions.open_session(json.dumps(saved), "sm_90", tmp_path).arch == "sm_90"


@pytest.mark.parametrize(
    "name", ["../copy.py", "/etc/copy.py", "..", ".hidden.py", "a\0.py", "run.sh", "a/b.py", ""]
)
def test_a_permalink_names_no_other_folder(tmp_path: Path, name: str) -> None:
    saved = {**session(tmp_path).permalink(), "name": name}
    with pytest.raises(InputError, match="not the name of a source file"):
        sessions.open_session(json.dumps(saved), "", tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, '{"schema": "wavecast.explain/1"}']
)
def test_other_files_are_no_permalinks(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="not a permalink"):
        sessions.open_session(text, "", tmp_path)


@pytest.mark.parametrize(
    "change", [{"text": 3}, {"arch": ""}, {"arguments": "x"}, {"arguments": [1]}]
)
def test_changes_of_other_types_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        session(tmp_path).with_changes(change)


# --- the server ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running workbench on SCRIPT."""
    pytest.importorskip("starlette")
    folder = tmp_path_factory.mktemp("workbench")
    (folder / "copy.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "wavecast", "serve", str(folder / "copy.py"), "-a", "gfx942"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0


def ask(
    address: str, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    text = json.dumps(body) if body is not None else None
    with closing(connection):
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        data = answer.read()
    kind = answer.headers["content-type"]
    found = json.loads(data) if kind == "application/json" else {"text": data.decode()}
    return answer.status, found, answer.headers


def token(address: str) -> str:
    return "Bearer " + urlsplit(address).query.removeprefix("token=")


def test_requests_need_the_token(address: str) -> None:
    for path in ("/", "/api/session", "/api/changes"):
        assert ask(address, "GET", path)[0] == 403
        assert ask(address, "GET", path, Authorization="Bearer x")[0] == 403
        assert ask(address, "GET", path, Authorization="Bearer \xff")[0] == 403
    for path in ("/api/explain", "/api/open", "/api/ask"):
        assert ask(address, "POST", path, {})[0] == 403
    query = f"?{urlsplit(address).query}"
    assert ask(address, "GET", f"/{query}")[0] == 200
    assert ask(address, "GET", f"/api/session{query}")[0] == 403
    assert ask(address, "GET", "/api/session", Authorization=token(address))[0] == 200


def test_other_hosts_and_origins_are_refused(address: str) -> None:
    """A page elsewhere whose name resolves to this machine, and a page that sends requests here."""
    known = {"Authorization": token(address)}
    assert ask(address, "GET", "/api/session", Host="example.org", **known)[0] == 421
    for origin in ("http://example.org", "null", "http://127.0.0.1:1", "https://localhost"):
        assert ask(address, "GET", "/api/session", Origin=origin, **known)[0] == 403
    own = f"http://{urlsplit(address).netloc}"
    assert ask(address, "GET", "/api/session", Origin=own, **known)[0] == 200


def test_files_of_the_machine_are_not_served(address: str) -> None:
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/copy.py"):
        assert ask(address, "GET", path, Authorization=token(address))[0] == 404


def test_requests_that_make_no_sense_get_one_line(address: str) -> None:
    known = {"Authorization": token(address)}
    status, found, _ = ask(address, "POST", "/api/ask", {"question": "explain"}, **known)
    assert (status, "questions are" in found["error"]) == (400, True)
    assert ask(address, "POST", "/api/explain", ["text"], **known)[0] == 400
    status, found, _ = ask(address, "POST", "/api/explain", {"arch": "gfx000"}, **known)
    assert status == 422
    assert "gfx000" in found["error"]
    status, found, _ = ask(
        address, "POST", "/api/explain", {"arch": "gfx942", "text": "1/0"}, **known
    )
    assert status == 422
    assert "division by zero" in found["error"]
    assert ask(address, "POST", "/api/explain", {"text": "#" * 3_000_000}, **known)[0] in (413, 422)
    assert ask(address, "GET", "/api/explain", **known)[0] == 405


def test_the_page_allows_only_its_own_script(address: str) -> None:
    _, found, headers = ask(address, "GET", f"/?{urlsplit(address).query}")
    page = found["text"]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe-inline" not in policy[1].partition("script-src")[2]
    assert headers["x-frame-options"] == "DENY"
    assert token(address).removeprefix("Bearer ") not in page


def test_a_version_is_explained_and_asked_about(address: str) -> None:
    known = {"Authorization": token(address)}
    text = SCRIPT.replace("BLOCK = 1024", "BLOCK = 512")
    request = {"text": text, "arch": "gfx942,gfx1201"}
    status, found, _ = ask(address, "POST", "/api/explain", request, **known)
    assert status == 200
    answer = found["answer"]
    (launch,) = answer["launches"]
    assert [one["device"] for one in launch["targets"]] == ["mi300x", "rx9070xt"]
    found = answer["document"]["kernels"][0]["findings"]
    assert {one["rule"]: one["gain"] for one in found}["uncoalesced-global"] is None
    question = {"question": "advice", "launch": 0}
    advised = ask(address, "POST", "/api/ask", question, **known)[1]["answer"]
    for one in advised["kernels"]:
        assert one["findings"][0]["rule"] == "uncoalesced-global"
        assert one["findings"][0]["gain"] > 0.1
    stages = {one["title"]: one for one in launch["targets"][0]["stages"]}
    assert set(stages) == {"LLVM IR", "TTGIR", "TTIR"}
    lines = {index: line for _, index, line in _own_lines(launch)}
    for stage in stages.values():
        named = {lines[place] for place in stage["lines"] if place is not None}
        assert 13 in named  # the load and the store
    times = [one["prediction"]["seconds"] for one in answer["document"]["kernels"]]
    question = {"question": "what-if", "launch": 0, "factors": {"memory": 1.0}}
    assert ask(address, "POST", "/api/ask", question, **known)[1]["answer"] == times
    slower = {**question, "factors": {"memory": 0.25, "L2": 0.25, "latency": 4.0}}
    for now, then in zip(
        times, ask(address, "POST", "/api/ask", slower, **known)[1]["answer"], strict=True
    ):
        assert then > 1.2 * now
    refused = {**question, "factors": {"gravity": 2.0}}
    assert ask(address, "POST", "/api/ask", refused, **known)[0] == 422
    question = {"question": "accesses", "launch": 0, "target": 0}
    (load, *_) = ask(address, "POST", "/api/ask", question, **known)[1]["answer"]
    assert load["line"] == 13
    question = {"question": "timeline", "launch": 0, "target": 0}
    drawn = ask(address, "POST", "/api/ask", question, **known)[1]["answer"]
    starts = [start for _, start, _, _ in drawn["events"]]
    assert starts[0] == min(starts)
    assert max(row for row, *_ in drawn["events"]) == len(drawn["rows"]) - 1


def _own_lines(launch: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [
        (file["name"], index, line)
        for file in launch["files"]
        if file["own"]
        for index, line, _ in file["lines"]
    ]


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_the_page_explains_links_and_edits(address: str) -> None:
    saved = {"schema": sessions.SCHEMA, "name": "copy.py", "text": SCRIPT, "arch": "gfx942"}
    assert ask(address, "POST", "/api/open", saved, Authorization=token(address))[0] == 200
    with Page(width=1200) as page:
        page.call("Page.navigate", url=address)
        _settled(page)
        assert page.run("source.value.includes('onerror')")
        assert page.run("document.title").endswith("wavecast workbench")
        assert page.run("document.querySelectorAll('#targets tbody tr').length") == 1
        for _ in range(600):
            if page.run("priced"):
                break
            page.wait(50)
        page.run("view = 'Findings'; tabs()")
        assert "saves" in page.run("panel.innerText")
        assert "predicted …" not in page.run("panel.innerText")
        page.run("view = 'Assembly'; tabs()")
        page.run("light(13, 'test')")
        lit = page.run("[...panel.querySelectorAll('.lit code')].map(row => row.textContent)")
        assert any("load" in text for text in lit)
        assert any("store" in text for text in lit)
        first = page.run("result.document.kernels[0].prediction.seconds")
        page.run(
            "[...document.querySelectorAll('#constants span')].find(one => "
            "one.textContent.startsWith('BLOCK')).querySelectorAll('button')[1].click()"
        )
        _settled(page)
        assert page.run("source.value.includes('BLOCK = 2048')")
        assert page.run("result.document.kernels[0].prediction.seconds") != first
        assert "%" in page.run("document.querySelector('#targets tbody').innerText")
        for name in ("Findings", "Memory", "Timeline", "Roofline", "What if"):
            page.run(f"view = {name!r}; tabs()")
            for _ in range(1200):
                if page.run("!panel.innerText.includes('being simulated')"):
                    break
                page.wait(50)
            assert page.run("panel.childElementCount") > 0
        page.show(width=400)
        assert page.run("document.documentElement.scrollWidth") == 400
        assert (
            page.run(
                "Math.max(..."
                "[...document.querySelectorAll('#tabs button, .choice select, #targets td')]"
                ".map(one => one.getBoundingClientRect().right))"
            )
            <= 400
        )
        page.show(width=1200)
        page.run("edit('import torch\\n1/0\\n'); explain()")
        _settled(page)
        failure = "document.querySelector('#failure').textContent"
        assert "division by zero" in page.run(failure)
        dimmed = "getComputedStyle(document.querySelector('#targets')).opacity"
        assert float(page.run(dimmed)) < 1
        assert "last version" in page.run("document.querySelector('#compared').textContent")
        marked = "[...document.querySelectorAll('.gutter .wrong u')].map(row => row.textContent)"
        assert page.run(marked) == ["2"]
        page.run(f"edit({json.dumps(SCRIPT.replace('offs < n)', 'offs < m)'))}); explain()")
        _settled(page)
        assert page.run(failure).startswith("gfx942: strided_copy: NameError")
        assert page.run(failure).endswith("(copy.py:13)")
        assert page.run(marked) == ["13"]
        page.run(f"edit({json.dumps(SCRIPT)}); explain()")
        _settled(page)
        assert float(page.run(dimmed)) == 1
        assert page.run(marked) == []
        assert "last" not in page.run("document.querySelector('#compared').textContent")
        assert page.run("document.title") != "run"
        assert [one for one in page.problems if "422" not in one] == []
        assert all(one.startswith(("http://127.0.0.1", "data:")) for one in page.requests)


def _settled(page: Page) -> None:
    for _ in range(1200):
        ready = "document.readyState === 'complete' && session && !$('#status.busy')"
        if page.run(f"Boolean({ready})"):
            return
        page.wait(50)
    raise AssertionError("the page did not settle within a minute")
