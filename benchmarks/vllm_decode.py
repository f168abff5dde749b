"""What a token costs through vLLM's engine on an emulated GPU.

    python benchmarks/vllm_decode.py [--batch 1 8] [--hidden 512] [--tokens 16] [--cold]

A Llama of three layers with random weights is saved, and generates; the time from the first token
of the last sequence to the end is divided by the tokens of it, for every number of sequences. With
`--cold` no kernel is in a cache before. Processor time, of all threads and of compilers, is beside
wall time: on a loaded machine it is the one that compares.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, Final

PROMPT: Final = list(range(10, 42))


def save_llama(folder: Path, hidden: int, layers: int) -> None:
    """Write a Llama of `layers` layers of width `hidden` with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(1, hidden // 256),
        vocab_size=4096,
        max_position_embeddings=512,
    )
    model: Any = transformers.LlamaForCausalLM(config)
    model.to(torch.bfloat16).save_pretrained(folder)


class Clock:
    """Wall and processor seconds since a start, with those of child processes that ended."""

    def __init__(self) -> None:
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        usages = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in usages)

    def read(self) -> tuple[float, float]:
        """(wall, processor)."""
        now = self._now()
        return now[0] - self._start[0], now[1] - self._start[1]


def measure(folder: Path, batches: list[int], tokens: int) -> dict[str, Any]:
    """Seconds of wall and processor time to the first tokens, and milliseconds for a token of each
    number of sequences."""
    clock = Clock()
    import vllm

    llm = vllm.LLM(
        str(folder), skip_tokenizer_init=True, dtype="bfloat16", max_model_len=256,
        max_num_seqs=max(batches), enforce_eager=True,
    )  # fmt: skip

    def generate(sequences: int, count: int) -> Any:
        sampling = vllm.SamplingParams(
            temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False
        )
        prompts = [{"prompt_token_ids": [one + 3, *PROMPT]} for one in range(sequences)]
        return llm.generate(prompts, sampling, use_tqdm=False)

    generate(max(batches), 2)
    found: dict[str, Any] = {"first": clock.read(), "token": {}}
    for sequences in batches:
        generate(sequences, 3)
        clock = Clock()
        generate(sequences, 2)
        short, clock = clock.read(), Clock()
        generate(sequences, 2 + tokens)
        long = clock.read()
        found["token"][sequences] = [
            1e3 * (one - other) / (tokens * sequences)
            for one, other in zip(long, short, strict=True)
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Tokens through vLLM on an emulated GPU.")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--cold", action="store_true", help="start without cached kernels")
    options = parser.parse_args()
    os.environ.update(
        WAVECAST_VLLM=options.arch, VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.cold:
            os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
            os.environ["WAVECAST_CACHE_DIR"] = str(folder / "wavecast")
        save_llama(folder / "model", options.hidden, options.layers)
        found = measure(folder / "model", options.batch, options.tokens)
    print(json.dumps(found))
    wall, processor = found["first"]
    print(f"first tokens: {wall:.1f} s, {processor:.1f} s of processor time")
    for sequences, (wall, processor) in found["token"].items():
        print(f"{sequences} sequences: {wall:.1f} ms a token, {processor:.1f} ms of processor time")


if __name__ == "__main__":
    main()
