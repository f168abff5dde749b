"""Work and bounds: the least time a launch can take on a device."""

from wavecast.model.bounds import Ceiling, Roofline, Work
from wavecast.model.roofline import roofline
from wavecast.model.work import work

__all__ = ["Ceiling", "Roofline", "Work", "roofline", "work"]
