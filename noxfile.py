"""Versions that users have: `make matrix`. An interpreter that is not installed is skipped."""

import nox

nox.options.error_on_missing_interpreters = False
TESTS = (
    "tests/release",
    "tests/isa",
    "tests/analyze",
    "tests/emulate",
    "tests/integrations/triton",
    "tests/cli",
)
"""What differs between versions of Python and Triton."""
TORCH = "torch==2.13.0"


@nox.session(python=["3.12", "3.13", "3.14"])
def interpreters(session: nox.Session) -> None:
    """Another Python, with the packages that CI has."""
    session.install(TORCH)
    session.install("--editable", ".[hip,test]")
    session.run("pytest", "-q", "-m", "not thorough", *(session.posargs or TESTS))


@nox.session(python="3.11")
@nox.parametrize("release", ["3.6", "3.7", "3.8"])
def triton(session: nox.Session, release: str) -> None:
    """Another Triton, with the Python that CI has."""
    session.install(TORCH)
    session.install("--editable", ".[hip,test]", f"triton~={release}.0")
    session.run("pytest", "-q", "-m", "not thorough", *(session.posargs or TESTS[3:]))
