"""What a kernel in one configuration demands of a GPU, and its time by formula.

The kernel library ranks configurations with these before anything is compiled. Every fitted or
assumed number is a coefficient (`wavecast.perfmodel.coefficients`, families `ranking*`).
"""

from wavecast.perfmodel.ranking.convolution import ImplicitProduct, SplitSums
from wavecast.perfmodel.ranking.demand import Constant, Demand, Slowed, Sum
from wavecast.perfmodel.ranking.gemm import TritonProduct
from wavecast.perfmodel.ranking.moe import BlockedRows, GroupedProduct, GroupedTile
from wavecast.perfmodel.ranking.product import TiledProduct
from wavecast.perfmodel.ranking.skinny import SkinnyProduct
from wavecast.perfmodel.ranking.streaming import StreamingKernel
from wavecast.perfmodel.ranking.tile import TileResources

__all__ = [
    "BlockedRows",
    "Constant",
    "Demand",
    "GroupedProduct",
    "GroupedTile",
    "ImplicitProduct",
    "SkinnyProduct",
    "Slowed",
    "SplitSums",
    "StreamingKernel",
    "Sum",
    "TileResources",
    "TiledProduct",
    "TritonProduct",
]
