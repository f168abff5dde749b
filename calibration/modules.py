"""Errors of predicted whole modules.

    python -m calibration.modules DATA/systems/whole_models_older.parquet

The models are made by transformers from their sizes (no weights), in fp32, with attention as three
operators, as transformers of 2023 ran them. Nothing is fitted. The baseline is the time of the
roofline (FLOPs and bytes of all kernels at datasheet rates) times one constant per GPU: the median
of measured / roofline over the other models.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import torch

from wavecast.arch.systems import system
from wavecast.errors import WavecastError
from wavecast.perfmodel.roofline import roofline
from wavecast.runtimes.torch_graph import module_graph
from wavecast.systems.sources.answer import answer
from wavecast.systems.sources.calls import ModuleGraph

GPUS: Final = {"MI100": "mi100", "A100-PCIe-80GB": "a100", "A100-PCIe-40GB": "a100",
               "A100-SXM-40GB": "a100"}  # fmt: skip
"""GPU of the data -> device. The A100s of 40 GB and on PCIe have lower clocks and bandwidth than
the device has; no other is known."""


def _gpt(width: int, depth: int, heads: int) -> Callable[[], Any]:
    def make() -> Any:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(
            n_embd=width, n_layer=depth, n_head=heads, n_positions=2048,
            attn_implementation="eager", use_cache=False,
        )  # fmt: skip
        return GPT2LMHeadModel(config)

    return make


def _opt() -> Any:
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(
        hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, ffn_dim=8192,
        word_embed_proj_dim=2048, attn_implementation="eager", use_cache=False,
    )  # fmt: skip
    return OPTForCausalLM(config)


def _bert() -> Any:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
        attn_implementation="eager",
    )  # fmt: skip
    return BertForMaskedLM(config)


MODELS: Final[dict[str, Callable[[], Any]]] = {
    "bert_large": _bert,
    "gpt2_large": _gpt(1280, 36, 20),
    "gpt3_27": _gpt(2560, 32, 32),
    "opt_13": _opt,
}
"""The dense models whose sizes are published. `gpt3_xl` is left out: its measured times are those
of `gpt3_27`, so its sizes are not those of the paper (with which the error is 99 %)."""


@functools.cache
def graph(model: str, batch: int, length: int, *, train: bool) -> ModuleGraph:
    """The calls of a model for a batch of sequences."""
    with torch.device("meta"):
        module = MODELS[model]().train(train)
        tokens = torch.zeros(batch, length, dtype=torch.long)
    return module_graph(module, {"input_ids": tokens}, train=train, name=model)


def predicted(row: pd.Series, device: str) -> dict[str, float]:
    """Seconds of the prediction, its interval, and of the roofline of the same kernels."""
    train = row.phase == "train"
    batch, length = int(row.batch_or_concurrency), int(row.isl)
    found = answer(graph(row.model, batch, length, train=train), system(device))
    floors = [
        roofline(one.priced.node.op.work(), found.device).floor_seconds for one in found.times
    ]
    return {
        "predicted": found.total.value,
        "low": found.total.low,
        "high": found.total.high,
        "roofline": sum(floor for floor in floors if floor),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--gpu", action="append", choices=tuple(GPUS))
    given = parser.parse_args()
    rows = pd.read_parquet(given.data)
    rows = rows[rows.model.isin(MODELS) & rows.gpu.isin(given.gpu or GPUS) & (rows.n_gpus == 1)]
    whole = (rows.framework == "pytorch eager") & (rows.metric == "e2e_latency")
    rows = rows[whole].copy()
    rows["seconds"] = rows.value / 1e3
    found = []
    for _, row in rows.iterrows():
        try:
            found.append({**row, **predicted(row, GPUS[str(row.gpu)])})
        except WavecastError as error:
            print(f"{row.model} {row.phase} on {row.gpu}: {error}")
    table = pd.DataFrame(found)
    table["ratio"] = np.log(table.predicted / table.seconds)
    table["floor"] = np.log(table.seconds / table.roofline)
    table["baseline"] = 0.0
    for index, row in table.iterrows():
        others = table[(table.gpu == row.gpu) & (table.model != row.model)]
        constant = others["floor"].median() if len(others) else 0.0
        table.loc[index, "baseline"] = constant - row["floor"]  # type: ignore[index]
    table["covered"] = (table.low <= table.seconds) & (table.seconds <= table.high)
    for name in ("gpu", "model"):
        print(_errors(table, [name, "phase"]).to_string())


def _errors(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Median errors in per cent, bias, and the share of measurements in the interval."""
    groups = table.groupby(by)
    per_cent = 100 * np.expm1(table[["ratio", "baseline"]].abs())
    errors = per_cent.groupby([table[name] for name in by]).median().round(1)
    errors.columns = ["error %", "baseline %"]
    errors["predicted / measured"] = np.exp(groups.ratio.median()).round(2)
    errors["in interval %"] = (100 * groups.covered.mean()).round(0)
    errors["rows"] = groups.size()
    return errors


if __name__ == "__main__":
    main()
