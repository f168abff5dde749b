"""Values and layouts of the host API are ROCm's, as the headers have them that Triton contains."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from wavecast.compile.process import find_program
from wavecast.compile.toolchain import INCLUDE

pytestmark = pytest.mark.hip
TYPES = (INCLUDE / "wavecast" / "host_types.h").read_text(encoding="utf-8")
OTHERS = {
    *("hipDeviceAttributeArch", "hipDeviceAttributeName", "hipDeviceAttributeUuid"),
    "hipLaunchAttributeClusterDimension",
}
"""Values of HIP 5 that the headers have under other names, and of later headers."""


def program() -> str:
    """A C program that prints every value of an enumeration, and every offset in a structure."""
    lines = []
    for body in re.findall(r"enum[^{;]*\{([^}]*)\}", TYPES):
        for name in re.findall(r"\b(hip\w+)\b", re.sub(r"=\s*\w+", "", body)):
            if name not in OTHERS:
                lines.append(f'printf("{name} %lld\\n", (long long){name});')
    for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\n\} (hip\w+);", TYPES):
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for declaration in body.split(";"):
            for part in declaration.split(",") if ":" not in declaration else ():
                field = re.search(r"(\w+)\s*(?:\[\d+\])?$", part.strip())
                if field is not None:
                    offset = f"offsetof({name}, {field[1]})"
                    lines.append(f'printf("{name}.{field[1]} %zu\\n", {offset});')
    includes = "".join(
        f"#include <{header}>\n" for header in ("stddef.h", "stdio.h", "hip/hip_runtime_api.h")
    )
    return includes + "int main(void) {\n" + "\n".join(lines) + "\n}\n"


def printed(folder: Path, name: str, *options: str) -> list[str]:
    """What the program prints with the headers that the options choose."""
    compiler = find_program(("cc", "gcc", "clang"))
    if not compiler:
        pytest.skip("needs a C compiler")
    source, made = folder / f"{name}.c", folder / name
    source.write_text(program(), encoding="utf-8")
    subprocess.run([compiler, "-w", *options, str(source), "-o", str(made)], check=True)
    return subprocess.run([made], capture_output=True, text=True, check=True).stdout.splitlines()


def test_values_and_layouts_are_those_of_rocm(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        pytest.skip("needs the headers in Triton's wheel")
    theirs = Path(spec.origin).parent / "backends" / "amd" / "include"
    if not (theirs / "hip").is_dir():
        pytest.skip("this Triton has no headers of HIP")
    expected = printed(tmp_path, "theirs", f"-I{theirs}", "-D__HIP_PLATFORM_AMD__")
    own = printed(tmp_path, "own", f"-I{INCLUDE}")
    assert own == expected
    assert len(own) > 350
