"""The compiler's decisions: what each pass does to a kernel, which alternatives there are, and what
they cost. Settings that a search found are loaded with `load`."""

from wavecast.lab.saved import SavedSettings, load

__all__ = ["SavedSettings", "load"]
