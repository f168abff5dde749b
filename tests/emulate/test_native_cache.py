"""Native code on disk: found again, made again when damaged, never found under another name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import assembly
from wavecast.compile.assembly import load
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate import native
from wavecast.emulate.launch import Emulator
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.access import MemoryAccess

BODY = """
	v_add_u32_e32 v2, {amount}, v0
	global_store_dword v1, v2, s[8:9]
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    return DiskCache()


def _code(amount: int) -> CodeObject:
    (code,) = load(assembly("gfx942", BODY.format(amount=amount)), "gfx942")
    return code


def _result(code: CodeObject) -> list[int]:
    out = np.zeros(64, np.uint32)
    start = out.ctypes.data
    kernarg = np.array([start, 0, 0, 0], np.uint64).tobytes()
    Emulator(1).run(Launch(code, (1, 1, 1), (64, 1, 1), (), kernarg), [(start, start + 256)])
    return out.tolist()


def _never(*_: object) -> None:
    raise AssertionError("compiled again")


def test_code_is_compiled_once(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [lane + 5 for lane in range(64)]
    assert _result(_code(5)) == wanted
    assert len(list(cache.entries("emulate"))) == 1
    monkeypatch.setattr(native, "compile_kernel", _never)
    monkeypatch.setattr(native, "parse_kernel", _never)
    assert _result(_code(5)) == wanted


def test_other_code_is_another_entry(cache: DiskCache) -> None:
    assert _result(_code(5)) != _result(_code(6))
    assert len(list(cache.entries("emulate"))) == 2


def test_equal_instructions_of_another_code_object_are_another_entry(cache: DiskCache) -> None:
    """Its data or its descriptor may differ."""
    _result(_code(5))
    _result(replace(_code(5), digest="other"))
    assert len(list(cache.entries("emulate"))) == 2


def test_recipes_are_forgotten_once_their_functions_are_there(cache: DiskCache) -> None:
    for amount in (8, 9):  # made, then at hand
        _result(_code(amount))
        made = native.compile_kernel(parse_kernel(_code(amount)), quick=True)
        made.load(lambda: parse_kernel(_code(8)))
        assert not set(made.outlined) & set(runtime._recipes)


def test_functions_are_made_at_once_and_found_by_name(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *rest = (MemoryAccess("load", "global", 64, size).name for size in (4, 8, 16))
    (alone,) = runtime._objects([first], cache)
    (others,) = runtime._objects(rest, cache)
    assert (alone.names, others.names) == ((first,), tuple(rest))
    assert len(list(cache.entries("functions"))) == 2
    monkeypatch.setattr(runtime, "_compile", _never)
    assert list(runtime._objects([rest[0], first, *rest], cache)) == [others, alone]
    for entry in cache.entries("functions"):
        entry.path.unlink()
    with pytest.raises(AssertionError):
        list(runtime._objects([first], cache))


def test_damaged_entries_are_made_again(cache: DiskCache) -> None:
    wanted = _result(_code(7))
    for entry in list(cache.entries()):
        content = bytearray(entry.path.read_bytes())
        content[-1] ^= 1
        entry.path.write_bytes(content)
    assert _result(_code(7)) == wanted
    (entry,) = cache.entries("emulate")
    stored = cache.get(entry.path.stem)
    assert native.Compiled.unpack(stored) is not None


@pytest.mark.parametrize("value", [None, 1, {}, {"descriptor": {}}, {"target": "gfx942"}])
def test_entries_of_another_shape_do_not_count(value: object) -> None:
    assert native.Compiled.unpack(value) is None


def test_entries_come_back_as_they_were() -> None:
    made = native.compile_kernel(parse_kernel(_code(1)))
    again = native.Compiled.unpack(made.pack())
    assert again == replace(made, descriptor=again.descriptor if again else made.descriptor)
    assert again is not None
    assert again.descriptor == made.descriptor


def test_errors_are_worded_from_cached_code(cache: DiskCache) -> None:
    from wavecast.emulate.errors import ExecutionError

    (code,) = load(assembly("gfx942", "\tglobal_store_dword v1, v0, s[10:11]\n"), "gfx942")
    for _ in range(2):
        with pytest.raises(ExecutionError, match="'global_store_dword v1, v0"):
            _result(code)
