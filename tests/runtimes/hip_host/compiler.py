"""The C compiler of libraries that tests link."""

from __future__ import annotations

from wavecast.compile import toolchain


def c_compiler() -> tuple[str, ...]:
    """Zig as Wavecast calls it: with another level of optimization it builds its own libraries
    again."""
    return (toolchain.find().compiler[0], "cc", "-target", toolchain.zig_target(), "-Os")
