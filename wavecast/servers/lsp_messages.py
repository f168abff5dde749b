"""The messages of an editor: what is none gets an answer or one line, never a traceback."""

from __future__ import annotations

import logging
import re
from typing import Any, BinaryIO, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol

from wavecast.errors import InputError

LARGEST: Final = 64 * 2**20
"""Bytes of a message."""
_LONGEST_HEADER: Final = 2**16
_LENGTH: Final = re.compile(rb"Content-Length: *0*(\d+)\s*")


class EditorProtocol(LanguageServerProtocol):
    """The library's protocol, which answers requests it cannot read."""

    def structure_message(self, data: Any) -> Any:
        """A message from its JSON; None for a request that was answered with its error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" not in data or "method" not in data:
                raise
            self._refuse(data["id"], error, f"{data['method']}: {error}")
            return None

    def handle_message(self, message: Any) -> None:
        """Handle a message; what is none is refused."""
        if message is None:
            return
        if not hasattr(message, "jsonrpc"):
            self._refuse(None, JsonRpcInvalidRequest(), "not a message of JSON-RPC")
            return
        super().handle_message(message)

    def _refuse(self, request: Any, error: JsonRpcException, why: str) -> None:
        self._send_response(request, error=types.ResponseError(error.code, why))


class EditorInput:
    """An editor's bytes. Raises InputError for a message that is larger than `LARGEST`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.read = stream.read
        self.close = stream.close

    def readline(self) -> bytes:
        """A line of a header, or the part of a longer line."""
        line = self._stream.readline(_LONGEST_HEADER)
        length = _LENGTH.fullmatch(line)
        if length and (len(length[1]) > len(str(LARGEST)) or int(length[1]) > LARGEST):
            digits = length[1][:20].decode() + ("…" if len(length[1]) > 20 else "")
            raise InputError(
                f"the editor announces a message of {digits} bytes", hint=f"at most {LARGEST:,}"
            )
        return line


class _OneLine(logging.Formatter):
    """A record in one line, with its error but without the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        first = record.getMessage().partition("\n")[0]
        error = record.exc_info[1] if record.exc_info else None
        return f"wavecast lsp: {first}" + (f": {error}" if error else "")


def log_in_lines() -> None:
    """What the library logs is one line each on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("pygls")
    logger.handlers[:] = [handler]
    logger.propagate = False


__all__ = ["LARGEST", "EditorInput", "EditorProtocol", "log_in_lines"]
