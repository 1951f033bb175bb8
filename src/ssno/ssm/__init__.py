"""State-space mathematics on plain tensors: modes, kernels, and exact ways to apply them. No learnable modules.

`kernel` samples the kernel of a set of modes, `scan` applies the modes to a sequence by the fastest exact method.
"""

from ssno.ssm.convolution import ConvolutionMethod, Direction, convolve, convolve_each_way, toeplitz
from ssno.ssm.discretise import (
    DISCRETISATIONS,
    ComplexPair,
    DiscreteModes,
    Discretisation,
    as_pair,
    bilinear,
    complex_mul,
    impulse,
    zero_order_hold,
)
from ssno.ssm.dplr import DiagonalHippo, LowRankSystem, hippo_legs, low_rank_kernel, truncated, untruncated
from ssno.ssm.initialise import INITIALISATIONS, Initialisation, log_steps
from ssno.ssm.kernel import Boundary, UndampedError, continuous_kernel, kernel
from ssno.ssm.recurrence import ChunkMaps, chunk_maps, linear_recurrence, scan_chunk, scan_chunked, zero_state
from ssno.ssm.scan import ScanMethod, choose_scan, prepared_taps, scan, scan_taps

__all__ = [
    "DISCRETISATIONS",
    "INITIALISATIONS",
    "Boundary",
    "ChunkMaps",
    "ComplexPair",
    "ConvolutionMethod",
    "DiagonalHippo",
    "Direction",
    "DiscreteModes",
    "Discretisation",
    "Initialisation",
    "LowRankSystem",
    "ScanMethod",
    "UndampedError",
    "as_pair",
    "bilinear",
    "choose_scan",
    "chunk_maps",
    "complex_mul",
    "continuous_kernel",
    "convolve",
    "convolve_each_way",
    "hippo_legs",
    "impulse",
    "kernel",
    "linear_recurrence",
    "log_steps",
    "low_rank_kernel",
    "prepared_taps",
    "scan",
    "scan_chunk",
    "scan_chunked",
    "scan_taps",
    "toeplitz",
    "truncated",
    "untruncated",
    "zero_order_hold",
    "zero_state",
]
