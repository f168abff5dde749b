"""A captured kernel compiled again, from its Triton IR and with other options, in a fork."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.triton import compiled_again
from wavecast.errors import CompileError
from wavecast.integrations.devices import facts_of
from wavecast.integrations.patching import Patches


def recompiled(
    code: CodeObject, text: str, options: Mapping[str, object], device: Device
) -> CodeObject:
    """The kernel compiled from `text` (TTIR) with its options and those that differ.

    Parameters and their offsets stay: the text must declare the same ones. Raises CompileError.
    """
    import triton

    from wavecast.integrations.triton import isolation
    from wavecast.integrations.triton.driver import gpu_target

    patches = Patches()
    wanted = {**code.options, **options}
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source = Path(folder) / f"{code.kernel}.ttir"
        source.write_text(text, encoding="utf-8")
        isolation.install(patches)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the user's compilation, already shown
                kernel = triton.compile(str(source), gpu_target(facts_of(device)), wanted)
        except CompileError:
            raise
        except Exception as error:  # of Triton's passes: any type
            said = " ".join(str(error).split()) or type(error).__name__
            raise CompileError(f"{code.kernel}: {said}") from error
        finally:
            patches.restore()
    return compiled_again(kernel, code)


__all__ = ["recompiled"]
