"""Answers of aiconfigurator to the questions of `beside_aiconfigurator`, in its own environment."""

from __future__ import annotations

import json
import sys
import time
from contextlib import redirect_stdout

from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]


def answer(run: dict) -> dict:
    """The run with seconds, or why there are none."""
    question = dict(run["question"])
    experts = question.pop("moe_ep_size")
    if "Llama" in question["model_path"]:
        question["gemm_quant_mode"] = "fp8" if run["dtype"] == "fp8" else "nvfp4"
    else:
        question |= {"moe_tp_size": question["tp_size"] // experts, "moe_ep_size": experts}
        if run["dtype"] == "mxfp4":
            question |= {"gemm_quant_mode": "nvfp4", "moe_quant_mode": "nvfp4"}
    if question["backend_name"] == "trtllm":
        question["kvcache_quant_mode"] = "fp8"
    begin = time.perf_counter()
    seconds, why = None, ""
    try:
        seconds = float(getattr(cli_estimate(**question), run["metric"])) / 1e3
    except Exception as error:
        why = f"{type(error).__name__}: {error}"[:100]
    took = time.perf_counter() - begin
    return {**run, "aiconfigurator": seconds, "why": why, "aiconfigurator_took": took}


with redirect_stdout(sys.stderr):
    ANSWERS = [answer(run) for run in json.load(sys.stdin)]
print(json.dumps(ANSWERS))
