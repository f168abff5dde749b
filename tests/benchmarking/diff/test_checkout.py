"""Files at commits: real Git repositories, which stay as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wavecast.benchmarking.diff.checkout import checked_out
from wavecast.errors import InputError


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "work")
    work = tmp_path / "work"
    for text in ("one", "two"):
        (work / "k.py").write_text(f"{text}\n")
        git(work, "add", "k.py")
        git(work, "commit", "-q", "-m", text)
    git(work, "tag", "v2")
    (work / "k.py").write_text("three, not committed\n")
    return work


def test_a_file_at_a_commit(repository: Path) -> None:
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran-hook\n")
    hook.chmod(0o755)
    before = git(repository, "status", "--porcelain")
    with checked_out(repository / "k.py", "HEAD~1") as tree:
        assert tree.path.read_text() == "one\n"
        assert not tree.root.is_relative_to(repository)
        assert tree.label.startswith("HEAD~1 (")
        assert not list(tree.root.glob("ran-hook"))
        root = tree.root
    with checked_out(repository / "k.py", "v2") as tree:
        assert tree.path.read_text() == "two\n"
    assert not root.exists()
    assert (repository / "k.py").read_text() == "three, not committed\n"
    assert git(repository, "status", "--porcelain") == before
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_it_goes_when_what_follows_fails(repository: Path) -> None:
    with pytest.raises(ZeroDivisionError), checked_out(repository / "k.py", "v2"):
        raise ZeroDivisionError
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_what_is_not_there(repository: Path, tmp_path: Path) -> None:
    for revision, message in (("v3", "'v3' is not a commit"), ("--all", "'--all' is not a commit")):
        with pytest.raises(InputError, match=message), checked_out(repository / "k.py", revision):
            pass
    with (
        pytest.raises(InputError, match=r"new\.py is not in v2"),
        checked_out(repository / "new.py", "v2"),
    ):
        pass
    with (
        pytest.raises(InputError, match="not in a Git checkout"),
        checked_out(tmp_path / "k.py", "v2"),
    ):
        pass
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_code_of_the_checkout_itself_is_refused(repository: Path) -> None:
    with checked_out(repository / "k.py", "v2") as tree:
        tree.check_sources([str(tree.path), "/usr/lib/python3/x.py", "relative.py"])
        tree.check_sources([str(repository / "untracked.py")])
        with pytest.raises(InputError, match=r"k\.py was imported from the checkout, not from v2"):
            tree.check_sources([str(repository / "k.py")])
