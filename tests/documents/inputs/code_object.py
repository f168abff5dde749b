"""Writes k.hsaco, the code object of k.hip for gfx942."""

from pathlib import Path

from wavecast.compile import hip

(code,) = hip.compile_file(Path("k.hip"), "gfx942")
Path("k.hsaco").write_bytes(code.stages["hsaco"])
