"""For the `check.py` of chapters: the learner's file as a module, and which sizes to take."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def learner() -> ModuleType:
    """The file that the first argument names, imported. Its launches use the name `cuda`."""
    path = sys.argv[1]
    specification = importlib.util.spec_from_file_location("kernel", path)
    if specification is None or specification.loader is None:
        raise SystemExit(f"not a Python file: {path}")
    module = importlib.util.module_from_spec(specification)
    sys.modules["kernel"] = module
    specification.loader.exec_module(module)
    return module


def small() -> bool:
    """Whether results are compared, on sizes that the emulator executes in seconds."""
    return "--small" in sys.argv[2:]
