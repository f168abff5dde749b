"""Findings: what is worth changing in a kernel, one rule per file.

`RULES` is the registry: name -> module that defines `RULE`. A module is imported when its rule is
first used, so importing this package costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Final

from wavecast.errors import UnknownName
from wavecast.rules.finding import Finding, Rule, RuleInput, Severity
from wavecast.rules.fix import together
from wavecast.rules.merging import RANK, join_findings

RULES: Final = MappingProxyType(
    {
        "lds-over-limit": "wavecast.rules.lds_over_limit",
        "missing-wait": "wavecast.rules.missing_wait",
        "hazard": "wavecast.rules.hazard",
        "assumes-32-lanes": "wavecast.rules.lane_width",
        "register-spills": "wavecast.rules.register_spills",
        "occupancy-one-step-away": "wavecast.rules.occupancy_step",
        "interleaved-pairs": "wavecast.rules.interleaved",
        "unaligned-stride": "wavecast.rules.unaligned_stride",
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
        "contended-atomics": "wavecast.rules.contended_atomics",
        "barrier-heavy-loop": "wavecast.rules.barriers",
        "64-bit-addresses": "wavecast.rules.wide_addresses",
        "replicated-work": "wavecast.rules.replicated_work",
        "padding-costs-occupancy": "wavecast.rules.padding_occupancy",
        "tiny-workgroups": "wavecast.rules.tiny_workgroups",
        "grid-too-small": "wavecast.rules.grid_too_small",
        "partial-last-wave": "wavecast.rules.partial_wave",
        "launch-bound": "wavecast.rules.sequences",
        "other-settings": "wavecast.rules.other_settings",
        "far-from-floor": "wavecast.rules.floor_distance",
    }
)


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
    subject: RuleInput,
    only: Collection[str] | None = None,
    disabled: Collection[str] = (),
    *,
    what_if: bool = True,
) -> tuple[Finding, ...]:
    """The findings of the rules, the most severe first, then by source line. Equal ones are one,
    and what a more specific rule (earlier in the registry) explains is not found again.

    `only` names the rules to run (all by default), `disabled` the rules to skip; without `what_if`
    rules that compile often are skipped too. A rule that raises
    an exception becomes an `error` finding with its name; the other rules still run. Raises
    UnknownName for an unknown rule.
    """
    for name in (*(only or ()), *disabled):
        rule(name)
    findings: list[Finding] = []
    for name in RULES:
        if (only is None or name in only) and name not in disabled:
            entry = rule(name)
            findings += _run(entry, subject) if what_if or not entry.compiles_often else ()
    return tuple(sorted(_merge(_drop_explained(findings)), key=_order))


def _drop_explained(findings: Iterable[Finding]) -> list[Finding]:
    """Findings about instructions that no finding of a rule before theirs explains."""
    result: list[Finding] = []
    covers_by_rule: dict[str, set[int]] = {}
    for finding in findings:
        others = (
            instructions for rule, instructions in covers_by_rule.items() if rule != finding.rule
        )
        if finding.covers and finding.covers <= set().union(*others):
            continue
        result.append(finding)
        covers_by_rule.setdefault(finding.rule, set()).update(finding.covers)
    return result


def _merge(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of a rule with the same advice as one, at all their lines."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.severity, finding.advice), []).append(finding)
    return [_join_group(group) for group in groups.values()]


def _join_group(group: Sequence[Finding]) -> Finding:
    """Findings of one rule as one; a fix stays where it answers all of them."""
    if len(group) == 1:
        return group[0]
    fixes = zip(*(finding.fixes for finding in group), strict=False)
    return replace(
        join_findings(group),
        fixes=tuple(joint_fix for each in fixes if (joint_fix := together(each)) is not None),
    )


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
    return RANK[finding.severity], file, line, finding.rule


__all__ = ["RULES", "Finding", "Rule", "RuleInput", "Severity", "all_rules", "check", "rule"]
