"""The number formats of a checkpoint: its `quantization_config` as vLLM reads it.

Sources: vLLM, `model_executor/layers/quantization`: `auto_gptq.py`, `auto_awq.py`, `fp8.py`,
`compressed_tensors/compressed_tensors.py`, `quark/quark.py`; AMD Quark, "Quark config.json".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from wavecast.errors import UsageError
from wavecast.systems.config_fields import TEXT_CONFIGS
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.module_names import means, modules_by_role
from wavecast.systems.weight_formats import Precision, WeightFormat, weight_format

Spec = Mapping[str, Any]
_HINT: Final = "--dtype names the format of the weights"
_WIDE: Final = weight_format("bf16")
_EXPERTS: Final = {"fp4": WeightFormat("mxfp4", "fp8", "mx"), "fp8": None}
"""`expert_dtype` of a checkpoint of fp8 (DeepSeek-V4): weights of routed experts in fp4 with a
scale per 32 are multiplied with fp8; None: as the other weights."""


def of_checkpoint(config: ModelConfig) -> Precision:
    """The formats of a configuration by role; bf16 without a `quantization_config`.

    Embedding and output projection keep 16 bits: engines quantise them only where a checkpoint of
    GPTQ says so, which is refused. Raises UsageError for what Wavecast does not read; the line
    names the field.
    """
    quantisation = quantisation_of(config.values)
    if not quantisation:
        return Precision(_WIDE, _WIDE, _WIDE, _WIDE, "bf16")
    method = quantisation.get("quant_method")
    if method not in _METHODS:
        raise _unread("quant_method", method, _METHODS)
    format_of, cache = _METHODS[method](quantisation)
    experts = _expert_dtype(quantisation, config.values)
    modules = modules_by_role(config.kind, config.layers)
    by_role = {role: _of_role(format_of, names) for role, names in modules.items()}
    # A model without experts, or without other perceptrons, has one format for both.
    dense = by_role.get("dense") or by_role["experts"]
    return Precision(
        attention=by_role["attention"],
        dense=dense,
        experts=experts or by_role.get("experts", dense),
        head=_WIDE,
        cache=cache,
    )


def quantisation_of(config: Mapping[str, Any]) -> Spec:
    """The `quantization_config`, of the whole or of a nested configuration. Raises UsageError."""
    for name in ("quantization_config", "compression_config"):
        if spec := config.get(name):
            if not isinstance(spec, Mapping):
                raise UsageError(f"{name} is {spec!r}, not an object")
            return spec
    for name in TEXT_CONFIGS:
        if isinstance(nested := config.get(name), Mapping):
            return quantisation_of(nested)
    return {}


_FormatOf = Callable[[str], WeightFormat]
"""The name of a module -> the format of its weights."""


def _fp8(quantisation: Spec) -> tuple[_FormatOf, str]:
    block = quantisation.get("weight_block_size")
    if block not in (None, [128, 128]):
        raise _unread("weight_block_size", block, ([128, 128],))
    return _but(weight_format("fp8", "block" if block else "token"), quantisation), "bf16"


def _mxfp4(quantisation: Spec) -> tuple[_FormatOf, str]:
    return _but(WeightFormat("mxfp4", "bf16", "mx"), quantisation), "bf16"


def _integers(quantisation: Spec) -> tuple[_FormatOf, str]:
    """GPTQ and AWQ: integers of `bits`, `group_size` of which share a scale (-1: a column)."""
    bits = quantisation.get("bits", quantisation.get("w_bit"))
    if bits not in (4, 8):
        raise _unread("bits", bits, (4, 8))
    for name in ("dynamic", "lm_head"):
        if quantisation.get(name):
            raise _unread(name, quantisation[name], ())
    group = _group(quantisation.get("group_size", quantisation.get("q_group_size")))
    return _but(WeightFormat(f"int{bits}", "bf16", "none", group), quantisation), "bf16"


def _compressed_tensors(quantisation: Spec) -> tuple[_FormatOf, str]:
    groups = quantisation.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise _unread("config_groups", groups, ())
    sparsity = quantisation.get("sparsity_config")
    if sparsity and (not isinstance(sparsity, Mapping) or sparsity.get("format") != "dense"):
        raise _unread("sparsity_config", sparsity, ("dense",))
    formats: dict[str, WeightFormat] = {}
    for name, group in groups.items():
        if not isinstance(group, Mapping):
            raise _unread(f"config_groups.{name}", group, ())
        form = _of_arguments(f"config_groups.{name}", group)
        formats.update(dict.fromkeys(_strings(group, "targets"), form))
    ignored = _strings(quantisation, "ignore")

    def format_of(module: str) -> WeightFormat:
        if any(_targets(pattern, module) for pattern in ignored):
            return _WIDE
        return next((formats[t] for t in formats if _targets(t, module)), _WIDE)

    scheme = quantisation.get("kv_cache_scheme")
    return format_of, _cache("kv_cache_scheme", scheme) if scheme else "bf16"


def _of_arguments(where: str, group: Spec) -> WeightFormat:
    """The format of a group of compressed-tensors: weights and activations."""
    weights = _scheme(f"{where}.weights", group.get("weights"))
    activations = group.get("input_activations")
    inputs = _scheme(f"{where}.input_activations", activations) if activations else ""
    spec = group["weights"]
    block = spec.get("strategy") == "block"
    if block and spec.get("block_structure") not in (None, [128, 128]):
        raise _unread(f"{where}.weights.block_structure", spec["block_structure"], ([128, 128],))
    return _pair(where, weights, inputs, block=block, group=_group(spec.get("group_size")))


def _scheme(where: str, spec: Any) -> str:
    """The dtype of the arguments of weights or activations."""
    if not isinstance(spec, Mapping):
        raise _unread(where, spec, ())
    kind, bits, group = spec.get("type", "int"), spec.get("num_bits"), spec.get("group_size")
    if kind == "float" and bits == 4:
        dtypes_by_group = {16: "nvfp4", 32: "mxfp4"}
        if group not in dtypes_by_group:
            raise _unread(f"{where}.group_size", group, dtypes_by_group)
        return dtypes_by_group[group]
    dtype = {"float of 8": "fp8", "int of 8": "int8", "int of 4": "int4"}.get(f"{kind} of {bits}")
    if dtype is None:
        raise _unread(f"{where}.num_bits", f"{kind} of {bits}", ("float of 4, 8", "int of 4, 8"))
    return dtype


def _quark(quantisation: Spec) -> tuple[_FormatOf, str]:
    """Formats of all layers, of layers by name, and excluded ones. vLLM caches keys and values in
    fp8 only where `--kv-cache-dtype` says so: the checkpoint has scales for it."""
    every = quantisation.get("global_quant_config")
    if not isinstance(every, Mapping):
        raise _unread("global_quant_config", every, ())
    by_type = quantisation.get("layer_type_quant_config")
    if by_type:
        raise _unread("layer_type_quant_config", by_type, ())
    layer_specs = quantisation.get("layer_quant_config") or {}
    if not isinstance(layer_specs, Mapping):
        raise _unread("layer_quant_config", layer_specs, ())
    usual = _of_quark("global_quant_config", every)
    formats = {
        pattern: _of_quark(f"layer_quant_config.{pattern}", spec)
        for pattern, spec in layer_specs.items()
    }
    excluded = _strings(quantisation, "exclude")

    def format_of(module: str) -> WeightFormat:
        if any(means(pattern, module) for pattern in excluded):
            return _WIDE
        return next((formats[p] for p in formats if means(p, module)), usual)

    return format_of, "bf16"


_QUARK: Final = {"fp8_e4m3": "fp8", "int8": "int8", "uint8": "int8", "int4": "int4",
                 "uint4": "int4"}  # fmt: skip


def _of_quark(where: str, spec: Any) -> WeightFormat:
    if not isinstance(spec, Mapping):
        raise _unread(where, spec, ())
    weights, group, block = _quark_dtype(f"{where}.weight", spec.get("weight"))
    activations = spec.get("input_tensors")
    inputs = _quark_dtype(f"{where}.input_tensors", activations)[0] if activations else ""
    return _pair(where, weights, inputs, block=block, group=group)


def _quark_dtype(where: str, spec: Any) -> tuple[str, int, bool]:
    """The dtype, elements of a group, and whether scales are per block. Of two steps the narrower
    one is what is stored: int4 with fp8 scales, or nvfp4."""
    steps = spec if isinstance(spec, list) else [spec]
    if not steps or not all(isinstance(step, Mapping) for step in steps):
        raise _unread(where, spec, ())
    dtypes = [step.get("dtype") for step in steps]
    four = [step for step in steps if str(step.get("dtype")).endswith("4")]
    step = (four or steps)[0]
    dtype, scheme, group = step.get("dtype"), step.get("qscheme"), step.get("group_size")
    if dtype in ("fp4", "mx"):
        return _micro(where, step, len(steps)), 0, False
    if dtype not in _QUARK:
        raise _unread(f"{where}.dtype", dtypes, (*_QUARK, "fp4", "mx"))
    if scheme == "per_block" and step.get("block_size") not in (None, [128, 128]):
        raise _unread(f"{where}.block_size", step["block_size"], ([128, 128],))
    return _QUARK[dtype], _group(group) if scheme == "per_group" else 0, scheme == "per_block"


def _micro(where: str, step: Spec, steps: int) -> str:
    """fp4 in groups: of 32 with a scale that is a power of two, of 16 with one of fp8."""
    if step.get("dtype") == "mx" and step.get("mx_element_dtype") != "fp4":
        raise _unread(f"{where}.mx_element_dtype", step.get("mx_element_dtype"), ("fp4",))
    group = step.get("group_size")
    if group == 32 and step.get("scale_format", "e8m0") == "e8m0":
        return "mxfp4"
    if group == 16 and steps == 2:
        return "nvfp4"
    raise _unread(f"{where}.group_size", group, ("32 with scale_format e8m0", "16 in two steps"))


def _pair(where: str, weights: str, inputs: str, *, block: bool, group: int) -> WeightFormat:
    """How weights and activations are multiplied; "" are activations of 16 bits."""
    if not inputs:
        scaling = "mx" if weights in ("mxfp4", "nvfp4") else "none"
        return WeightFormat(weights, "bf16", scaling, group if weights in ("int4", "int8") else 0)
    if weights == inputs and weights != "int4":
        return weight_format(weights, "block" if block else "")
    if (weights, inputs) == ("mxfp4", "fp8"):
        return WeightFormat("mxfp4", "fp8", "mx")
    if (weights, inputs) in (("int4", "fp8"), ("int4", "int8")):
        return WeightFormat("int4", inputs, "token", group)
    raise UsageError(f"{where} has weights of {weights} with activations of {inputs}", hint=_HINT)


def _but(narrow: WeightFormat, quantisation: Spec) -> _FormatOf:
    """One format but for the modules that a list names."""
    wide_modules = [
        name
        for key in ("modules_to_not_convert", "ignored_layers")
        for name in _strings(quantisation, key)
    ]
    return lambda module: _WIDE if any(means(name, module) for name in wide_modules) else narrow


_METHODS: Final[Mapping[Any, Callable[[Spec], tuple[_FormatOf, str]]]] = {
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "awq": _integers,
    "gptq": _integers,
    "compressed-tensors": _compressed_tensors,
    "quark": _quark,
}
"""`quant_method` -> what reads it: the format of a module, and the dtype of the cache."""


def _targets(pattern: str, module: str) -> bool:
    """Whether a target of compressed-tensors means a module; `Linear` is every product."""
    return pattern == "Linear" or means(pattern, module)


def _of_role(format_of: _FormatOf, names: Iterable[str]) -> WeightFormat:
    """The one format of all products of a role. Raises UsageError where they have several."""
    by_format: dict[WeightFormat, str] = {}
    for name in names:
        by_format.setdefault(format_of(name), name)
    if len(by_format) > 1:
        (first_format, first), (other, second), *_ = by_format.items()
        raise UsageError(
            f"quantization_config gives {first} {first_format.weights} and {second} "
            f"{other.weights}: "
            "formats that differ between products of one role are not modelled",
            hint=_HINT,
        )
    return next(iter(by_format))


def _expert_dtype(quantisation: Spec, config: Mapping[str, Any]) -> WeightFormat | None:
    stored = quantisation.get("expert_dtype", config.get("expert_dtype"))
    if stored is None:
        return None
    if not isinstance(stored, str) or stored not in _EXPERTS:
        raise _unread("expert_dtype", stored, _EXPERTS)
    return _EXPERTS[stored]


def _cache(where: str, scheme: Any) -> str:
    """vLLM caches keys and values in fp8 where the checkpoint has a scheme of that."""
    if _scheme(where, scheme) != "fp8":
        raise _unread(where, scheme, ("float of 8",))
    return "fp8"


def _group(size: Any) -> int:
    if size is None or size == -1:
        return 0
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise _unread("group_size", size, ("-1, or a positive number",))
    return size


def _strings(spec: Spec, name: str) -> list[str]:
    entries = spec.get(name) or []
    if not isinstance(entries, list):
        raise UsageError(f"{name} is {entries!r}, not a list")
    return list(map(str, entries))


def _unread(name: str, value: Any, choices: Iterable[Any]) -> UsageError:
    """The error of a field that is not read."""
    names = ", ".join(map(str, choices))
    message = f"quantization_config: {name} is {value!r}"
    return UsageError(f"{message}; known: {names}" if names else f"{message}, which is not read",
                      hint=_HINT)  # fmt: skip


__all__ = ["of_checkpoint", "quantisation_of"]
