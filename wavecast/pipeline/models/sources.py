"""Models of every source that is not a Hugging Face configuration, by what the user gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint
from wavecast.systems.sources.calls import ModuleGraph
from wavecast.systems.sources.described import DescribedModel, read_description

_DESCRIPTIONS = (".yaml", ".yml")
_PROGRAM = ".pt2"


def is_source(model: object) -> bool:
    """Whether `model` is a module, a program, or a text like `script.py:factory`, `program.pt2` or
    `model.yaml`, and not the name of a configuration."""
    if isinstance(model, str | Path):
        text = str(model)
        return ".py:" in text or text.endswith((".py", _PROGRAM, *_DESCRIPTIONS))
    return True


def graph(
    model: Any, inputs: Any = None, *, train: bool = False, optimizer: str = ""
) -> ModuleGraph | DescribedModel:
    """The graph of a module with its `inputs`, of an `ExportedProgram`, or of what a text names.

    Raises UsageError for another object and for options that a source does not take, MissingTool
    without PyTorch where it is needed, and as the readers of `wavecast.runtimes.torch_graph`
    and `described`.
    """
    text = str(model) if isinstance(model, str | Path) else ""
    if text.endswith(_DESCRIPTIONS):
        _no_training(train, optimizer, "a YAML file lists the kernels of all phases itself")
        return read_description(text)
    torch_graph = _torch_graph()
    torch_module: Any = model
    if text.endswith(_PROGRAM):
        _no_training(train, optimizer, "an exported program has a forward pass only")
        return torch_graph.archive_graph(text)
    if text:
        return torch_graph.script_graph(*_factory(text), train=train, optimizer=optimizer)
    if hasattr(model, "graph_signature"):
        _no_training(train, optimizer, "an exported program has a forward pass only")
        return torch_graph.exported_graph(model)
    return torch_graph.module_graph(
        torch_module, _require_inputs(model, inputs), train=train, optimizer=optimizer
    )


@contextmanager
def open_module(model: Any, inputs: Any = None) -> Iterator[tuple[Any, Any, str]]:
    """The module of a source, its inputs and a name, to be compiled in the block.

    Raises UsageError for a source without code, MissingTool without PyTorch, and as
    `script_module`.
    """
    text = str(model) if isinstance(model, str | Path) else ""
    if text.endswith((*_DESCRIPTIONS, _PROGRAM)) or hasattr(model, "graph_signature"):
        raise UsageError(
            f"{text or 'an exported program'}: torch.compile needs a module",
            hint="--engine fusion-rule applies a rule to exported programs",
        )
    if text:
        with _torch_graph().script_module(*_factory(text)) as script:
            yield script
    else:
        yield model, _require_inputs(model, inputs), type(model).__name__


def _torch_graph() -> Any:
    try:
        from wavecast.runtimes import torch_graph
    except ImportError as error:
        raise MissingTool(
            f"PyTorch reads modules and programs: {error}", hint=install_hint("torch")
        ) from error
    return torch_graph


def _factory(text: str) -> tuple[str, str]:
    path, _, factory = text.rpartition(":")
    if not path or not factory:
        raise UsageError(f"{text}: no function", hint=f"give {text}:factory")
    return path, factory


def _require_inputs(model: Any, inputs: Any) -> Any:
    if inputs is None:
        raise UsageError(
            f"a {type(model).__name__} needs inputs", hint="wavecast.model(module, inputs)"
        )
    return inputs


def _no_training(train: bool, optimizer: str, why: str) -> None:
    if train or optimizer:
        raise UsageError(f"no training: {why}")


__all__ = ["graph", "is_source", "open_module"]
