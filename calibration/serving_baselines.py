"""Baselines of serving runs: what a prediction has to beat (`calibration.systems`).

roofline   the roofline of the weights times the median of measured / roofline of the other
           models on the GPU; of the other GPUs where no other model ran on it
nearest    the measured time of the nearest configuration of another model or another GPU: of
           equal metric, by the logarithms of lengths, requests at once, GPUs, parameters
           that a token uses, and bandwidth and FLOP/s of the GPU
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wavecast.arch import Device
from wavecast.benchmarking.accuracy.baselines import roofline_seconds
from wavecast.systems import huggingface
from wavecast.systems.op import ServedModel

NAMES = ("roofline", "nearest")


def of_run(op: ServedModel, device: Device, seconds: float) -> tuple[float, tuple[float, ...]]:
    """log(measured / roofline) of a run, and the coordinates of its configuration."""
    bound = roofline_seconds(op, device)
    load, how = op.load, op.deployment
    pools = how.disaggregation
    gpus = pools.gpus(how.parallel) if pools else how.parallel.gpus
    name, values, *_ = huggingface.load(op.model)
    active = huggingface.read(values, name).active_parameters
    peak = device.peak_flops("bf16")
    chip = (float(device.facts.integer("mem_bw", "B/s")), peak.number if peak else math.nan)
    sizes = (load.prompt, load.output, load.concurrency, gpus, active, *chip)
    where = tuple(math.log(max(size, 1e-9)) for size in sizes)
    return math.log(seconds / bound) if bound else math.nan, where


def residuals(found: pd.DataFrame) -> pd.DataFrame:
    """log(measured / baseline) of every run, a column per name of `NAMES`; NaN without."""
    lines = pd.DataFrame(math.nan, index=found.index, columns=list(NAMES))
    for _, part in found.groupby("metric"):
        lines.loc[part.index, "roofline"] = _scaled(part)
        lines.loc[part.index, "nearest"] = _nearest(part)
    return lines


def _scaled(part: pd.DataFrame) -> NDArray[np.float64]:
    result = np.full(len(part), math.nan)
    for (gpu, model), own in part.groupby(["gpu", "model"]):
        others = part[(part.gpu == gpu) & (part.model != model)]
        if others.empty:
            others = part[part.gpu != gpu]
        if not others.empty:
            at = part.index.get_indexer(own.index)
            result[at] = own.roofline.to_numpy() - others.roofline.median()
    return result


def _nearest(part: pd.DataFrame) -> NDArray[np.float64]:
    points, times = np.array(part.configuration.to_list()), np.log(part.seconds.to_numpy())
    group = (part.gpu + " " + part.model).to_numpy()
    result = np.full(len(part), math.nan)
    for index, point in enumerate(points):
        distance = ((points - point) ** 2).sum(1)
        distance[group == group[index]] = math.inf
        if np.isfinite(distance).any():
            result[index] = times[index] - times[int(distance.argmin())]
    return result


__all__ = ["NAMES", "of_run", "residuals"]
