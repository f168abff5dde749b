"""Changes of a profiled run: what can be written, and which sizes a batch changes."""

from __future__ import annotations

import json

import pytest

from wavecast.errors import UnknownName, UsageError
from wavecast.profiles.changes import BatchSizes, batch_sizes, parse
from wavecast.profiles.profile import Profile, ProfiledKernel, ProfiledOp


def test_changes_are_read() -> None:
    found = parse("batch*2; attention = flash3;gemm*0.5; aten::mm/2; host*0.25; graphs",
                  frozenset({"aten::mm"}))  # fmt: skip
    assert (found.batch, found.host, found.graphs) == (2, 0.25, True)
    assert found.libraries == {"attention": "flash3"}
    assert found.factor("aten::mm", "gemm") == 0.25
    assert found.factor("aten::bmm", "gemm") == 0.5
    assert found.factor("aten::add", "element-wise") == 1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("batch", UsageError, "is not a change"),
        ("batch*0", UsageError, "positive number"),
        ("gemm*1e9", UsageError, "positive number"),
        ("nothing*2", UnknownName, "category or operator"),
        ("attention=nothing", UnknownName, "library of attention"),
        ("norm=wavecast", UnknownName, "class with libraries"),
    ],
)
def test_what_is_not_a_change(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("name", "sizes", "strides", "expected"),
    [
        ("aten::mul", [[4, 10, 32], [10, 32]], [[320, 32, 1], [32, 1]],
         ([[8, 10, 32], [10, 32]], [[320, 32, 1], [32, 1]])),
        ("aten::mm", [[40, 32], [32, 64]], [[32, 1], [1, 32]],
         ([[80, 32], [32, 64]], [[32, 1], [1, 32]])),
        ("aten::mm", [[32, 40], [40, 64]], [[40, 1], [64, 1]],
         ([[32, 80], [80, 64]], [[80, 1], [64, 1]])),
        ("aten::cat", [[[4, 10, 8], [4, 10, 8]], []], [[[80, 8, 1], [80, 8, 1]], []],
         ([[[8, 10, 8], [8, 10, 8]], []], [[[80, 8, 1], [80, 8, 1]], []])),
        ("aten::convolution", [[4, 3, 9, 9], [4, 3, 3, 3]], [[243, 81, 9, 1], [27, 9, 3, 1]],
         ([[8, 3, 9, 9], [4, 3, 3, 3]], [[243, 81, 9, 1], [27, 9, 3, 1]])),
    ],
)  # fmt: skip
def test_activations_have_the_batch_and_weights_do_not(
    name: str, sizes: list, strides: list, expected: tuple[list, list]
) -> None:
    op = ProfiledOp(name, json.dumps(sizes), "[]", json.dumps(strides))
    found = BatchSizes(2, 4, 40).change(op)
    assert (json.loads(found.sizes), json.loads(found.strides)) == expected


def test_the_batch_is_that_of_most_activations() -> None:
    profile = Profile("test")
    kernel = profile.kernels.number(ProfiledKernel("k"))
    weight = "[[40, 32], [32, 8]]"
    for sizes, duration in (("[[4, 10, 32]]", 90), ("[[1, 10, 8]]", 5), (weight, 400)):
        profile.launches.add(kernel, 0, 0, 0, duration)
        profile.launches.op[-1] = len(profile.ops)
        profile.ops.add(profile.op_infos.number(ProfiledOp("op", sizes)), 0, 0, duration)
    found = batch_sizes(profile, 2)
    assert (found.batch, found.tokens) == (4, 40)
    assert any("is 8 after" in note for note in found.notes)
    with pytest.raises(UsageError, match="not a whole number"):
        batch_sizes(profile, 0.3)
    with pytest.raises(UsageError, match="do not show the batch"):
        batch_sizes(Profile("test"), 2)
