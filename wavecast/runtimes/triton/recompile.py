"""A captured kernel compiled again, from its Triton IR and with other options, in a fork.

Results are entries of the cache (kind `recompiled`), so a process that explains a kernel once more
does not import Triton.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.triton import compiled_again
from wavecast.errors import CompileError
from wavecast.runtimes.devices import facts_of
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import installation, wire

_ALWAYS: Final = "TRITON_ALWAYS_COMPILE"
_SETTINGS: Final = ("TRITON_", "AMDGCN_", "LLVM_", "MLIR_", "DISABLE_", "ENABLE_", "USE_")
"""Beginnings of the names of variables that change what Triton compiles."""


def recompile_kernel(
    code: CodeObject, text: str, options: Mapping[str, object], device: Device
) -> CodeObject:
    """The kernel compiled from `text` (TTIR) with its options and those that differ.

    Parameters and their offsets stay: the text must declare the same ones. Raises CompileError.
    """
    all_options = {**code.options, **options}
    store, entry = DiskCache(), _key(code, text, all_options)
    hit = store.get(entry) if entry else None
    if isinstance(hit, dict):
        return wire.decode_code(hit)
    result = _compile(code, text, all_options, device)
    if entry:
        store.put(entry, wire.encode_code(result))
    return result


def _key(code: CodeObject, text: str, all_options: Mapping[str, object]) -> str:
    """The entry of a result; "" where Triton is told to compile always, or is not installed."""
    installed = installation.identity()
    settings = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
    if not installed or _ALWAYS in settings:
        return ""
    options = {name: repr(value) for name, value in all_options.items()}
    return digest.key("recompiled", installed, settings, wire.encode_code(code), text, options)


def _compile(
    code: CodeObject, text: str, all_options: Mapping[str, object], device: Device
) -> CodeObject:
    import triton

    from wavecast.runtimes.triton import isolation
    from wavecast.runtimes.triton.driver import gpu_target

    patches = Patches()
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source = Path(folder) / f"{code.kernel}.ttir"
        source.write_text(text, encoding="utf-8")
        isolation.install(patches)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the user's compilation, already shown
                kernel = triton.compile(
                    str(source), gpu_target(facts_of(device)), dict(all_options)
                )
        except CompileError:
            raise
        except Exception as error:  # of Triton's passes: any type
            message = " ".join(str(error).split()) or type(error).__name__
            raise CompileError(f"{code.kernel}: {message}") from error
        finally:
            patches.restore()
    return compiled_again(kernel, code)


__all__ = ["recompile_kernel"]
