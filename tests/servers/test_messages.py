"""What clients of the servers send: damaged messages get an answer or one line, and requests are
answered although the client has closed its end."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from typing import Any

import pytest

from wavecast.errors import InputError
from wavecast.servers import verbs

INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def request(number: int, method: str, **more: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **more}


def encoded(message: object) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def framed(message: object) -> bytes:
    body = encoded(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def exchange(monkeypatch: pytest.MonkeyPatch, sent: bytes, serve: Callable[[], None]) -> bytes:
    """What a server answers on standard output."""
    out = BytesIO()
    monkeypatch.setattr(out, "close", lambda: None, raising=False)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(sent)))
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(out))
    serve()
    return out.getvalue()


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Bytes that an editor sends -> the answers."""
    pytest.importorskip("pygls")
    from wavecast.servers import lsp

    monkeypatch.setattr(logging.getLogger("pygls"), "handlers", [])

    def talk(*parts: bytes) -> list[dict[str, Any]]:
        text = exchange(monkeypatch, b"".join(parts), lambda: lsp.serve("gfx942")).decode()
        bodies = re.findall(r"charset=utf-8\r\n\r\n(.*?)(?=Content-Length|$)", text, re.S)
        return [json.loads(body) for body in bodies]

    return talk


def test_messages_that_are_none(
    editor: Callable[..., list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = editor(
        framed(request(1, "initialize", params=INITIALIZE)),
        framed(request(2, "textDocument/hover", params={})),
        framed(request(3, "textDocument/codeLens")),
        framed(request(4, "textDocument/codeLens", params=[1])),
        framed(request(5, "no/method", params={})),
        framed({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {}}),
        framed([1, 2]),
        framed(3),
        framed(b"{{{"),
        framed(b"\xff\xfe"),
        framed(b"[" * 100_000),
        framed(request(6, "shutdown")),
    )
    codes = [(one.get("id"), one["error"]["code"]) for one in answers if "error" in one]
    expected = [(2, -32602), (3, -32602), (4, -32602), (5, -32601), (None, -32600), (None, -32600)]
    assert codes == expected
    assert {one["id"] for one in answers if "result" in one} == {1, 6}
    lines = capsys.readouterr().err.splitlines()
    assert 0 < len(lines) < 12
    assert all(line.startswith("wavecast lsp: ") for line in lines)


@pytest.mark.parametrize("length", [b"99999999999999", b"9" * 5000, b"67108865"])
def test_a_message_of_an_absurd_length(
    editor: Callable[..., list[dict[str, Any]]], length: bytes
) -> None:
    with pytest.raises(InputError, match="announces a message of") as refused:
        editor(b"Content-Length: " + length + b"\r\n\r\n{}")
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize("length", [b"-5", b"abc", b"1" + b" " * 100_000])
def test_lengths_that_are_none(editor: Callable[..., list[dict[str, Any]]], length: bytes) -> None:
    assert editor(b"Content-Length: " + length + b"\r\n\r\n{}") == []


def test_requests_are_answered_after_the_end_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp")
    from wavecast.servers import mcp

    monkeypatch.setattr(verbs, "text", lambda *_, **__: (0, "slow", ""))
    call = {"name": "arch", "arguments": {"names": "mi300x"}}
    messages = (
        request(1, "initialize", params=HELLO),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        b"{{{",
        b"[" * 100_000,
        request(2, "tools/call"),
        request(3, "tools/call", params={"name": "none", "arguments": {}}),
        request(4, "tools/call", params=call),
        request(4, "tools/call", params=call),
        request(5, "tools/call", params=call),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
    )
    sent = b"".join(encoded(message) + b"\n" for message in messages)
    answers = [json.loads(line) for line in exchange(monkeypatch, sent, mcp.serve).splitlines()]
    assert sorted(answer["id"] for answer in answers) == [1, 2, 3, 4, 4, 5]
    assert next(one for one in answers if one["id"] == 2)["error"]["code"] == -32602
