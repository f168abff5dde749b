"""Both servers on a real script, through clients of their protocols."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.warm_python import finished
from wavecast.errors import UsageError
from wavecast.servers import tools, verbs

SCRIPT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def strided_copy(out, x, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs * 64, mask=offs < n), mask=offs < n)


x = torch.zeros(1 << 22, device="cuda")
strided_copy[(64,)](torch.empty(1 << 16, device="cuda"), x, 1 << 16, BLOCK=1024)
"""


class ClientWithout:
    """Capabilities of an editor that refreshes nothing."""

    workspace = None


@pytest.fixture
def script(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    path = tmp_path / "copies.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.torch
def test_an_agent_gets_figures_and_findings(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp")
    from mcp import Client

    from wavecast.servers import mcp

    monkeypatch.setattr(verbs, "processes", SimpleNamespace(run=finished))

    async def talk() -> None:
        async with Client(mcp.server()) as client:
            listed = await client.list_tools()
            names = [tool.name for tool in listed.tools]
            assert names == ["explain", "run", "predict", "diff", "tune", "model", "arch"]
            explained = await client.call_tool("explain", {"path": str(script)})
            found = explained.structured_content
            assert found is not None
            (kernel,) = found["kernels"]
            assert kernel["kernel"] == "strided_copy"
            assert kernel["interval_microseconds"][0] < kernel["microseconds"]
            assert [(one["rule"], one["lines"]) for one in kernel["findings"]][:1] == [
                ("uncoalesced-global", [9])
            ]
            refused = await client.call_tool("explain", {"path": "--help"})
            assert refused.is_error
            assert "no such file: --help" in str(refused.content)

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("explain", ("x" * 300,), "no such file: xxx"),
        ("explain", ("a\0b",), "no such file: a"),
        ("arch", ("mi300x,--help",), "an option: --help"),
        ("model", ("--help",), "an option: --help"),
        ("predict", ("--version", "1"), "an option: --version"),
        ("predict", ("gemm", "4\0"), "NUL character"),
    ],
)
def test_arguments_that_are_no_names(tool: str, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        getattr(tools, tool)(*arguments)


def test_findings_of_a_file_go_with_its_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pygls")
    from wavecast.servers import lsp

    server = lsp.server("gfx942")
    published: list[int] = []
    monkeypatch.setattr(
        server,
        "text_document_publish_diagnostics",
        lambda params: published.append(len(params.diagnostics)),
    )
    monkeypatch.setattr(
        verbs,
        "document",
        lambda *_, **__: {"kernels": [], "failures": [{"stage": "capture", "message": "broken"}]},
    )
    monkeypatch.setattr(lsp.KernelServer, "client_capabilities", ClientWithout)
    path = tmp_path / "kernels.py"
    path.write_text("@triton.jit\n")
    server.explain(path.as_uri())
    path.write_text("x = 1\n")
    server.explain(path.as_uri())
    assert published == [1, 0]
    assert path.as_uri() not in server.known
    server.explain(f"file:///{'a' * 5000}.py")
    assert published == [1, 0]


@pytest.mark.torch
def test_an_editor_gets_diagnostics_titles_and_hovers(script: Path) -> None:
    pytest.importorskip("pygls")
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    async def talk() -> None:
        client = LanguageClient("test", "1")
        published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: types.PublishDiagnosticsParams) -> None:
            published.put_nowait(params)

        await client.start_io(sys.executable, "-m", "wavecast", "lsp", "--arch", "gfx942")
        await client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=None)
        )
        client.initialized(types.InitializedParams())
        document = types.TextDocumentItem(script.as_uri(), "python", 1, SCRIPT)
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        found = await asyncio.wait_for(published.get(), 120)
        shown = [(one.range.start.line, one.code) for one in found.diagnostics]
        assert shown[:1] == [(8, "uncoalesced-global")]
        identifier = types.TextDocumentIdentifier(script.as_uri())
        lenses = await client.text_document_code_lens_async(types.CodeLensParams(identifier))
        assert lenses is not None
        assert lenses[0].command is not None
        assert lenses[0].command.title.startswith("gfx942: ")
        hover = await client.text_document_hover_async(
            types.HoverParams(identifier, types.Position(8, 4))
        )
        assert hover is not None
        assert "of the time" in str(hover.contents)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(talk())
