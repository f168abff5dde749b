"""Energy and cost of served tokens, from the power and the price of a GPU that the user gives."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.errors import UsageError
from wavecast.systems.answer import ModelAnswer, ServingAnswer
from wavecast.systems.intervals import Interval

MILLION = 1e6
_JOULES_PER_KWH = 3.6e6
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Economy:
    """Watts and price per hour of one GPU with its share of the machine; None where not given."""

    power: float | None = None
    price: float | None = None

    def __post_init__(self) -> None:
        for name in ("power", "price"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e9:
                raise UsageError(f"the {name} of a GPU is {value:g}, not a positive number")


@dataclass(frozen=True, slots=True)
class TokenCost:
    """What a million output tokens take: `energy` in kWh, `price` in the currency of the price. The
    GPUs are paid for, and take their power, as long as the load runs."""

    energy: Interval | None
    price: Interval | None


def token_cost(answer: ModelAnswer, serving: ServingAnswer, economy: Economy) -> TokenCost:
    """The cost of the output tokens of a load on the GPUs that the model takes."""
    gpus, rate = answer.parallel.gpus, serving.output_rate

    def scale(per_second: float | None) -> Interval | None:
        if per_second is None:
            return None
        seconds = MILLION * gpus * per_second
        return Interval(seconds / rate.value, seconds / rate.high, seconds / rate.low, rate.basis)

    return TokenCost(
        scale(None if economy.power is None else economy.power / _JOULES_PER_KWH),
        scale(None if economy.price is None else economy.price / _SECONDS_PER_HOUR),
    )


__all__ = ["MILLION", "Economy", "TokenCost", "token_cost"]
