"""What a kernel in one configuration demands of a GPU, and its time by formula.

The kernel library ranks configurations with these before anything is compiled. Every fitted or
assumed number is a coefficient (`wavecast.model.coefficients`, families `ranking*`).
"""

from wavecast.model.ranking.convolution import ImplicitProduct, SplitSums
from wavecast.model.ranking.demand import Constant, Demand, Slowed, Sum
from wavecast.model.ranking.product import TiledProduct
from wavecast.model.ranking.skinny import SkinnyProduct
from wavecast.model.ranking.streaming import StreamingKernel

__all__ = [
    "Constant",
    "Demand",
    "ImplicitProduct",
    "SkinnyProduct",
    "Slowed",
    "SplitSums",
    "StreamingKernel",
    "Sum",
    "TiledProduct",
]
