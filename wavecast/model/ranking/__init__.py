"""What a kernel in one configuration demands of a GPU, and its time by formula.

The kernel library ranks configurations with these before anything is compiled. Every fitted or
assumed number is a coefficient (`wavecast.model.coefficients`, families `ranking*`).
"""

from wavecast.model.ranking.convolution import ImplicitProduct, SplitSums
from wavecast.model.ranking.demand import Constant, Demand, Slowed, Sum
from wavecast.model.ranking.gemm import TritonProduct
from wavecast.model.ranking.moe import BlockedRows, GroupedProduct, GroupedTile
from wavecast.model.ranking.product import TiledProduct
from wavecast.model.ranking.skinny import SkinnyProduct
from wavecast.model.ranking.streaming import StreamingKernel
from wavecast.model.ranking.tile import TileResources

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
