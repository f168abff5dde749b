from __future__ import annotations

from wavecast.compile.codeobject import Parameter
from wavecast.compile.signature import signatures

SOURCE = """
// __global__ void commented(int a);
template <int N, typename T>
__global__ void __launch_bounds__(N * (2 + 1), 2) reduce(
    const T *__restrict__ in, /* the sum */ float* out, int n = 3) {}

extern "C" __global__ __attribute__((amdgpu_waves_per_eu(2))) void plain(void) {}
__global__ void arrays(Pair<int, float> p, float x[], const unsigned long long &r) {}
"""


def _parameters(count: int) -> list[Parameter]:
    return [Parameter("", "", 8 * index, 8) for index in range(count)]


def test_names_types_and_lines() -> None:
    found = signatures(SOURCE)
    assert list(found) == ["reduce", "plain", "arrays"]
    assert found["reduce"].parameters == (("T*", "in"), ("float*", "out"), ("int", "n"))
    assert found["reduce"].line == 4
    assert found["plain"].parameters == ()
    assert found["arrays"].parameters == (
        ("Pair<int, float>", "p"),
        ("float []", "x"),
        ("unsigned long long&", "r"),
    )


def test_a_signature_matches_plain_and_mangled_symbols() -> None:
    reduce = signatures(SOURCE)["reduce"]
    assert reduce.matches("_Z6reduceILi256EfEvPKT0_Pfi", _parameters(3))
    assert reduce.matches("reduce", _parameters(3))
    assert not reduce.matches("_Z7reduce2Pf", _parameters(3))
    assert not reduce.matches("reduce", _parameters(2))


def test_unfinished_source_yields_nothing() -> None:
    assert signatures("__global__ void f(int a") == {}
    assert signatures("__global__") == {}
