"""Capturing a script's launches with another interpreter, or with other packages in front.

Only the capture takes place there: the launches come back as frames of `runtimes.triton.wire`,
and both sides of a comparison are analysed by the same code, here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from wavecast import errors
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.errors import CaptureError, WavecastError
from wavecast.pipeline import Selection, SourceOptions, select
from wavecast.pipeline.explain.result import Failure

_JOB: Final = "job.json"
_FRAMES: Final = "launches"
_BOOT: Final = """
import sys
try:
    import wavecast
except ImportError:
    sys.path.append({root!r})
from wavecast.benchmarking.diff.capturing import main
main({folder!r})
"""


@dataclass(frozen=True, slots=True)
class Captured:
    """What a script launched on every target, with what failed and what the user must see."""

    launches: tuple[Launch, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]


def capture_launches(
    path: Path,
    selection: Selection,
    files: Sequence[Path],
    options: SourceOptions,
    *,
    python: Path | None = None,
    import_path: Sequence[str] = (),
) -> Captured:
    """The launches of a script, run by `python` (default: this one) with the folders `import_path`
    ahead of other packages. `files` are the overlays of the selection's devices.

    Raises what `capture_script` raises, CaptureError when the process ends early.
    """
    job = {
        "path": str(path.absolute()),
        "devices": [device.id for device in selection.devices],
        "files": [str(file.absolute()) for file in files],
        "args": list(options.script_args),
        "kernels": options.kernels,
        "configs": "first" if options.configs == "first" else "all",
        "timeout": options.timeout,
        "show_output": options.show_output,
        "sample": options.sample,
    }
    with tempfile.TemporaryDirectory(prefix="wavecast-capture-") as name:
        folder = Path(name)
        (folder / _JOB).write_text(json.dumps(job), encoding="utf-8")
        root = str(Path(__file__).parents[3])
        boot = _BOOT.format(root=root, folder=name)
        process = subprocess.run(
            [str(python or sys.executable), "-P", "-c", boot],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if options.show_output else subprocess.DEVNULL,
            stderr=None if options.show_output else subprocess.PIPE,
            env=_environment(import_path),
            check=False,
        )
        return _read(folder, process)


def _environment(import_path: Sequence[str]) -> Mapping[str, str]:
    if not import_path:
        return os.environ
    python_path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*import_path, *([python_path] if python_path else [])]),
    }


def _read(folder: Path, process: subprocess.CompletedProcess[bytes]) -> Captured:
    from wavecast.runtimes.triton import wire

    codes: dict[str, CodeObject] = {}
    launches: list[Launch] = []
    end: dict[str, Any] | None = None
    for frame in wire.FrameReader(folder / _FRAMES).poll():
        if "code" in frame:
            code = wire.decode_code(frame["code"])
            codes[code.digest] = code
        elif "launch" in frame:
            launches.append(wire.decode_launch(frame["launch"], codes))
        else:
            end = frame
    if end is None:
        stderr_lines = (process.stderr or b"").decode(errors="replace").strip().splitlines()
        why = stderr_lines[-1] if stderr_lines else f"exit code {process.returncode}"
        raise CaptureError(f"the capturing process ended early: {why}")
    if "error" in end:
        raise _error(*end["error"])
    failures = tuple(Failure(**failure) for failure in end["failures"])
    return Captured(tuple(launches), failures, tuple(end["notes"]))


def _error(kind: str, message: str, hint: str) -> WavecastError:
    """The error raised there, or a WavecastError if its class takes other arguments."""
    plain = {"InputError", "MissingTool", "CompileError", "CaptureError", "NothingAnalysed"}
    error_class = getattr(errors, kind) if kind in plain else WavecastError
    return error_class(message, hint=hint)


def main(folder: str) -> None:
    """Capture as the job in `folder` says and leave the frames there."""
    from wavecast.runtimes.triton import capture_script, wire

    job = json.loads((Path(folder) / _JOB).read_text(encoding="utf-8"))
    writer = wire.FrameWriter(Path(folder) / _FRAMES)
    try:
        capture = capture_script(
            job["path"],
            job["args"],
            select(job["devices"], job["files"]).devices,
            kernels=job["kernels"],
            configs=job["configs"],
            timeout=job["timeout"],
            quiet=not job["show_output"],
            sample=job["sample"],
        )
    except WavecastError as error:
        writer.write({"error": [type(error).__name__, error.message, error.hint]})
        return
    sent: set[str] = set()
    for launches in capture.launches.values():
        for launch in launches:
            if launch.code.digest not in sent:
                sent.add(launch.code.digest)
                writer.write({"code": wire.encode_code(launch.code)})
            writer.write({"launch": wire.encode_launch(launch)})
    failures = [Failure(f.kernel, f.target, f.stage, f.message, f.hint) for f in capture.failures]
    writer.write({"failures": [asdict(f) for f in failures], "notes": list(capture.notes)})


__all__ = ["Captured", "capture_launches", "main"]
