"""Streams of MCP messages that end when every request has its answer.

The library's server drops what it is working on as soon as its input ends. A client that writes
its requests, closes its end and reads, as a script does, would get no answer to the last ones.
"""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Any, Self

import anyio


class UnansweredRequests:
    """The requests of a connection that have no answer yet, by their id."""

    def __init__(self) -> None:
        self._requests: Counter[Any] = Counter()
        self._none_left = anyio.Event()

    def came(self, message: Any) -> None:
        """Count a request; one that the client cancels gets no answer."""
        method = getattr(message, "method", "")
        if method == "notifications/cancelled":
            self._drop((message.params or {}).get("requestId"))
        elif method and getattr(message, "id", None) is not None:
            self._requests[message.id] += 1

    def went(self, message: Any) -> None:
        """Discount the request that a message answers."""
        if not getattr(message, "method", ""):
            self._drop(getattr(message, "id", None))

    async def wait(self) -> None:
        """Until every request has its answer."""
        while self._requests.total():
            self._none_left = anyio.Event()
            await self._none_left.wait()

    def _drop(self, request: Any) -> None:
        if self._requests[request] > 0:
            self._requests[request] -= 1
        if not self._requests.total():
            self._none_left.set()


class _Stream:
    """A stream of the library with the requests that pass it."""

    def __init__(self, stream: Any, unanswered: UnansweredRequests) -> None:
        self._stream = stream
        self._unanswered = unanswered

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Incoming(_Stream):
    """Messages of the client; their end comes when all requests are answered."""

    async def receive(self) -> Any:
        try:
            item = await self._stream.receive()
        except anyio.EndOfStream:
            await self._unanswered.wait()
            raise
        self._unanswered.came(getattr(item, "message", None))
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Outgoing(_Stream):
    """Messages of the server."""

    async def send(self, item: Any) -> None:
        await self._stream.send(item)
        self._unanswered.went(getattr(item, "message", None))


__all__ = ["Incoming", "Outgoing", "UnansweredRequests"]
