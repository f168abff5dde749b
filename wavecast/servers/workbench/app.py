"""The server of the workbench: one page and its questions, on 127.0.0.1 only.

A request needs the token that the address printed at the start has; the Host header must name this
machine, and the Origin header, where a browser sends one, this server. The page's policy allows
its own script by digest and connections to this server only.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Final

import uvicorn
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from wavecast.errors import UsageError, WavecastError
from wavecast.report.kit import pages
from wavecast.servers.workbench import session as sessions
from wavecast.servers.workbench.engine import ReplacedVersion, WorkbenchEngine
from wavecast.servers.workbench.launch_settings import launch_settings
from wavecast.servers.workbench.session import LARGEST, WorkbenchSession
from wavecast.version import __version__

HOST: Final = "127.0.0.1"
_WATCH_SECONDS: Final = 0.3
_QUESTIONS: Final = ("advice", "accesses", "timeline", "what-if")


class Workbench:
    """The state behind the page: the session as it was explained last."""

    def __init__(self, session: WorkbenchSession, engine: WorkbenchEngine) -> None:
        self.session = session
        self._engine = engine
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """The session for the page."""
        return {
            **self.session.permalink(),
            "watched": self.session.watched is not None,
            "constants": [
                asdict(setting) for setting in launch_settings(self.session.text, self.session.name)
            ],
        }

    def explain(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Explain a version. Raises WavecastError."""
        with self._lock:
            self.session = session = self.session.with_changes(changes)
            question = session.question()
        document = self._engine.explain(question)
        document["constants"] = _settings(session)
        document["text"] = session.text
        return document

    def open(self, text: str) -> dict[str, Any]:
        """Replace the session by that of a permalink. Raises WavecastError."""
        with self._lock:
            if self.session.watched is not None:
                raise UsageError("a watched file is not replaced")
            self.session = sessions.open_session(text, "", self.session.folder)
        return self.state()

    def ask(self, question: dict[str, Any]) -> Any:
        """Raises WavecastError."""
        return self._engine.ask(question)

    def changed_at(self) -> int:
        """When the watched file was changed, in nanoseconds; 0 where it is missing."""
        path = self.session.watched
        try:
            return path.stat().st_mtime_ns if path is not None else 0
        except OSError:
            return 0


def _settings(session: WorkbenchSession) -> list[dict[str, Any]]:
    return [asdict(setting) for setting in launch_settings(session.text, session.name)]


def application(workbench: Workbench, token: str, port: int) -> Starlette:
    """The routes, behind the checks of `_Guard`."""

    async def page(_: Request) -> Response:
        return HTMLResponse(_page())

    async def state(_: Request) -> Response:
        return JSONResponse(workbench.state())

    async def explain(request: Request) -> Response:
        return await _answer(workbench.explain, await _body(request))

    async def open_source(request: Request) -> Response:
        body = await _body(request)
        return await _answer(workbench.open, json.dumps(body))

    async def ask(request: Request) -> Response:
        question = await _body(request)
        if question.get("question") not in _QUESTIONS:
            raise HTTPException(400, f"questions are {', '.join(_QUESTIONS)}")
        return await _answer(workbench.ask, question)

    async def changes(request: Request) -> Response:
        return StreamingResponse(_changes(workbench, request), media_type="text/event-stream")

    routes = [
        Route("/", page),
        Route("/api/session", state),
        Route("/api/explain", explain, methods=["POST"]),
        Route("/api/open", open_source, methods=["POST"]),
        Route("/api/ask", ask, methods=["POST"]),
        Route("/api/changes", changes),
    ]
    guard = Middleware(_Guard, token=token, port=port)  # type: ignore[arg-type]
    handlers: Any = {HTTPException: _error_response}
    return Starlette(routes=routes, middleware=[guard], exception_handlers=handlers)


class _Guard:
    """Refuses requests without the token, for another host, from another origin, and too large
    ones."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refusal = self._why_refused(Request(scope))
        if refusal:
            status, why = refusal
            response = JSONResponse({"error": why}, status)
            await response(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _why_refused(self, request: Request) -> tuple[int, str] | None:
        headers = request.headers
        if headers.get("host", "") not in self._hosts:
            return 421, "not a name of this server"
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return 403, "another origin"
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if request.url.path == "/":  # where a browser adds no header
            token = token or request.query_params.get("token", "")
        if not hmac.compare_digest(token.encode(), self._token):
            return 403, "the address needs the token that wavecast serve printed"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > 2 * LARGEST:
            return 413, "too large"
        return None


_HEADERS: Final = [
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


async def _error_response(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code)


async def _body(request: Request) -> dict[str, Any]:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > 2 * LARGEST:
            raise HTTPException(413, "too large")
        parts.append(part)
    try:
        body = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise HTTPException(400, "not JSON") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "not a JSON object")
    return body


async def _answer(work: Callable[[Any], Any], argument: Any) -> Response:
    try:
        return JSONResponse({"answer": await run_in_threadpool(work, argument)})
    except ReplacedVersion as error:
        return JSONResponse({"error": str(error), "replaced": True}, 409)
    except WavecastError as error:
        return JSONResponse({"error": str(error)}, 422)


async def _changes(workbench: Workbench, request: Request) -> AsyncIterator[str]:
    """An event when the watched file has changed."""
    last = workbench.changed_at()
    yield ": watching\n\n"
    while not await request.is_disconnected():
        await asyncio.sleep(_WATCH_SECONDS)
        now = workbench.changed_at()
        if now != last:
            last = now
            yield "data: changed\n\n"


def _page() -> str:
    script = pages.asset("workbench.js")
    return (
        pages.environment()
        .get_template("workbench.html.j2")
        .render(
            version=__version__,
            style=Markup(pages.asset("style.css")),  # our own files
            own_style=Markup(pages.asset("workbench.css")),
            script=Markup(script),
            script_digest=pages.digest(script),
        )
    )


def serve(
    session: WorkbenchSession,
    engine: WorkbenchEngine,
    token: str,
    port: int,
    announce: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `announce` gets the address once the server listens; `port` 0
    takes a free one. Raises OSError where the port is taken."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((HOST, port))
    listening.listen()  # The lifespan begins before uvicorn listens: a browser may be faster.
    port = listening.getsockname()[1]
    app = application(Workbench(session, engine), token, port)
    app.router.lifespan_context = _announcing(
        lambda: announce(f"http://{HOST}:{port}/?token={token}")
    )
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=1, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listening])


def _announcing(announce: Callable[[], None]) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        announce()
        yield

    return lifespan


__all__ = ["HOST", "Workbench", "application", "serve"]
