"""Running a script as Python would, and saying in one line how it ended."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

_SPAWNING = ("torch.multiprocessing.", "multiprocessing.")
_LONGEST = 160
"""Characters of a message worth repeating: failed comparisons print whole tensors."""


def run_as_main(path: Path, arguments: Sequence[str]) -> None:
    """Execute `path` as `__main__` with its own `sys.argv` and its folder first in `sys.path`.

    Whatever the script raises is passed on, SystemExit included.
    """
    program_of(path, arguments)()


def program_of(path: Path, arguments: Sequence[str]) -> Callable[[], None]:
    """A function that executes `path` as `__main__`, once per call, with the variables of a module
    per call. Raises SyntaxError."""
    # Triton's warning is about a setting of the user's GPU runs, not of this one.
    warnings.filterwarnings("ignore", message="TRITON_DEFAULT_FP_FUSION is unset")
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    code = compile(_source(path), str(path), "exec", dont_inherit=True)  # this file's __future__

    def run() -> None:
        main = types.ModuleType("__main__")
        main.__file__ = str(path)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)

    return run


def starts_processes(path: Path) -> bool:
    """Whether a script imports a module that starts processes. Raises SyntaxError."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(_source(path), str(path))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return any(f"{name}.".startswith(_SPAWNING) for name in modules)


def _source(path: Path) -> str:
    """The text of a script in the encoding it states. Raises SyntaxError as Python does."""
    data = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise SyntaxError(error.msg, (str(path), 1, 0, None)) from None
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SyntaxError(
            f"the script is not {encoding} text; save it as UTF-8 or state its encoding",
            (str(path), line, 0, None),
        ) from None


def ending(error: BaseException, path: Path) -> str | None:
    """`AssertionError: not close (script.py:88)`; None for an exit with code 0."""
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return None
        return f"SystemExit: {error.code}"
    message = " ".join(str(error).split())
    if len(message) > _LONGEST:
        message = message[:_LONGEST] + " …"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"SyntaxError: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    script_frames = [frame for frame in frames if frame.filename == str(path)]
    return f"{text} ({path.name}:{script_frames[-1].lineno})" if script_frames else text


def own_traceback(error: BaseException, path: Path) -> str:
    """The traceback of an error as Python prints it, from the script's own frames on; without
    frames for a script that did not start."""
    frames = traceback.TracebackException.from_exception(error)
    indices = [index for index, frame in enumerate(frames.stack) if frame.filename == str(path)]
    del frames.stack[: indices[0] if indices else len(frames.stack)]
    return "".join(frames.format())


def named_exception(error: BaseException) -> str:
    """`ValueError: wrong` in one line."""
    try:
        text = str(error).strip().splitlines()
    except Exception:  # of the program's own class
        text = []
    return ": ".join((type(error).__name__, *text[:1]))


def crash_line(dump: str, path: Path) -> str:
    """`script.py:12` out of what `faulthandler` left behind; "" when it names no line."""
    markers = [f'File "{name}", line ' for name in (path, path.absolute())]
    for line in dump.splitlines():
        for marker in markers:
            if marker in line:
                number = line.split(marker, 1)[1].split(" ", 1)[0]
                return f"{path.name}:{number}"
    return ""
