"""`wavecast.testing`: times of calls, in the form Triton's users know.

    import wavecast

    milliseconds = wavecast.testing.do_bench(lambda: kernel[grid](x, y, n))
    low, middle, high = wavecast.testing.do_bench(step, quantiles=[0.2, 0.5, 0.8])

`do_bench` takes and returns what `triton.testing.do_bench` does. On a GPU its samples are taken as
`wavecast bench` takes them; inside `wavecast.device(…)` times are predicted.
"""

from wavecast.benchmarking.measure.do_bench import do_bench

__all__ = ["do_bench"]
