"""Learnable pieces that models are made of."""

from ssno.layers.axial import (
    AxialScan,
    BidirectionalScan,
    BlockOptions,
    ParallelAxialScan,
    ProductAxialScan,
    ProductScan,
    RasterScan,
    Residual,
    SpatialScan,
    UnidirectionalScan,
    along,
)
from ssno.layers.block import DiscretisedKernels, GatedBlock, gated_scan, scan_weights
from ssno.layers.gate import gate
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.memory import MemoryKernel, MemoryOptions, S4Block, S4DBlock, TemporalMemory
from ssno.layers.modes import Damping, Frequency, ModeOptions, Modes, fast_start
from ssno.layers.pointwise import ChannelMLP, Pointwise, coordinates, with_coordinates
from ssno.layers.selective import SelectiveBlock
from ssno.layers.spectral import SpectralConvolution

__all__ = [
    "AxialScan",
    "BidirectionalScan",
    "BlockOptions",
    "ChannelMLP",
    "Damping",
    "DiscretisedKernels",
    "Frequency",
    "GatedBlock",
    "LinearSSM",
    "LinearSweep",
    "MemoryKernel",
    "MemoryOptions",
    "ModeOptions",
    "Modes",
    "ParallelAxialScan",
    "Pointwise",
    "ProductAxialScan",
    "ProductScan",
    "RasterScan",
    "Residual",
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
