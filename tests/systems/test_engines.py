"""Profiles of engines: every row has a status, and reports say why a profile is of its version."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources

import pytest

import wavecast
from wavecast.arch.systems import system as parse_system
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.attention.libraries import resolve_libraries
from wavecast.perfmodel.ops.gemm.formats import SCALINGS
from wavecast.perfmodel.ops.gemm.libraries import check as check_library
from wavecast.report.kit.terminal import plain
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.engine import engine, engines, releases
from wavecast.systems.graph import Step
from wavecast.systems.parallel import Parallelism

STATUSES = {"source", "measured", "fitted", "assumed"}
NESTED = ("on", "of", "aiter", "releases")
ATTENTION = (
    *("attention_prefill", "attention_decode", "latent_prefill", "latent_decode"),
    "sparse_attention",
)


def tables() -> dict[str, dict]:
    text = (resources.files("wavecast.systems") / "engines.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def parts(table: dict) -> Iterator[dict]:
    """An engine's table, those of its releases, and of these what differs by chip, switch and type
    of model."""
    for part in (table, *table.get("releases", {}).values()):
        yield from part.get("of", {}).values()
        for switched in (part, part.get("aiter", {})):
            yield {key: row for key, row in switched.items() if key not in NESTED}
            yield from switched.get("on", {}).values()


def test_every_row_has_a_status_and_a_source() -> None:
    for name, table in tables().items():
        for key, row in (item for part in parts(table) for item in part.items()):
            assert row["status"] in STATUSES, f"{name}.{key}"
            assert len(row["source"]) > 5, f"{name}.{key}"


def test_every_named_library_and_kernel_is_known() -> None:
    for table in tables().values():
        for key, row in (item for part in parts(table) for item in part.items()):
            if key in ATTENTION:
                resolve_libraries(row["value"], "")
            if key == "products_library" and row["value"]:
                check_library(row["value"])
            if key in ("fused_quantisation", "attention_quantisation"):
                assert set(row["value"]) <= set(SCALINGS)


def test_a_release_states_only_what_differs() -> None:
    for name, table in tables().items():
        stated = dict(table)
        for version, part in table.get("releases", {}).items():
            for key, row in part.items():
                if key not in NESTED and key != "version":
                    assert row["value"] != stated[key]["value"], f"{name} {version} {key}"
            stated |= part
            assert part["version"]["value"] == version
            for generation in part.get("on", {}):
                earlier = releases(name)[releases(name).index(version) - 1]
                before = engine(f"{name}@{earlier}", generation)
                now = engine(f"{name}@{version}", generation)
                for key in part["on"][generation].keys() - part.keys():
                    assert getattr(now, key) != getattr(before, key), f"{version} {key}"


def test_kernels_of_attention_follow_engine_release_chip_and_setting() -> None:
    assert engine("sglang@0.5.5", "cdna3").attention_decode == "paged"
    assert engine("sglang@0.5.13", "cdna3").sparse_attention == "tilelang"
    assert engine("sglang@0.5.23", "cdna3").sparse_attention == "triton"
    assert engine("sglang@0.5.13", "hopper").latent_decode == "flash3"
    assert engine("vllm@0.33", "cdna3").latent_decode == "triton"
    assert engine("vllm@0.33", "cdna3", aiter=True).latent_decode == "asm"
    chosen = engine("sglang", "cdna3").with_settings([("attention", "triton")])
    assert {getattr(chosen, key) for key in ATTENTION} == {"triton"}
    with pytest.raises(UsageError, match="has no setting aiter"):
        engine("sglang", "cdna3", aiter=True)


def test_the_cache_of_chosen_keys() -> None:
    def cache(engine_name: str, gpu: str, model: str = "GLM-5.1-FP8") -> str:
        how = Deployment(engine=engine_name, parallel=Parallelism(tensor=8))
        return ModelOnSystem(huggingface.load(model), parse_system(f"8x{gpu}"), how).precision.cache

    assert cache("sglang", "B200") == cache("vllm@0.11", "H200") == "fp8"
    assert cache("sglang", "H200") == cache("vllm@0.33", "H200") == "bf16"
    assert cache("sglang", "B200", "DeepSeek-R1") == "bf16"


def test_the_kernels_of_an_engine_are_priced() -> None:
    config = huggingface.load("MiniMax-M2")
    times = {}
    for name in ("sglang@0.5.5", "sglang@0.5.13"):
        for setting in ((), (("attention", "triton"),)):
            how = Deployment(engine=name, settings=setting, parallel=Parallelism(tensor=2))
            model = ModelOnSystem(config, parse_system("2xMI300X"), how).model
            step = Step(decode=16, context=1500)
            times[name, bool(setting)] = {
                kernel.priced.node.name: kernel.priced for kernel in model.kernels(step)
            }
    old, new = times["sglang@0.5.5", False], times["sglang@0.5.13", False]
    # A tile of 128 x 128 for 16 rows leaves most compute units without work.
    assert new["qkv_proj"].seconds > 1.5 * old["qkv_proj"].seconds
    triton = times["sglang@0.5.13", True]["decode attention"]
    assert triton.seconds > new["decode attention"].seconds


def test_releases_are_named() -> None:
    assert engine("vllm") == engine("vllm@0.33") == engine("VLLM@0.33.0")
    assert engine("vllm@0.11").version == releases("vllm")[0] == "0.11"
    assert not engine("vllm@0.11").asynchronous
    assert engine("sglang@0.5.5.post3").version == "0.5.5"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vllm@0.30", "no profile of release '0.30' of vllm (releases: 0.11, 0.21, 0.33)"),
        ("vllm@", "no profile of release '' of vllm"),
        ("sglang@0.5", "no profile of release '0.5' of sglang"),
        ("vlm@0.11", "unknown engine 'vlm'"),
    ],
)
def test_a_release_without_a_profile_is_an_error(name: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        engine(name)
    assert words in str(error.value)


def test_a_prediction_for_a_release_that_was_not_measured_says_so() -> None:
    words = "no run of vllm 0.33 was measured"
    for name in ("vllm", "vllm@0.33"):
        report = wavecast.model("Qwen3-8B", system="1xMI300X", engine=name, concurrency=(1,))
        assert words in str(report)
        assert words in report.json()
    old = wavecast.model("Qwen3-8B", system="1xMI300X", engine="vllm@0.11", concurrency=(1,))
    assert "no run of" not in str(old)


def test_the_full_report_says_why_the_profile_is_of_its_version() -> None:
    report = wavecast.model("Qwen3-8B", system="1xMI300X", engine="vllm")
    profile = engines()["vllm"]
    line = f"profile of vllm {profile.version}: source: vLLM 0.33.0"
    assert line in plain(lambda console: report.render(console, detail="full"), 200)
    assert line not in str(report)
