"""Findings: what is worth changing in a kernel, one rule per file.

`RULES` is the registry: name -> module that defines `RULE`. A module is imported when its rule is
first used, so importing this package costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from types import MappingProxyType
from typing import Final

from wavecast.errors import UnknownName
from wavecast.rules.finding import Finding, Rule, RuleInput, Severity

RULES: Final = MappingProxyType(
    {
        "lds-over-limit": "wavecast.rules.lds_over_limit",
        "missing-wait": "wavecast.rules.missing_wait",
        "hazard": "wavecast.rules.hazard",
        "register-spills": "wavecast.rules.register_spills",
        "occupancy-one-step-away": "wavecast.rules.occupancy_step",
        "narrow-global-access": "wavecast.rules.narrow_global",
        "uncoalesced-global": "wavecast.rules.uncoalesced_global",
        "no-buffer-loads": "wavecast.rules.no_buffer_loads",
        "no-matrix-instructions": "wavecast.rules.no_matrix",
        "emulated-dtype": "wavecast.rules.emulated_dtype",
        "full-precision-dot": "wavecast.rules.full_precision_dot",
        "old-tensor-core-path": "wavecast.rules.old_tensor_core",
        "full-wait-in-loop": "wavecast.rules.full_wait",
        "num-stages-no-effect": "wavecast.rules.num_stages",
        "lds-bank-conflicts": "wavecast.rules.lds_conflicts",
        "narrow-lds-access": "wavecast.rules.narrow_lds",
        "tensor-descriptors-emulated": "wavecast.rules.tensor_descriptors",
        "divergence-in-hot-loop": "wavecast.rules.divergence",
        "low-matrix-density": "wavecast.rules.matrix_density",
        "accumulator-copies": "wavecast.rules.accumulator_copies",
        "division-in-loop": "wavecast.rules.division",
        "transcendental-bound-loop": "wavecast.rules.transcendental",
        "grid-too-small": "wavecast.rules.grid_too_small",
        "partial-last-wave": "wavecast.rules.partial_wave",
    }
)

_RANK: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}


def rule(name: str) -> Rule:
    """The rule called `name`. Raises UnknownName with the nearest ones."""
    module = RULES.get(name)
    if module is None:
        raise UnknownName("rule", name, RULES)
    return import_module(module).RULE


def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the registry."""
    return tuple(rule(name) for name in RULES)


def check(
    subject: RuleInput, only: Collection[str] | None = None, disabled: Collection[str] = ()
) -> tuple[Finding, ...]:
    """The findings of the rules, the most severe first, then by source line.

    `only` names the rules to run (all by default), `disabled` the rules to skip. A rule that raises
    an exception becomes an `error` finding with its name; the other rules still run. Raises
    UnknownName for an unknown rule.
    """
    for name in (*(only or ()), *disabled):
        rule(name)
    found: list[Finding] = []
    for name in RULES:
        if (only is None or name in only) and name not in disabled:
            found += _run(rule(name), subject)
    return tuple(sorted(found, key=_order))


def _run(entry: Rule, subject: RuleInput) -> list[Finding]:
    try:
        return list(entry.check(subject))
    except Exception as error:
        return [
            Finding(
                rule=entry.name,
                severity="error",
                message=f"the rule {entry.name} failed; its findings are missing",
                evidence=f"{type(error).__name__}: {error}",
                advice=f"Report this as a bug in wavecast and disable the rule {entry.name}.",
            )
        ]


def _order(finding: Finding) -> tuple[int, str, int, str]:
    location = finding.location.outermost if finding.location else None
    file, line = (location.file, location.line) if location else ("", 0)
    return _RANK[finding.severity], file, line, finding.rule


__all__ = ["RULES", "Finding", "Rule", "RuleInput", "Severity", "all_rules", "check", "rule"]
