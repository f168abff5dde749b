"""Options of verbs: the values that they take, and that commands have the same ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from wavecast.api.arch import FactOptions
from wavecast.api.bench import MODES as BENCH_MODES
from wavecast.api.bench import BenchOptions
from wavecast.api.cache import CacheClearOptions
from wavecast.api.compare import CompareOptions
from wavecast.api.diff import AssemblyRows, DiffOptions
from wavecast.api.explain import MODES as EXPLAIN_MODES
from wavecast.api.explain import ExplainOptions
from wavecast.api.export import ExportOptions
from wavecast.api.gate import GateOptions
from wavecast.api.history import HistoryOptions
from wavecast.api.learn import NotebookOptions
from wavecast.api.machines import Detail
from wavecast.api.measured import StoreOptions
from wavecast.api.model import MODES as MODEL_MODES
from wavecast.api.model import ServingOptions
from wavecast.api.ops import MODES as OPS_MODES
from wavecast.api.ops import OperatorOptions
from wavecast.api.profile import ProfileOptions
from wavecast.api.run import RunOptions
from wavecast.api.store import ImportOptions, RunsExportOptions
from wavecast.api.tune import MODES as TUNE_MODES
from wavecast.api.tune import TopRows, TuneOptions
from wavecast.api.validate import MODES as VALIDATE_MODES
from wavecast.api.validate import ScoreOptions
from wavecast.api.vllm_report import VllmOptions
from wavecast.cli.arch import command as arch
from wavecast.cli.bench import command as bench
from wavecast.cli.cache import command as cache
from wavecast.cli.compare import command as compare
from wavecast.cli.diff import command as diff
from wavecast.cli.explain import command as explain
from wavecast.cli.export import command as export
from wavecast.cli.gate import command as gate
from wavecast.cli.history import command as history
from wavecast.cli.lab import VERBS as LAB
from wavecast.cli.learn import command as learn
from wavecast.cli.model import command as model
from wavecast.cli.ops import command as ops
from wavecast.cli.profile import command as profile
from wavecast.cli.run import command as run
from wavecast.cli.schema import command as schema
from wavecast.cli.store import command as store
from wavecast.cli.tune import command as tune
from wavecast.cli.validate import command as validate
from wavecast.cli.vllm_report import command as vllm_report
from wavecast.errors import UnknownName, UsageError
from wavecast.options import Options, option
from wavecast.options.values import (
    ANY,
    FILE,
    TEXT,
    Counts,
    Dimensions,
    Flag,
    Integers,
    NameList,
    Numbers,
    OneOf,
    Regex,
    ScaledNumber,
    Several,
)


@dataclass(frozen=True, kw_only=True)
class Cut(Options):
    EXCLUSIVE: ClassVar = (("size", "count"),)
    NEEDS: ClassVar = {"glue": "size"}
    NEEDS_ONE_OF: ClassVar = {"dry": ("glue", "count")}

    size: int = option(4, "Size of a part.", values=Integers(1))
    count: int | None = option(None, "Number of parts.", "-n", "--number", values=Integers(1))
    glue: bool = option(False, "Glue the parts.")
    dry: int = option(0, "Hours to dry.")


@dataclass(frozen=True, kw_only=True)
class Pack(Options):
    REQUIRED: ClassVar = ("box",)

    box: str = option("", "The box.", metavar="BOX")


@dataclass(frozen=True, kw_only=True)
class Paint(Options):
    paint: str = option("", "Paint instead.")
    coats: int = option(1, "Coats of paint.")


@pytest.mark.parametrize(
    ("values", "value", "taken"),
    [
        (Integers(1), "7", 7),
        (Integers(0, 3), 3, 3),
        (Numbers(0, 1), "0.5", 0.5),
        (Numbers(0, 1), 1, 1),
        (OneOf(("a", "b")), "b", "b"),
        (NameList(), "a, b,", ("a", "b")),
        (NameList(), ["a"], ("a",)),
        (Counts(), "1,4..16", (1, 4, 8, 16)),
        (Counts(), "4..10", (4, 8, 10)),
        (Counts(), 3, (3,)),
        (Dimensions(), "8x2", (8, 2, 1)),
        (Dimensions(), (5,), (5, 1, 1)),
        (ScaledNumber(), "2.5G", 2.5e9),
        (Several(FILE), "a.toml", (Path("a.toml"),)),
        (Several(TEXT), ["a", "b"], ("a", "b")),
        (ANY, "-O3", "-O3"),
        (Regex(), "a.*", "a.*"),
    ],
)
def test_values(values, value, taken) -> None:
    assert values.take(value) == taken


@pytest.mark.parametrize(
    ("values", "value", "message"),
    [
        (Integers(1), "0", "'0' is not an integer, 1 or more"),
        (Integers(0, 3), 4, "4 is not an integer, 0 to 3"),
        (Integers(0), True, "True is not an integer"),
        (Integers(0), 1.5, "1.5 is not an integer"),
        (Numbers(0, 1, above=True), 0, "0 is not a number, above 0 and 1 or less"),
        (Numbers(0), "nan", "'nan' is not a number, 0 or more"),
        (Numbers(0), math.nan, "nan is not a number"),
        (OneOf(("a", "b")), "c", "'c' is not one of a, b"),
        (NameList(), ",", "no name in ','"),
        (Counts(), "4..1", "is not like 1,4,16 or 4..256"),
        (Counts(), 0, "0 is not an integer"),
        (Dimensions(), "0", "is not one to three positive integers"),
        (Dimensions(), (1, 1, 1, 1), "is not one to three positive integers"),
        (ScaledNumber(), "0", "is not a positive number"),
        (TEXT, "--other", "a value is missing before --other"),
        (Flag(), 1, "1 is not True or False"),
        (Regex(), "(", "is not a regular expression"),
    ],
)
def test_other_values_are_refused(values, value, message) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        values.take(value)


def test_messages_name_the_option() -> None:
    for wrong, message in (
        ({"count": 0}, "--number: 0 is not an integer, 1 or more"),
        ({"size": 2, "count": 2}, "--size and --number exclude each other"),
        ({"glue": True}, "--glue belongs to --size"),
        ({"size": 2, "dry": 1}, "--dry belongs to --glue or --number"),
    ):
        with pytest.raises(UsageError) as caught:
            Cut(**wrong)
        assert str(caught.value) == message
    with pytest.raises(UsageError) as caught:
        Pack()
    assert str(caught.value) == "--box is missing (BOX)"
    assert Pack(box="b").box == "b"
    assert Cut(size="2", glue=True, dry=1) == Cut(size=2, glue=True, dry=1)
    assert replace(Cut(size=2), size=3).size == 3
    with pytest.raises(UnknownName, match="unknown option 'sise'"):
        Cut.of({"sise": 1})


def test_modes_have_options_of_their_own() -> None:
    modes = {"paint": Paint}
    assert Cut.among(modes, {"size": 2}) == Cut(size=2)
    assert Cut.among(modes, {"paint": "red", "coats": "2"}) == Paint(paint="red", coats=2)
    for wrong, message in (
        ({"coats": 2}, "--coats belongs to --paint"),
        ({"paint": "red", "count": 2}, "--number does not apply to --paint"),
    ):
        with pytest.raises(UsageError, match=message):
            Cut.among(modes, wrong)
    with pytest.raises(UnknownName, match="unknown option 'colour'"):
        Cut.among(modes, {"colour": 1})


@pytest.mark.parametrize(
    ("command", "classes"),
    [
        (explain, (ExplainOptions, *EXPLAIN_MODES.values(), Detail)),
        (model, (ServingOptions, *MODEL_MODES.values(), Detail)),
        (profile, (ProfileOptions, Detail)),
        (diff, (DiffOptions, AssemblyRows)),
        (run, (RunOptions,)),
        (export, (ExportOptions,)),
        *((verb.command(), (verb.options, verb.show.view)) for verb in LAB),
        (tune, (TuneOptions, *TUNE_MODES.values(), TopRows)),
        (gate, (GateOptions,)),
        (arch, (FactOptions,)),
        (vllm_report, (VllmOptions,)),
        (ops, (OperatorOptions, *OPS_MODES.values())),
        (store.commands["list"], (StoreOptions,)),
        (store.commands["export"], (RunsExportOptions,)),
        (store.commands["import"], (ImportOptions,)),
        (store.commands["check"], (StoreOptions,)),
        (cache.commands["clear"], (CacheClearOptions,)),
        (learn.commands["notebook"], (NotebookOptions,)),
        (schema, ()),
        (validate, (ScoreOptions, *VALIDATE_MODES.values(), Detail)),
        (compare, (CompareOptions,)),
        (history, (HistoryOptions,)),
        (bench, (BenchOptions, *BENCH_MODES.values())),
    ],
)
def test_commands_have_the_options_and_no_others(command, classes) -> None:
    flags = {options.flag(name) for options in classes for name in options.described()}
    shown = {"--format", "--open", "--output", "--list", "--formats"}
    params = [param for param in command.params if param.param_type_name == "option"]
    assert {param.opts[-1] for param in params} - shown == flags - shown
    assert all(param.help for param in params if param.opts[-1] != "--format")
