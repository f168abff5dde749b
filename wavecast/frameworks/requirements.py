"""Releases of what frameworks need, as their distributions declare them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

from wavecast.errors import UsageError


def check_requirement(framework: str, distribution: str) -> None:
    """Raise UsageError where a distribution is installed in a release that a framework does not
    take; not where one of the two is not installed."""
    from packaging.requirements import Requirement

    try:
        release, declared = version(distribution), requires(framework) or ()
    except PackageNotFoundError:
        return
    for text in declared:
        requirement = Requirement(text)
        if requirement.name != distribution or not _applies(requirement.marker):
            continue
        if not requirement.specifier.contains(release, prereleases=True):
            raise UsageError(
                f"{distribution} {release}: {framework} {version(framework)} needs "
                f"{distribution}{requirement.specifier}",
                hint=f"pip install '{distribution}{requirement.specifier}'",
            )


def _applies(marker: object) -> bool:
    """Whether a requirement is one without extras, on this machine."""
    from packaging.markers import Marker

    return not isinstance(marker, Marker) or marker.evaluate({"extra": ""})


__all__ = ["check_requirement"]
