"""What the hardware is: devices, their facts with sources, occupancy limits, rates, and costs.

Devices are TOML files under `devices/`, facts that a family shares under `families/`, instruction
costs under `costs/`, citations in `sources.toml`, and the fields a device may have in `fields.csv`.
"""

from __future__ import annotations

from wavecast.arch.capability import Capabilities, capabilities
from wavecast.arch.cost import COST_CLASSES, PIPES, Cost
from wavecast.arch.device import Device
from wavecast.arch.limits import OccupancyLimits
from wavecast.arch.quantity import STATUSES, Alternative, Quantity
from wavecast.arch.rates import DTYPES, VECTOR_DTYPES
from wavecast.arch.reader import citations
from wavecast.arch.select import Resolution, devices, load, nearest, resolve, vendor

__all__ = [
    "COST_CLASSES",
    "DTYPES",
    "PIPES",
    "STATUSES",
    "VECTOR_DTYPES",
    "Alternative",
    "Capabilities",
    "Cost",
    "Device",
    "OccupancyLimits",
    "Quantity",
    "Resolution",
    "capabilities",
    "citations",
    "devices",
    "load",
    "nearest",
    "resolve",
    "vendor",
]
