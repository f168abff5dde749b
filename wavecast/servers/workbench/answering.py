"""The prepared process: it imports what explaining needs, then forks for each version of the file.

A fork answers questions about its version until the server closes the connection or ends it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final

from wavecast import processes
from wavecast.errors import WavecastError

_MODULES: Final = (
    "wavecast.pipeline",
    "wavecast.pipeline.explain.run",
    "wavecast.runtimes.triton.script",
    "wavecast.report.explain.workbench",
)


def main(descriptor: int) -> None:
    """Serve the socket `descriptor` until its other end is closed."""
    prepare()
    control = socket.socket(fileno=descriptor)
    forks: list[int] = []
    while control.recv(1):
        forks = [fork for fork in forks if _runs(fork)]
        ours, theirs = socket.socketpair()
        fork = processes.fork(lambda ends=(ours, theirs, control): _fork(*ends))
        forks.append(fork)
        theirs.close()
        socket.send_fds(control, [str(fork).encode()], [ours.fileno()])
        ours.close()
    for fork in forks:
        processes.kill(fork)
    os._exit(0)


def prepare() -> None:
    """Import everything that explaining a file needs. Without PyTorch only files that need none
    can be explained, and the others say what is missing."""
    from wavecast import rules
    from wavecast.runtimes.triton import capture_process

    rules.all_rules()
    for name in _MODULES:
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        capture_process.prepare()


def _runs(fork: int) -> bool:
    try:
        return processes.poll(fork) is None
    except ChildProcessError:
        return False


def _fork(ours: socket.socket, theirs: socket.socket, control: socket.socket) -> None:
    ours.close()
    control.close()
    connection = Connection(theirs.detach())
    answers = Answers()
    with contextlib.suppress(EOFError, OSError):
        while True:
            question = json.loads(connection.recv_bytes())
            connection.send_bytes(json.dumps(answers.to(question)).encode())


class Answers:
    """The questions about one version of a file."""

    def __init__(self) -> None:
        self._report: Any = None

    def to(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """`{"answer": …}`, or `{"error": …}` with one line."""
        ask = _QUESTIONS.get(str(question.get("question")))
        if ask is None:
            return {"error": f"no question {question.get('question')!r}"}
        try:
            return {"answer": ask(self, question)}
        except WavecastError as error:
            return {"error": str(error)}
        except (IndexError, KeyError, TypeError, ValueError) as error:
            return {"error": f"not a question: {type(error).__name__}: {error}"}

    def _explain(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Explain the file `path` for the GPUs `arch` with the arguments `arguments`; imports are
        also found in the folder `imports`. What advice saves is left to `advice`."""
        from wavecast.pipeline import SourceOptions, explain_path, select
        from wavecast.pipeline.explain.steps import Given
        from wavecast.report.explain import workbench

        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (question.get("imports", ""), os.environ.get("PYTHONPATH", "")))
        )
        if question.get("imports"):
            sys.path.append(question["imports"])
        options = SourceOptions(
            script_args=tuple(map(str, question.get("arguments", ()))),
            kernels=str(question.get("kernels", "")),
            timeout=float(question["timeout"]),
            given=Given(outcomes=False),
        )
        names = [name.strip() for name in str(question["arch"]).split(",") if name.strip()]
        self._report = explain_path(question["path"], select(names), options)
        return workbench.answer(self._report)

    def _advice(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The document with what the advice of findings saves: fixes are compiled and predicted."""
        del question
        from wavecast.pipeline.explain.steps import Given, with_advice
        from wavecast.report.explain import json as json_report

        report = self._require_report()
        advised = tuple(with_advice(explanation, Given()) for explanation in report.explanations)
        self._report = replace(report, explanations=advised)
        return json_report.document(self._report)

    def _accesses(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The accesses of the kernel `launch` on the device `target`."""
        from wavecast.report.explain import workbench

        return workbench.accesses(self._explanation(question))

    def _timeline(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The timeline of the launch `launch` on the device `target`."""
        from wavecast.report.explain import workbench

        return workbench.timeline(self._explanation(question))

    def _what_if(self, question: Mapping[str, Any]) -> list[float | None]:
        """Seconds of the launch `launch` on each device, with rates times `factors`."""
        from wavecast.report.explain import summary, workbench

        factors = {str(name): float(factor) for name, factor in question["factors"].items()}
        if any(not 0.01 <= factor <= 100 for factor in factors.values()):
            raise ValueError("factors are from 0.01 to 100")
        group = summary.groups(self._require_report())[int(question["launch"])]
        return [
            workbench.changed_seconds(explanation, factors) for explanation in group.explanations
        ]

    def _explanation(self, question: Mapping[str, Any]) -> Any:
        from wavecast.report.explain import workbench

        numbers = int(question["launch"]), int(question["target"])
        return workbench.explanation_at(self._require_report(), *numbers)

    def _require_report(self) -> Any:
        if self._report is None:
            raise ValueError("nothing is explained yet")
        return self._report


_QUESTIONS: Final[Mapping[str, Callable[[Answers, Mapping[str, Any]], Any]]] = {
    "explain": Answers._explain,
    "advice": Answers._advice,
    "accesses": Answers._accesses,
    "timeline": Answers._timeline,
    "what-if": Answers._what_if,
}

__all__ = ["Answers", "main", "prepare"]
