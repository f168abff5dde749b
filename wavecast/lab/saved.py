"""The settings that a search found, in a file that programs load."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from wavecast import files
from wavecast.errors import InputError, UnknownName
from wavecast.json_objects import JsonObject, NonNegative, doc
from wavecast.json_schema import name_of


class SavedSetting(JsonObject):
    """How to compile one kernel for one device."""

    kernel: str
    target: str
    device: str
    compiler: str
    setting: Annotated[Mapping[str, Any], doc("values by axis")]
    options: Annotated[Mapping[str, Any], doc("keywords of the launch")]
    environment: Annotated[Mapping[str, str], doc("variables that Triton reads when it compiles")]
    ir: Annotated[str, doc("file with LLVM IR for triton.Config(ir_override=…), empty for none")]
    seconds: NonNegative
    seconds_before: NonNegative
    words: Annotated[Sequence[str], doc("options of the compiler of a HIP file")] = ()
    assembly: Annotated[
        str, doc("file with the new code of assembly or of a code object, empty for none")
    ] = ""
    code: Annotated[str, doc("file with the code object of that assembly, empty for none")] = ""

    @contextlib.contextmanager
    def compiling(self) -> Iterator[dict[str, Any]]:
        """Set the environment while the block compiles; the options of the launch."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield dict(self.options)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


class LabSettingsDocument(JsonObject, tag_field="schema", tag="wavecast.lab.settings/1"):
    """What `wavecast lab tune --output` writes and `wavecast.lab.load` reads."""

    entries: Sequence[SavedSetting]


SCHEMA: Final = name_of(LabSettingsDocument)


class SavedSettings:
    """The entries of a settings file."""

    def __init__(self, entries: Sequence[SavedSetting]) -> None:
        self.entries = tuple(entries)

    def find(self, kernel: str, target: str) -> SavedSetting | None:
        """The setting of a kernel for a target (`gfx942`) or device, None where there is none."""
        for entry in self.entries:
            if entry.kernel == kernel and target in (entry.target, entry.device):
                return entry
        return None


def load(path: str | Path) -> SavedSettings:
    """Read a settings file. Raises InputError."""
    try:
        document = files.parse_json(files.read_text(path))
        if document["schema"] != SCHEMA:
            raise UnknownName("schema", str(document["schema"]), [SCHEMA])
        entries = [SavedSetting(**entry) for entry in document["entries"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a settings file of wavecast lab ({error})") from None
    return SavedSettings(entries)


__all__ = ["SCHEMA", "LabSettingsDocument", "SavedSetting", "SavedSettings", "load"]
