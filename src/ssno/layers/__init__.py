"""Learnable pieces that models are made of."""

from ssno.layers.axial import (
    AxialScan,
    BidirectionalScan,
    ParallelAxialScan,
    ProductAxialScan,
    ProductScan,
    RasterScan,
    Residual,
    ResidualMemory,
    SpatialScan,
    UnidirectionalScan,
    along,
)
from ssno.layers.block import DiscretisedKernels, GatedBlock, gated_scan, scan_weights
from ssno.layers.gate import gate
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.memory import MemoryKernel, S4Block, S4DBlock, TemporalMemory
from ssno.layers.modes import Damping, Frequency, ModeOptions, Modes, fast_start
from ssno.layers.pointwise import ChannelMLP, Pointwise, coordinates, with_coordinates
from ssno.layers.selective import SelectiveBlock
from ssno.layers.spectral import SpectralConvolution

__all__ = [
    "AxialScan",
    "BidirectionalScan",
    "ChannelMLP",
    "Damping",
    "DiscretisedKernels",
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
