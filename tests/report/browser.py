"""A headless Chromium driven through its debugging pipe, with nothing but the standard library."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (found := shutil.which(name))), "",
)  # fmt: skip
"""The browser's program, "" where there is none."""


def _pipe() -> tuple[int, int]:
    """A pipe whose ends stay clear of the numbers 3 and 4, which the browser reads and writes."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Page:
    """One page of one browser process; a context manager that ends both.

    Console messages, exceptions and policy violations are collected in `problems`.
    """

    def __init__(self, **shown: Any) -> None:
        """What is shown is as of `show`."""
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._next = 0
        self._shown = shown

    def __enter__(self) -> Page:
        self._profile = tempfile.TemporaryDirectory(
            prefix="wavecast-chromium-", ignore_cleanup_errors=True
        )
        to_browser, self._out = _pipe()
        self._in, from_browser = _pipe()
        arguments = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank",
        ]  # fmt: skip
        self._process = os.posix_spawn(
            CHROMIUM,
            arguments,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, to_browser, 3),
                (os.POSIX_SPAWN_DUP2, from_browser, 4),
            ],
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self) -> None:
        self._buffer = b""
        self._session = ""
        target = next(
            t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.show(**self._shown)

    def show(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Change the size of the window and its colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip
        scheme = "dark" if dark else "light"
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its result."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._next:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path: Path) -> None:
        """Load a file and wait until it is."""
        self.call("Page.navigate", url=path.as_uri())
        while self.run("document.readyState") != "complete":
            self.wait(20)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, promises awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, milliseconds: int) -> None:
        """Let the page run for a while."""
        self.run(f"new Promise(done => setTimeout(done, {milliseconds}))")

    def screenshot(self) -> bytes:
        """The visible part as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._in, 1 << 16)
            assert chunk, "the browser ended"
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(parameters["exceptionDetails"]["text"])
            case "Runtime.consoleAPICalled":
                self.problems.append(str(parameters["args"]))
            case "Log.entryAdded":
                self.problems.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
