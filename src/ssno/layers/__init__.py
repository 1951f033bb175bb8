"""Learnable pieces that models are made of."""

from ssno.layers.block import DiscretisedKernels, GatedBlock, gated_scan, scan_weights
from ssno.layers.factorised_attention import FactorisedAttention
from ssno.layers.gate import gate
from ssno.layers.head import ChannelMLP
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.memory import MemoryKernel, TemporalMemory
from ssno.layers.modes import Damping, Frequency, ModeOptions, Modes, fast_start
from ssno.layers.pointwise import Pointwise, coordinates, with_coordinates
from ssno.layers.product import ProductAxialScan, ProductScan, ResidualMemory
from ssno.layers.s4 import S4Block
from ssno.layers.s4d import S4DBlock
from ssno.layers.selective import SelectiveBlock
from ssno.layers.spectral import SpectralConvolution
from ssno.layers.sweeps import (
    AxialScan,
    BidirectionalScan,
    ParallelAxialScan,
    RasterScan,
    Residual,
    SpatialScan,
    UnidirectionalScan,
    along,
)

__all__ = [
    "AxialScan",
    "BidirectionalScan",
    "ChannelMLP",
    "Damping",
    "DiscretisedKernels",
    "FactorisedAttention",
    "Frequency",
    "GatedBlock",
    "LinearSSM",
    "LinearSweep",
    "MemoryKernel",
    "ModeOptions",
    "Modes",
    "ParallelAxialScan",
    "Pointwise",
    "ProductAxialScan",
    "ProductScan",
    "RasterScan",
    "Residual",
    "ResidualMemory",
    "S4Block",
    "S4DBlock",
    "SelectiveBlock",
    "SpatialScan",
    "SpectralConvolution",
    "TemporalMemory",
    "UnidirectionalScan",
    "along",
    "coordinates",
    "fast_start",
    "gate",
    "gated_scan",
    "scan_weights",
    "with_coordinates",
]
