"""The language server: findings as diagnostics, times as hovers and titles of kernels.

A file is explained when it is opened and saved, in another process; for a script that means
that it runs, with its launches recorded instead of executed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from threading import Lock
from typing import BinaryIO, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from wavecast.errors import WavecastError
from wavecast.servers import verbs
from wavecast.servers.lsp_messages import EditorInput, EditorProtocol, log_in_lines
from wavecast.servers.marks import FileMarks, marks
from wavecast.version import __version__

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_SOURCE = "wavecast"
_SECONDS = 120.0
"""Explaining a file may take so long."""
_KERNELS = re.compile(r"^\s*@triton\.(jit|autotune)|\bfrom triton import\b|__global__", re.M)
"""What a file with kernels contains."""


class KernelServer(LanguageServer):
    """A language server that explains files for the GPUs `arch`."""

    def __init__(self, arch: str) -> None:
        super().__init__("wavecast", __version__, protocol_cls=EditorProtocol)
        self.arch = arch
        self.known: dict[str, FileMarks] = {}
        self._latest: dict[str, int] = {}
        self._lock = Lock()

    def explain(self, uri: str) -> None:
        """Explain the file of `uri` and publish its findings, unless a later request began."""
        path = _path(uri)
        if path is None:
            if uri in self._latest:  # it had kernels
                self.forget(uri)
            return
        with self._lock:
            number = self._latest[uri] = self._latest.get(uri, 0) + 1
        file_marks, failure = FileMarks(), ""
        try:
            options = ["--arch", self.arch, "--format", "json"]
            file_marks = marks(
                verbs.document(["explain", str(path), *options], seconds=_SECONDS), path
            )
        except WavecastError as error:
            failure = str(error)
        with self._lock:
            if number != self._latest[uri]:
                return
            self.known[uri] = file_marks
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, _diagnostics(file_marks, failure))
        )
        capabilities = self.client_capabilities.workspace
        if capabilities and capabilities.code_lens and capabilities.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def forget(self, uri: str) -> None:
        """Drop what is known about a file that is closed or has no kernels any more."""
        with self._lock:
            self._latest[uri] = self._latest.get(uri, 0) + 1
            self.known.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def server(arch: str) -> KernelServer:
    """A server for the GPUs `arch`, such as "gfx942,gfx1100"."""
    instance = KernelServer(arch)

    @instance.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @instance.thread()
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        instance.explain(params.text_document.uri)

    @instance.feature(types.TEXT_DOCUMENT_DID_SAVE)
    @instance.thread()
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        instance.explain(params.text_document.uri)

    @instance.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        instance.forget(params.text_document.uri)

    @instance.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        file_marks = instance.known.get(params.text_document.uri)
        lines = file_marks.hovers.get(params.position.line + 1) if file_marks else None
        if not lines:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "  \n".join(lines)))

    @instance.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        file_marks = instance.known.get(params.text_document.uri)
        return [
            types.CodeLens(_line(title.line), types.Command(title.text, ""))
            for title in (file_marks.titles if file_marks else [])
        ]

    return instance


def serve(arch: str) -> None:
    """Serve an editor over standard input and output until it ends. Raises InputError for a
    message that is too large."""
    log_in_lines()
    server(arch).start_io(cast("BinaryIO", EditorInput(sys.stdin.buffer)))


def _path(uri: str) -> Path | None:
    """The file of `uri` if it can be read and can have kernels."""
    name = to_fs_path(uri)
    if name is None or (path := Path(name)).suffix not in (".py", ".hip", ".cu", ".cpp"):
        return None
    try:
        text = path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return None
    return path if _KERNELS.search(text) else None


def _diagnostics(file_marks: FileMarks, failure: str) -> list[types.Diagnostic]:
    diagnostics = [
        types.Diagnostic(
            range=_line(finding.line),
            message=finding.text,
            severity=_SEVERITIES[finding.severity],
            code=finding.rule,
            source=_SOURCE,
        )
        for finding in file_marks.findings
    ]
    if failure:
        diagnostics.append(
            types.Diagnostic(_line(1), failure, types.DiagnosticSeverity.Hint, source=_SOURCE)
        )
    return diagnostics


def _line(number: int) -> types.Range:
    return types.Range(types.Position(number - 1, 0), types.Position(number, 0))
