"""The option that rewrites golden files."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite golden files with what the tests find, instead of comparing; in one process",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--update-golden writes files: run it without -n")
    # A script of the last session must run again; tests of the cache switch it on
    os.environ.setdefault("WAVECAST_CAPTURE_CACHE", "0")
