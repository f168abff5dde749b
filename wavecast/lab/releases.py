"""The code generators of other releases of Triton, each in processes of its environment."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.errors import CompileError
from wavecast.lab.codegen import BROKEN, CrashedCompiler, portable
from wavecast.lab.older_intrinsics import compile_in_older_form, no_form
from wavecast.runtimes.triton.release_server import MODULE

_SERVERS: Final[dict[tuple[int, Path], subprocess.Popen[str]]] = {}
"""One per process that asks and interpreter: forks do not share one."""


@dataclass(frozen=True, slots=True)
class TritonRelease:
    """A release of Triton, imported by the interpreter `python` of its environment."""

    release: str
    python: Path
    device: Device

    @property
    def name(self) -> str:
        return f"triton {self.release}"

    @property
    def command(self) -> str:
        return f"the stage amdgcn of {self.name} for {self.device.target}"

    def assembly(self, text: str) -> str:
        """The assembly of a module. Raises as `CodeGenerator.assembly`."""
        return self._answer(text, None)["assembly"]

    def limit_passes(self, launch: Launch, limit: int) -> tuple[str, str]:
        """As `BisectedCompiler.limit_passes`."""
        flags = [f"-opt-bisect-limit={limit}"]
        answer = self._answer(str(launch.code.stages["llir"]), flags)
        return answer["assembly"], answer["log"]

    def _answer(self, text: str, flags: list[str] | None) -> dict[str, Any]:
        def attempt(text: str) -> tuple[dict[str, Any], str]:
            answer = self._ask(text, flags)
            return answer, f"{answer.get('log', '')}\n{answer.get('assembly', '')}"

        answer, unknown = compile_in_older_form(portable(text), self.device.target, attempt)
        if unknown:
            raise CompileError(no_form(self.name, unknown), log=answer.get("log", ""))
        if "error" not in answer:
            return answer
        message = f"{self.name}: {answer['error']}"
        if answer["crashed"] and BROKEN not in answer["log"] and _PARSED not in answer["log"]:
            raise CrashedCompiler(message, log=answer["log"])
        first = next(
            (log_line for log_line in answer["log"].splitlines() if _PARSED in log_line), ""
        )
        raise CompileError(f"{self.name}: {first}" if first else message, log=answer["log"])

    def _ask(self, text: str, flags: list[str] | None) -> dict[str, Any]:
        """The answer of the release's process to a module as it is."""
        server = self._server()
        assert server.stdin is not None
        assert server.stdout is not None
        request = {"text": text, "device": self.device.id, "flags": flags}
        try:
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            line = server.stdout.readline()
        except OSError:
            line = ""
        if not line:
            _SERVERS.pop((os.getpid(), self.python), None)
            raise CompileError(f"{self.name}: its process ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _server(self) -> subprocess.Popen[str]:
        key = os.getpid(), self.python
        server = _SERVERS.get(key)
        if server is None or server.poll() is not None:
            if not _SERVERS:
                atexit.register(_end)
            server = _SERVERS[key] = subprocess.Popen(
                [self.python, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        return server


def _end() -> None:
    """End the servers of this process."""
    for (process, _), server in _SERVERS.items():
        if process == os.getpid():
            server.kill()
            with contextlib.suppress(OSError):
                server.communicate()


_PARSED: Final = "failed to parse"
"""What LLVM says of IR of a newer LLVM that it does not read."""

__all__ = ["TritonRelease"]
