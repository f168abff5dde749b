"""The messages of a HIP program and the emulator are laid out in C as Python reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wavecast.compile.process import find_program
from wavecast.runtimes.hip_host.protocol import (
    HEAP_BYTES,
    LAUNCH,
    OCCUPANCY,
    ORDER,
    OUTPUT_BYTES,
    SOCKET,
    HostMessage,
    HostRequest,
    OrderEvent,
    header,
)

pytestmark = pytest.mark.hip
MESSAGES = (LAUNCH, OCCUPANCY, ORDER)


def filled(message: HostMessage) -> tuple[str, list[tuple[int, ...]]]:
    """An initialiser in C with a different value for every field, and the values."""
    texts, values = [], []
    for name, form in message.fields.items():
        numbers = tuple(100 * len(values) + at for at in range(int(form[:-1] or 1)))
        values.append(numbers)
        text = ", ".join(map(str, numbers))
        texts.append(f".{name} = " + (f"{{{text}}}" if form[:-1] else text))
    return ", ".join(texts), values


def test_structures_enumerations_and_sizes_are_those_of_python(tmp_path: Path) -> None:
    compiler = find_program(("cc", "gcc", "clang"))
    if not compiler:
        pytest.skip("needs a C compiler")
    members = [*HostRequest, *OrderEvent]
    numbers = [*(member.name for member in members), "OUTPUT_BYTES", "HEAP_BYTES"]
    lines = [f'    printf("%u ", (unsigned){name});' for name in numbers]
    lines.append('    printf("%s\\n", SOCKET);')
    for message in MESSAGES:
        lines += [
            f"    {message.name} of_{message.name} = {{{filled(message)[0]}}};",
            f"    fwrite(&of_{message.name}, 1, sizeof of_{message.name}, stdout);",
        ]
    (tmp_path / "protocol.h").write_text(header())
    source = tmp_path / "program.c"
    source.write_text(
        '#include <stdio.h>\n#include "protocol.h"\nint main(void) {\n'
        + "\n".join(lines)
        + "\n    return 0;\n}\n"
    )
    subprocess.run([compiler, "-Wall", "-Werror", source, "-o", tmp_path / "program"], check=True)
    head, _, data = subprocess.run(
        [tmp_path / "program"], capture_output=True, check=True
    ).stdout.partition(b"\n")
    expected = [*(str(member.value) for member in members), str(OUTPUT_BYTES), str(HEAP_BYTES)]
    assert head.decode().split() == [*expected, SOCKET]
    for message in MESSAGES:
        assert message.read(data) == filled(message)[1]
        data = data[message.layout.size :]
    assert data == b""
