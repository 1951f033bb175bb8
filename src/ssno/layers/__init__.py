"""Learnable pieces that models are made of."""

from ssno.layers.block import GatedBlock, ScanWeights, gated_scan, scan_weights
from ssno.layers.factorised_attention import FactorisedAttention
from ssno.layers.gate import gate
from ssno.layers.head import Head
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.memory import MemoryKernel, TemporalMemory
from ssno.layers.modes import Damping, Frequency, ModeOptions, Modes, fast_start
from ssno.layers.pointwise import Pointwise, coordinates, with_coordinates
from ssno.layers.product import AddedMemory, ProductScan, ProductSweep
from ssno.layers.s4 import S4Block
from ssno.layers.s4d import S4DBlock
from ssno.layers.selective import SelectiveBlock
from ssno.layers.spectral import SpectralConvolution
from ssno.layers.sweeps import (
    AxisSweep,
    FlattenedSweep,
    OneWaySweep,
    ParallelSweep,
    Residual,
    Sweep,
    TwoWayScan,
    along,
)

__all__ = [
    "AddedMemory",
    "AxisSweep",
    "Damping",
    "FactorisedAttention",
    "FlattenedSweep",
    "Frequency",
    "GatedBlock",
    "Head",
    "LinearSSM",
    "LinearSweep",
    "MemoryKernel",
    "ModeOptions",
    "Modes",
    "OneWaySweep",
    "ParallelSweep",
    "Pointwise",
    "ProductScan",
    "ProductSweep",
    "Residual",
    "S4Block",
    "S4DBlock",
    "ScanWeights",
    "SelectiveBlock",
    "SpectralConvolution",
    "Sweep",
    "TemporalMemory",
    "TwoWayScan",
    "along",
    "coordinates",
    "fast_start",
    "gate",
    "gated_scan",
    "scan_weights",
    "with_coordinates",
]
