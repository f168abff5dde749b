"""Programs that run with PyTorch's functions answered by the library: `with substituted(): …`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

from wavecast.frameworks.torch import library
from wavecast.frameworks.torch.replaced import Done, Left, Replaced
from wavecast.frameworks.torch.substitutes import SUBSTITUTES, substitute_of, why_not


class _Substituting(TorchFunctionMode):
    def __init__(self, account: Replaced) -> None:
        super().__init__()
        self._account = account

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        keywords = dict(kwargs or {})
        if func not in SUBSTITUTES:
            return func(*args, **keywords)
        substitute, name = substitute_of(func, args, keywords), func.__name__
        reason = why_not(func, args, keywords)
        if reason:
            self._account.left.append(Left("", name, reason))
            return func(*args, **keywords)
        self._account.done.append(Done("", name, substitute.operator))
        return substitute.call(*args, **keywords)


@contextlib.contextmanager
def substituted() -> Iterator[Replaced]:
    """Answer PyTorch's functions (`substitutes.SUBSTITUTES`) by operators of the library inside the
    block, wherever they are called from. What was answered, and what not, is in the result."""
    library.install()
    account = Replaced()
    with _Substituting(account):
        yield account


__all__ = ["substituted"]
