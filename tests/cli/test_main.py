"""The command line as a user meets it: help, errors in one line, exit codes."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until
from tests.warm_python import run_python
from wavecast import extras
from wavecast.api.doctor import doctor
from wavecast.cli.commands import COMMANDS
from wavecast.cli.main import run
from wavecast.emulate.matrix.detection import detect
from wavecast.pipeline import capabilities
from wavecast.report import capabilities as report

TYPO = b"""
	.text
	.type k,@function
k:
	v_ad_f32 v0, v1
	s_endpgm
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 8
		.amdhsa_accum_offset 4
	.end_amdhsa_kernel
"""


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line."""
    with pytest.raises(SystemExit) as caught:
        run(list(arguments))
    out, err = capsys.readouterr()
    code = caught.value.code
    return (code if isinstance(code, int) else 0), out, err


def test_help_lists_every_verb_without_importing_it() -> None:
    code = (
        "import sys\nfrom wavecast.cli.main import run\n"
        "try:\n    run(['--help'])\nexcept SystemExit: pass\n"
        "names = ('torch', 'triton', 'rich', 'numpy', 'wavecast.isa')\n"
        "heavy = [m for m in names if m in sys.modules]\n"
        "print('HEAVY', heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout
    for name, (_, text) in COMMANDS.items():
        assert name in done.stdout
        assert text.split()[0] in done.stdout


@pytest.mark.parametrize("words", [[], ["lab"], ["store"]])
def test_a_group_without_a_command_shows_its_help(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2
    assert err.startswith("Usage: wavecast")
    assert "\nCommands:\n" in err


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_every_verb_has_help(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    code, out, _ = call(capsys, verb, "--help")
    assert code == 0
    assert "Usage: wavecast" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explian"], "unknown command 'explian' (nearest known: explain"),
        (["explain", "nowhere.py"], "no such file: nowhere.py"),
        (["explain", "."], "is a folder"),
        (["explain", "x.s", "--arch", "gfx924"], "gfx942"),
        (["explain", "x.s", "--arch", ","], "no name in"),
        (["explain", "x.s", "--grid", "0"], "positive"),
        (["explain", "x.s", "--flops", "-3"], "positive"),
        (["explain", "x.s", "-k", "("], "-k"),
        (["explain", "x.s", "--disable", "register-spils"], "register-spills"),
        (["explain", "x.s", "--formt", "json"], "--format"),
        (["explain"], "PATH"),
        (["learn", "99"], "unknown command '99' (known: check, list, notebook, solution, start)"),
        (["lab", "tun"], "nearest known: tune"),
        (["model", "m", "--search", "--jobs", "2"], "a value is missing before --jobs"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert err.startswith("wavecast: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        (b"", "empty.s", "empty"),
        (b"\x7fELF\x02\x01\x01", "short.hsaco", "truncated"),
        (b"\x00\x01\x02garbage\xff" * 40, "noise.bin", "noise.bin"),
        (TYPO, "typo.s", "unknown instruction 'v_ad_f32'"),
        (TYPO.replace(b"v_ad_f32", b"v_add_f32"), "short.s", "2 operands, expected 3"),
        (TYPO.partition(b"\t.amdhsa_kernel")[0], "bare.s", ".amdhsa_kernel"),
    ],
)
def test_bad_files_are_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, name: str, says: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    code, out, err = call(capsys, "explain", str(path), "--arch", "gfx942")
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback() -> None:
    done = run_python("-m", "wavecast", "explain", "nowhere.py", "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('[tool.wavecast]\narhc = "gfx942"\n', "unknown setting"),
        ('[tool.wavecast.explian]\narch = "gfx942"\n', "unknown setting"),
        ("[tool.wavecast]\narch = gfx942\n", "pyproject.toml"),
    ],
)
def test_bad_settings_are_errors(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
    says: str,
) -> None:
    (tmp_path / "pyproject.toml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    code, _, err = call(capsys, "explain", "x.s")
    assert code == 2
    assert says in err


def test_settings_are_defaults_that_options_override(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.wavecast]\narch = "nosuchchip"\n')
    (tmp_path / "k.s").write_text("")
    monkeypatch.chdir(tmp_path)
    _, _, err = call(capsys, "explain", "k.s")
    assert "nosuchchip" in err
    _, _, err = call(capsys, "explain", "k.s", "--arch", "gfx942")
    assert "nosuchchip" not in err
    monkeypatch.setenv("WAVECAST_EXPLAIN_ARCH", "alsonochip")
    _, _, err = call(capsys, "explain", "k.s")
    assert "alsonochip" in err


def test_ctrl_c_ends_a_capture_in_one_line(tmp_path: Path) -> None:
    script, started = tmp_path / "endless.py", tmp_path / "started"
    script.write_text(f"open({str(started)!r}, 'w').close()\nwhile True: pass\n")
    command = [sys.executable, "-m", "wavecast", "explain", str(script)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # jobs ignore it
    )
    until(started.exists)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (130, "wavecast: interrupted")
    assert list(temporary.iterdir()) == []


def test_doctor_from_python_gives_the_document_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = call(capsys, "doctor", "-f", "json")
    assert (code, json.loads(out)) == (0, doctor().to_dict())
    assert "targets that work" in str(doctor())


def test_doctor_says_of_each_extra_what_is_true(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """nvcc may be there without the extra that brings one; commands are lines, never cut."""
    monkeypatch.setenv("COLUMNS", "60")
    missing = tuple(extras.Extra(one, "", ("package",)) for one in ("cuda", "jax"))
    monkeypatch.setattr(report, "extras", lambda: missing)
    for nvcc, expected in (("nvcc 13.0.88", False), ("", True)):
        tool = capabilities.Tool("nvcc", nvcc, "CUDA", extras.install_hint("cuda"))
        host = capabilities.HostSupport((tool,), (), "cpu", ())
        monkeypatch.setattr(capabilities, "examine", lambda host=host: host)
        code, out, _ = call(capsys, "doctor")
        assert code == 0
        after = out[out.index("instead of it") :]
        assert (f"cuda: {extras.install_hint('cuda')}" in after) is expected
        assert bool(re.search(r"no +cuda +nvcc 13.0.88", after)) is not expected
        assert f"jax: {extras.install_hint('jax')}" in after


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
def test_doctor_names_the_features_that_native_code_uses() -> None:
    features = {row["name"]: row["used"] for row in doctor().to_dict()["features"]}
    host = detect()
    assert features["avx512bf16"] is host.bf16_dots
    assert features["avx512vnni"] is host.byte_dots
    level = {**os.environ, "WAVECAST_HOST_CPU": "x86-64-v3"}
    command = [sys.executable, "-m", "wavecast", "doctor", "-f", "json"]
    done = subprocess.run(command, env=level, capture_output=True, text=True, check=True)
    limited = json.loads(done.stdout)
    assert "x86-64-v3, vectors of 8 lanes, limited by" in limited["processor"]
    used = {row["name"] for row in limited["features"] if row["used"]}
    assert used == {"f16c"}
