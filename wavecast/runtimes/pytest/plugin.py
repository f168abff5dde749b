"""The options of the plugin. pytest imports this wherever wavecast is installed, so the rest,
PyTorch and Triton included, is imported only when `--wavecast` is given."""

from __future__ import annotations

import argparse

import pytest

NAME = "wavecast-session"
"""The plugin that is registered for a session on the emulator."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("wavecast", "AMD kernels executed on the CPU")
    group.addoption(
        "--wavecast",
        metavar="GPU",
        help="Execute Triton kernels on an emulated AMD GPU, by name (mi300x) or target (gfx942).",
    )
    group.addoption(
        "--wavecast-check",
        action="store_true",
        help="Watch for races, missing waits and uses of uninitialised memory.",
    )
    group.addoption(
        "--wavecast-check-ignore",
        action="append",
        default=[],
        metavar="KIND",
        help="A kind of report to leave out (lds-race, …); repeatable.",
    )
    group.addoption(
        "--wavecast-threads",
        metavar="N",
        type=_positive,
        help="Host threads to run workgroups on (default: all, shared by pytest-xdist's workers).",
    )
    group.addoption(
        "--wavecast-unsupported",
        choices=("fail", "skip", "xfail"),
        default="fail",
        help="What a test does that needs an instruction the emulator cannot execute.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before conftest.py files: they may ask whether there is a GPU."""
    _start(early_config, early_config.known_args_namespace)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where the plugin itself was loaded too late for the above (`-p` in xdist's workers)."""
    _start(config, config.option)


def _start(config: pytest.Config, options: argparse.Namespace) -> None:
    if not options.wavecast or config.pluginmanager.has_plugin(NAME):
        return
    from wavecast.errors import WavecastError
    from wavecast.runtimes.pytest.session import EmulatedSession

    try:
        session = EmulatedSession(
            options.wavecast,
            threads=options.wavecast_threads,
            check=options.wavecast_check,
            ignored=options.wavecast_check_ignore,
            unsupported=options.wavecast_unsupported,
        )
    except WavecastError as error:
        raise pytest.UsageError(f"--wavecast {options.wavecast}: {error}") from error
    config.add_cleanup(session.close)
    config.pluginmanager.register(session, NAME)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number
