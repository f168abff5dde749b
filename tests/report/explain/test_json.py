from __future__ import annotations

import json
import math

import jsonschema
import pytest

from tests.report import sample
from wavecast.report.explain import json as report_json


@pytest.fixture(scope="module")
def document() -> dict:
    return report_json.document(sample.report())


@pytest.mark.parametrize(
    "report",
    [sample.report(), sample.hostile_report(), sample.empty_report()],
    ids=["rich", "hostile", "empty"],
)
def test_document_follows_its_schema(report):
    schema = report_json.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report_json.document(report), schema, jsonschema.Draft202012Validator)


def test_schema_refuses_what_it_does_not_name(document):
    changed = json.loads(json.dumps(document))
    changed["kernels"][0]["registers"]["invented"] = 1
    with pytest.raises(jsonschema.ValidationError, match="invented"):
        jsonschema.validate(changed, report_json.schema())


def test_every_object_of_the_schema_is_strict_and_complete():
    def walk(node, path):
        if isinstance(node, dict):
            if "properties" in node:
                assert node["additionalProperties"] is False, path
                assert set(node["required"]) == set(node["properties"]), path
            for key, value in node.items():
                walk(value, f"{path}/{key}")
        elif isinstance(node, list):
            for index, value in enumerate(node):
                walk(value, f"{path}/{index}")

    walk(report_json.schema(), "")


def test_text_has_no_nan_and_is_deterministic():
    text = report_json.dumps(sample.report())
    assert text == report_json.dumps(sample.report())

    def refuse(constant):
        raise AssertionError(constant)

    parsed = json.loads(text, parse_constant=refuse)
    assert parsed["kernels"][0]["extra"]["odd"] is None


def test_the_promised_keys_hold_the_reports_figures(document):
    first = document["kernels"][0]
    assert (first["kernel"], first["arch"], first["device"]) == (
        "matmul_kernel",
        "gfx942",
        "AMD Instinct MI300X",
    )
    assert first["registers"] == {
        "vgpr": 182,
        "agpr": 128,
        "sgpr": 40,
        "spilled": 0,
        "spilled_vgpr": 0,
        "spilled_sgpr": 0,
        "scratch_bytes": 0,
    }
    assert first["lds_bytes"] == 32768
    assert first["occupancy"]["waves_per_simd"] == 2
    assert first["occupancy"]["next"] == {
        "resource": "vgpr",
        "delta": 14,
        "target": 168,
        "waves_per_simd": 3,
        "also": [],
    }
    assert first["instructions"]["matrix"] == 4
    loop = first["loops"][0]
    assert (loop["line"], loop["depth"], loop["limiter"]) == (22, 1, "matrix")
    assert loop["cycles"]["matrix"] == 512
    roofline = first["roofline"]
    assert roofline["bound"] == "compute"
    assert roofline["flops"] == 137.4e9
    assert math.isclose(roofline["floor_seconds"], 137.4e9 / 1307.4e12)
    assert [f["severity"] for f in first["findings"]] == ["error", "warning", "note"]


def test_comparison_has_one_row_per_launch_with_one_entry_per_device(document):
    rows = document["comparison"]
    assert [row["kernel"] for row in rows] == ["matmul_kernel", "softmax_kernel"]
    assert [e["arch"] for e in rows[0]["entries"]] == ["gfx942", "gfx950", "gfx1100", "sm_90"]
    assert rows[0]["entries"][0]["main_loop"] == {"line": 22, "limiter": "matrix", "cycles": 512}
    assert all(entry["main_loop"] is None for entry in rows[1]["entries"])


def test_pressure_is_thinned_and_keeps_its_peak():
    report = sample.long_report(20_000)
    pressure = report_json.document(report)["kernels"][0]["pressure"]
    assert pressure["instructions"] == 20_000
    assert len(pressure["points"]) == 512
    peak = pressure["peak"]
    assert [peak["index"], peak["vgpr"]] in [point[:2] for point in pressure["points"]]
    assert peak["vgpr"] == max(point[1] for point in pressure["points"])
