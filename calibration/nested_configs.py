"""Measures which level of a configuration of several kinds of input ties the embedding of its text
to the output projection.

    python -m calibration.nested_configs [--write | --markdown]

Every type of transformers whose text is of a type that Wavecast reads is built without memory,
with `tie_word_embeddings` absent, true and false around and in the configuration of its text.
`--write` stores what decides in `wavecast/systems/config_nesting.csv`, `--markdown` prints the
table of `docs/configurations.md`.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from calibration.config_variants import base, class_defaults
from calibration.model_layers import REFUSED, quiet
from wavecast.systems import config_nesting, huggingface

TARGET = Path(__file__).parents[1] / "wavecast" / "systems" / "config_nesting.csv"
FIELD: Final = "tie_word_embeddings"
SETTINGS: Final = (None, True, False)
RULES: Final[Mapping[str, Callable[[Sequence[bool]], bool]]] = {
    "either": any,
    "outer": lambda values: values[0],
    "inner": lambda values: values[1],
    "never": lambda _: False,
}
"""What decides, of the values around and in the configuration of the text."""
NOT_BUILT: Final = (*REFUSED, ImportError, StrictDataclassError)
"""What the classes raise where their other parts need other sizes, or packages."""
_HEADS: Final = ("MULTIMODAL_LM", "IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "CAUSAL_LM")


def nested_types() -> Iterator[tuple[str, str]]:
    """Type and type of its text, of the types that have the text one level down."""
    for kind in CONFIG_MAPPING:
        try:
            with quiet():
                config = CONFIG_MAPPING[kind]()
                text = config.get_text_config(decoder=True)
        except NOT_BUILT:
            continue
        if text is getattr(config, "text_config", None) and text.model_type in huggingface.READERS:
            yield kind, text.model_type


def row(kind: str, text: str) -> tuple[str, str, str, str]:
    """A row of the table."""
    default = bool(class_defaults(kind).get(FIELD))
    return kind, text, rule(kind, text), str(default).lower()


def rule(kind: str, text: str) -> str:
    """What decides of a type; "unknown" where transformers does not build it here."""
    fields = class_defaults(kind), class_defaults(text)
    try:
        measured = {
            (o, i): tied(kind, text, o, i) for o, i in itertools.product(SETTINGS, SETTINGS)
        }
    except NOT_BUILT:
        return "unknown"
    values = {
        settings: [
            bool(default.get(FIELD)) if value is None else value
            for default, value in zip(fields, settings, strict=True)
        ]
        for settings in measured
    }
    for name, function in RULES.items():
        if all(function(values[key]) == is_tied for key, is_tied in measured.items()):
            return name
    return "unknown"


def tied(kind: str, text: str, outer: bool | None, inner: bool | None) -> bool:
    """Whether transformers ties the embedding of a small model with these values."""
    levels: list[dict[str, Any]] = [{"model_type": kind}, base(text)]
    for level, value in zip(levels, (outer, inner), strict=True):
        if value is not None:
            level[FIELD] = value
    with quiet(), torch.device("meta"):
        config = CONFIG_MAPPING[kind].from_dict({**levels[0], "text_config": levels[1]})
        model = _class(config)._from_config(config)
    return model.get_input_embeddings().weight is model.get_output_embeddings().weight


def _class(config: Any) -> Any:
    """The class that has the output projection."""
    kind = type(config)
    for head in _HEADS:
        classes = getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING", {})
        if kind in classes:
            return classes[kind]
    space = vars(importlib.import_module(kind.__module__.replace("configuration_", "modeling_")))
    for name, found in space.items():
        ends = name.endswith("ForConditionalGeneration")
        if ends and getattr(found, "config_class", None) is kind:
            return found
    raise ValueError(f"no class has the output projection of {kind.__name__}")


def markdown() -> str:
    """What decides, with the types that it decides of."""
    lines = ["| ties the embedding | types |", "|---|---|"]
    for name in (*RULES, "unknown"):
        kinds = [kind for kind, tying in config_nesting.tyings().items() if tying.decides == name]
        lines.append(f"| {name} | {', '.join(kinds)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    if args.markdown:
        print(markdown())
        return 0
    rows = [row(kind, text) for kind, text in nested_types()]
    for each in rows:
        print(*each)
    if args.write:
        with TARGET.open("w", encoding="utf-8", newline="") as file:
            version = transformers.__version__
            file.write(f"# transformers {version}; calibration/nested_configs.py\n")
            out = csv.writer(file, lineterminator="\n")
            out.writerow(("model_type", "text_type", "tied_by", "default"))
            out.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
