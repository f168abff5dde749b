"""The HIP runtime library that programs are linked to, compiled once per machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Final

from wavecast.compile import hip_program, toolchain
from wavecast.compile.cache import default_root
from wavecast.compile.digest import digest
from wavecast.errors import InputError
from wavecast.runtimes.hip_host import protocol

LIBRARY: Final = f"lib{hip_program.LIBRARY}"
_OTHER_NAMES: Final = (
    f"{LIBRARY}.so", f"{LIBRARY}.so.7", "libhiprtc.so", "libhiprtc.so.6", "libhiprtc.so.7",
    "libhsa-runtime64.so", "libhsa-runtime64.so.1",
)  # fmt: skip
"""Further names that programs ask for, also those of libraries whose functions the runtime has."""
NAMES: Final = "names"
"""The folder with a library of each of them that has nothing but the runtime as a dependency: a
process that has it loaded finds the runtime by that name."""
_UNSUPPORTED: Final = "wavecast_unsupported"
"""The function that says so (`runtime/connection.c`)."""
_WITHOUT_VERSION: Final = ("hipCreateSurfaceObject", "hipDestroySurfaceObject")
_SOURCES: Final = Path(str(resources.files("wavecast.runtimes.hip_host") / "runtime"))


def runtime_folder() -> Path:
    """The folder with `libamdhip64.so` under the names that programs ask for.

    Raises MissingTool without a compiler, CompileError, InputError where the folder of the cache
    cannot be written.
    """
    sources = sorted(_SOURCES.iterdir())
    content = digest(
        [(path.name, path.read_bytes()) for path in sources],
        protocol.header(),
        toolchain.headers_digest(),
    )
    folder = default_root() / "hip-runtime" / content
    if (folder / hip_program.SONAME).is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".made-", dir=folder.parent) as staging:
            _make(Path(staging), [path for path in sources if path.suffix == ".c"])
            _publish(Path(staging), folder)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    return folder


def _make(folder: Path, sources: list[Path]) -> None:
    library = folder / hip_program.SONAME
    versions = _versions((_SOURCES / "versions.txt").read_text())
    script, stubs = folder / "versions.map", folder / "unsupported.c"
    (folder / "protocol.h").write_text(protocol.header())
    script.write_text(_version_script(versions))
    stubs.write_text(_stubs(versions))
    hip_program.shared_library([*sources, stubs], library, script, include=folder)
    for name in _OTHER_NAMES:
        (folder / name).symlink_to(hip_program.SONAME)
    (folder / NAMES).mkdir()
    for name in _OTHER_NAMES:
        hip_program.alias_library(library, versions, folder / NAMES / name)


def _versions(table: str) -> dict[str, list[str]]:
    """Versions of symbols -> the functions that came with them, in order."""
    versions: dict[str, list[str]] = {}
    for line in table.splitlines():
        if line.endswith(":"):
            versions[line[:-1]] = []
        elif not line.startswith("#"):
            versions[next(reversed(versions))] += line.split()
    return versions


def _version_script(versions: dict[str, list[str]]) -> str:
    """What gives symbols the versions that executables built with ROCm ask for, for the linker.
    The first version has all other functions too."""
    nodes, before = [], ""
    for version, names in versions.items():
        symbols = "".join(f"  {name};\n" for name in (names if before else ("*",)))
        nodes.append(f"{version} {{\nglobal:\n{symbols}}}{before};\n")
        before = f" {version}"
    return "".join(nodes)


def _stubs(versions: dict[str, list[str]]) -> str:
    """C that defines each function that the runtime does not."""
    names = [name for names in versions.values() for name in (*names, *_WITHOUT_VERSION)]
    return unsupported_functions(dict.fromkeys(names))


def unsupported_functions(names: Iterable[str]) -> str:
    """C that defines functions, weakly: a call of one is an error with its name."""
    lines = [
        f'WEAK int {name}(void) {{ return wavecast_unsupported("{name}"); }}' for name in names
    ]
    head = (
        f"int {_UNSUPPORTED}(const char *function);\n"
        '#define WEAK __attribute__((weak, visibility("default")))\n'
    )
    return head + "\n".join(lines) + "\n"


def _publish(staging: Path, folder: Path) -> None:
    """Move what was made to its folder, at once; another process may have been faster."""
    complete = staging.with_name(f"{staging.name}.complete")
    staging.rename(complete)
    staging.mkdir()
    try:
        complete.rename(folder)
    except OSError:
        if not (folder / hip_program.SONAME).is_file():
            raise


__all__ = ["NAMES", "runtime_folder", "unsupported_functions"]
