"""The random numbers of an emulated GPU: those of a CPU generator, with states of 16 bytes.

The state of a GPU's generator is its seed and its offset, two int64 numbers, which programs read
and write. A CPU generator has no offset. Here an offset names a state that the CPU generator was
in; a pair of numbers that names none seeds it, so that equal states are followed by equal numbers.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, Final

import torch
from torch import Tensor

_STEP: Final = 4
"""Offsets are multiples of it: one call of Philox gives four numbers."""
_KEPT: Final = 16_384
"""States that offsets name, 5 KB each; the oldest are forgotten."""
_BYTES: Final = 16

State = tuple[int, int]
"""(seed, offset)"""


class CudaGenerator(torch._C.Generator):
    """What `torch.Generator(device="cuda")` is meanwhile. `cpu` makes the numbers; functions of
    PyTorch take this in its place (`mode.CudaOnCpu`)."""

    def __new__(cls, cpu: Any = None, gpu: int = 0) -> CudaGenerator:
        del cpu, gpu
        return super().__new__(cls)

    def __init__(self, cpu: Any = None, gpu: int = 0) -> None:
        super().__init__()
        self._gpu = gpu
        self.cpu = torch._C.Generator() if cpu is None else cpu
        self._seed: int = self.cpu.initial_seed()
        self._offset = 0
        self._states: OrderedDict[State, Tensor] = OrderedDict()
        self._named: dict[bytes, State] = {}
        self._remember((self._seed, 0), self.cpu.get_state())

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("cuda", self._gpu)

    def manual_seed(self, seed: int) -> CudaGenerator:
        """Seed the generator; its offset is 0."""
        self.cpu.manual_seed(int(seed))
        self._enter((self.cpu.initial_seed(), 0))
        return self

    def seed(self) -> int:
        """Seed the generator with a random number, which is returned."""
        seed = self.cpu.seed()
        self._enter((seed, 0))
        return seed

    def initial_seed(self) -> int:
        """The seed of the current state."""
        return self._current()[0]

    def get_offset(self) -> int:
        """The offset of the current state."""
        return self._current()[1]

    def set_offset(self, offset: int) -> CudaGenerator:
        """Continue with another offset of the same seed."""
        self._restore((self.initial_seed(), int(offset)))
        return self

    def get_state(self) -> Tensor:
        """Seed and offset, as 16 bytes."""
        numbers = [number - (1 << 64) * (number >= 1 << 63) for number in self._current()]
        return torch.tensor(numbers, dtype=torch.int64).view(torch.uint8)

    def set_state(self, state: Tensor) -> CudaGenerator:
        """Continue from a state of `get_state`. Raises RuntimeError for other tensors, as a GPU's
        generator does."""
        if state.dtype is not torch.uint8 or state.numel() != _BYTES:
            raise RuntimeError("RNG state is wrong size")
        seed, offset = state.contiguous().view(torch.int64).tolist()
        self._restore((seed % (1 << 64), offset))
        return self

    def clone_state(self) -> CudaGenerator:
        """Another generator in the same state."""
        state, content = self._current(), self.cpu.get_state()
        other = CudaGenerator(gpu=self._gpu)
        other.cpu.set_state(content)
        other._enter(state)
        return other

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, other: CudaGenerator) -> CudaGenerator:  # type: ignore[override]
        """Continue from the state of another generator."""
        state, content = other._current(), other.cpu.get_state()
        self.cpu.set_state(content)
        self._enter(state)
        return self

    def _current(self) -> State:
        """The pair that names the state the CPU generator is in."""
        content = self.cpu.get_state()
        state = self._named.get(_digest(content))
        if state is None:
            if self.cpu.initial_seed() != self._seeded:
                self._seed, self._offset = self.cpu.initial_seed(), 0
            state = self._seed, self._offset + _STEP
            self._remember(state, content)
        self._seed, self._offset = state
        return state

    def _enter(self, state: State) -> None:
        self._seed, self._offset = state
        self._remember(state, self.cpu.get_state())

    def _restore(self, state: State) -> None:
        content = self._states.get(state)
        if content is not None:
            self.cpu.set_state(content)
        elif state[1] == 0:
            self.cpu.manual_seed(state[0])
        else:
            text = f"{state[0]} {state[1]}".encode()
            self.cpu.manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:7]))
        self._enter(state)

    def _remember(self, state: State, content: Tensor) -> None:
        self._seeded = self.cpu.initial_seed()
        before = self._states.pop(state, None)
        if before is not None:
            self._named.pop(_digest(before), None)
        self._states[state] = content
        self._named[_digest(content)] = state
        if len(self._states) > _KEPT:
            _, oldest = self._states.popitem(last=False)
            self._named.pop(_digest(oldest), None)


def check_generator(generator: Any, *, is_gpu: bool) -> None:
    """Raises RuntimeError for a generator of the host where one of a GPU is needed (`is_gpu`), or
    the reverse. PyTorch compares no more than the kinds of devices (`check_generator` of
    ATen/core/Generator.h)."""
    if isinstance(generator, CudaGenerator) != is_gpu:
        wanted, other = ("cuda", "cpu") if is_gpu else ("cpu", "cuda")
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{other}'")


def _digest(content: Tensor) -> bytes:
    return hashlib.blake2b(content.numpy().tobytes(), digest_size=16).digest()


def replacements() -> dict[str, Any]:
    """Names of `torch.cuda` and what they are meanwhile. Tensors of the GPU are filled on the CPU,
    so its generator is the CPU's."""
    generator = CudaGenerator(torch.default_generator)

    def set_state(state: Any, device: Any = None) -> None:
        del device
        generator.set_state(state)

    def manual_seed(seed: int) -> None:
        generator.manual_seed(seed)

    return {
        "default_generators": (generator,),
        "manual_seed": manual_seed,
        "manual_seed_all": lambda seed: manual_seed(seed),
        "seed": lambda: generator.seed(),
        "seed_all": lambda: generator.seed(),
        "initial_seed": lambda: generator.initial_seed(),
        "get_rng_state": lambda *_, **__: generator.get_state(),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state": set_state,
        "set_rng_state_all": lambda states: set_state(states[0]),
    }


__all__ = ["CudaGenerator", "check_generator", "replacements"]
