"""Speculative decoding: a draft proposes tokens, one step of the model verifies them.

A draft of `tokens` tokens is accepted up to the first one that the model does not agree with. Each
is accepted with the probability of its request; requests differ by a beta distribution. The model
adds one token itself, so that a step yields 1 to `tokens` + 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.errors import UnknownName, UsageError

METHODS: Final = ("mtp", "eagle", "ngram")
"""`mtp`: one more layer of the model; `eagle`: a dense layer of its width; `ngram`: a look-up."""
_MOST: Final = 16


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Mean and standard deviation over requests of the probability that a drafted token is
    accepted, and where it comes from."""

    mean: float
    deviation: float
    source: str


ACCEPTANCES: Final[Mapping[str, Acceptance]] = MappingProxyType(
    {
        "coding": Acceptance(
            0.80,
            0.06,
            "accepted lengths of three drafted tokens, 2.49 to 3.01, of seven model and mode pairs "
            "on SPEED-Bench coding (InferenceX, golden_al_distribution)",
        ),
        "general": Acceptance(
            0.81,
            0.07,
            "five public runs: DeepSeek-R1 81 to 82 % of first drafted tokens (vllm-project/vllm "
            "pull request 12755); accepted lengths of three tokens, as equal probabilities: "
            "DeepSeek-V4-Flash 2.60 and DeepSeek-V3.2 2.96, Qwen3-Next 3.39 on gsm8k (ROCm/ATOM "
            "pull requests 1372, 1216), DeepSeek-V4-Pro 3.00 on random prompts in a chat template "
            "(NVIDIA/srt-slurm pull request 73)",
        ),
    }
)
"""By class of workload."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """`tokens` drafted per step by `method` (of `METHODS`), each accepted with probability
    `acceptance`; `deviation` over requests."""

    method: str
    tokens: int
    acceptance: float = ACCEPTANCES["coding"].mean
    deviation: float = ACCEPTANCES["coding"].deviation

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName("method of speculative decoding", self.method, METHODS)
        if not 1 <= self.tokens <= _MOST:
            raise UsageError(f"{self.tokens} drafted tokens, not 1 to {_MOST}")
        if not 0 <= self.acceptance <= 1:
            raise UsageError(f"an acceptance of {self.acceptance:g}, not 0 to 1")
        if not 0 <= self.deviation < 0.5:
            raise UsageError(f"a standard deviation of {self.deviation:g} of the acceptance")

    @property
    def length(self) -> float:
        """Tokens that a step yields on average, where all requests have the mean acceptance."""
        return float(sum(self.acceptance**count for count in range(self.tokens + 1)))

    def sample(self, random: np.random.Generator, count: int) -> NDArray[np.float64]:
        """The acceptance of `count` requests, shape (count,)."""
        mean, variance = self.acceptance, self.deviation**2
        most = mean * (1 - mean)
        if variance == 0 or most == 0:
            return np.full(count, mean)
        weight = max(most / variance - 1, 0.1)
        return random.beta(mean * weight, (1 - mean) * weight, count)


def speculation(text: str, acceptance: float | None = None, workload: str = "") -> Speculation:
    """`mtp:3` or `eagle:5` with an acceptance, else that of a class of workload. Raises UsageError
    and UnknownName."""
    match = re.fullmatch(r"([a-z]+)(?::(\d{1,3}))?", text.lower())
    if match is None:
        raise UsageError(f"{text!r} is not METHOD:TOKENS, such as mtp:3")
    if workload and workload not in ACCEPTANCES:
        raise UnknownName("class of workload", workload, ACCEPTANCES)
    distribution = ACCEPTANCES[workload or "coding"]
    return Speculation(
        match[1],
        int(match[2] or 1),
        distribution.mean if acceptance is None else acceptance,
        distribution.deviation if acceptance is None else 0.0,
    )


__all__ = ["ACCEPTANCES", "METHODS", "Acceptance", "Speculation", "speculation"]
