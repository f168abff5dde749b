"""The version of this package, and the folder it is imported from."""

from pathlib import Path

__version__ = "0.1.0"

IMPORT_FOLDER = Path(__file__).resolve().parent.parent
"""What `sys.path` needs for `import wavecast` in another process."""

__all__ = ["IMPORT_FOLDER", "__version__"]
