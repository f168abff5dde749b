"""Versions that users have: `make matrix`. An interpreter that is not installed is skipped."""

import nox

nox.options.error_on_missing_interpreters = False
EXECUTION = (
    "tests/emulate",
    "tests/compile",
    "tests/integrations",
    "tests/pipeline",
    "tests/cli",
)
"""What differs between releases of Triton."""
INTERPRETATION = ("tests/release", "tests/isa", "tests/analyze", *EXECUTION)
"""What differs between versions of Python."""
PYTHONS = ("3.12", "3.13", "3.14")
TRITONS = ("3.6", "3.7", "3.8")
"""CI has the oldest Python and the newest Triton of pyproject.toml: these are the others."""
OLD = ("3.6", "3.7")
"""The library refuses these on AMD GPUs: they compile some of its operators wrongly."""
TORCH = "torch==2.13.0"


@nox.session(python=PYTHONS)
def interpreters(session: nox.Session) -> None:
    """Another Python, with the packages that CI has."""
    session.install(TORCH)
    session.install("--editable", ".[hip,test]")
    session.run("pytest", "-q", "-m", "not thorough", *(session.posargs or INTERPRETATION))


@nox.session(python="3.11")
@nox.parametrize("release", TRITONS)
def triton(session: nox.Session, release: str) -> None:
    """Another Triton, with the Python that CI has."""
    session.install(TORCH)
    session.install("--editable", ".[hip,test]", f"triton~={release}.0")
    chosen = "not thorough and not operators" if release in OLD else "not thorough"
    session.run("pytest", "-q", "-m", chosen, *(session.posargs or EXECUTION))
