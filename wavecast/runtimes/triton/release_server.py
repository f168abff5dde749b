"""Code generation for another process, by the release of Triton in this environment.

`python -m wavecast.runtimes.triton.release_server` answers lines of JSON: LLVM IR (`text`), the
id of a `device`, and `flags` of LLVM, null for the stage of Triton's compiler as programs have it.
An answer has the `assembly` and the `log`; or the `error`, and whether the generator `crashed`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

from wavecast import arch
from wavecast.errors import WavecastError
from wavecast.runtimes.triton.dumps import machine_text
from wavecast.runtimes.triton.generate import CodeGeneratorCrash, generated_assembly

MODULE: Final = "wavecast.runtimes.triton.release_server"


def main() -> None:
    """Answer requests until stdin ends. What compilers print on stdout goes to stderr."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            answers.write(json.dumps(answer(json.loads(line))) + "\n")
            answers.flush()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    text, device, flags = request["text"], arch.load(request["device"]), request["flags"]
    try:
        if flags is None:
            return {"assembly": generated_assembly(text, device), "log": ""}
        log, assembly = machine_text(text, {}, device, flags)
    except CodeGeneratorCrash as error:
        return {"error": error.message, "log": error.log, "crashed": True}
    except WavecastError as error:
        return {"error": error.message, "log": getattr(error, "log", ""), "crashed": False}
    return {"assembly": assembly, "log": log}


if __name__ == "__main__":
    main()

__all__ = ["MODULE", "answer", "main"]
