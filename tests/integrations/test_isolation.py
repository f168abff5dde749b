"""Compiler calls rehearsed in a child process."""

from __future__ import annotations

import os

import pytest

from wavecast.errors import CompileError
from wavecast.integrations.triton.isolation import diagnostic, rehearse


def test_a_crash_is_an_error_with_the_compilers_last_words():
    def crash():
        os.write(2, b"LLVM ERROR: Cannot select: intrinsic\n")
        os.abort()

    with pytest.raises(CompileError, match=r"crashed \(SIGABRT\): LLVM ERROR: Cannot select"):
        rehearse(crash)


def test_what_was_printed_comes_back_and_exceptions_do_not():
    def complain():
        os.write(2, b"kernel.py:3:4: error: no such layout\n")
        raise ValueError

    assert diagnostic(rehearse(complain)) == "error: no such layout"
    assert rehearse(lambda: None) == ""
