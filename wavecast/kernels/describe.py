"""What the description of an operator is written with, in one place to import from."""

from wavecast.arch import Device
from wavecast.kernels import checks, choice, derivative
from wavecast.kernels.operator import Batch, Gradient, Operator, Sizes, Tolerance, sizes
from wavecast.kernels.references import short_name, wide_dtype, widened
from wavecast.kernels.signature import (
    Signature,
    integers,
    normal,
    streamed,
    uniform,
    vector_flops,
)
from wavecast.kernels.spec import Axes, KernelSpec, Problem, Settings, Workspace
from wavecast.launch.inputs import Make
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.coefficients import coefficient
from wavecast.perfmodel.ranking import Constant, Demand, StreamingKernel, TiledProduct

__all__ = [
    "Axes", "Batch", "Constant", "Demand", "Device", "Gradient", "KernelSpec", "Make", "Operator",
    "Problem", "Settings", "Signature", "Sizes", "StreamingKernel", "TiledProduct", "Tolerance",
    "Work", "Workspace", "checks", "choice", "coefficient", "derivative", "integers", "normal",
    "short_name", "sizes", "streamed", "uniform", "vector_flops", "wide_dtype", "widened",
]  # fmt: skip
