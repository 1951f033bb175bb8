"""State-space mathematics on plain tensors: modes, kernels, and exact ways to apply them. No learnable modules.

Sampling a kernel is `ssno.ssm.kernel.kernel`, applying modes `ssno.ssm.scan.scan`: functions named like their modules.
"""

from ssno.ssm.chunked import ChunkMaps, chunk_maps, scan_chunk, scan_chunked
from ssno.ssm.convolution import Direction, Method, convolve, convolve_each_way, toeplitz
from ssno.ssm.discretise import DISCRETISATIONS, DiscreteModes, Discretisation, bilinear, impulse, zero_order_hold
from ssno.ssm.dplr import LowRankSystem, low_rank_kernel, truncated, untruncated
from ssno.ssm.hippo import DiagonalHippo, hippo_legs
from ssno.ssm.initialise import INITIALISATIONS, Initialisation, log_steps
from ssno.ssm.kernel import Boundary, UndampedError, continuous_kernel
from ssno.ssm.pairs import Pair, pair, times
from ssno.ssm.recurrence import no_state, recur
from ssno.ssm.scan import ScanMethod, choose_scan, prepared_taps, scan_taps

__all__ = [
    "DISCRETISATIONS",
    "INITIALISATIONS",
    "Boundary",
    "ChunkMaps",
    "DiagonalHippo",
    "Direction",
    "DiscreteModes",
    "Discretisation",
    "Initialisation",
    "LowRankSystem",
    "Method",
    "Pair",
    "ScanMethod",
    "UndampedError",
    "bilinear",
    "choose_scan",
    "chunk_maps",
    "continuous_kernel",
    "convolve",
    "convolve_each_way",
    "hippo_legs",
    "impulse",
    "log_steps",
    "low_rank_kernel",
    "no_state",
    "pair",
    "prepared_taps",
    "recur",
    "scan_chunk",
    "scan_chunked",
    "scan_taps",
    "times",
    "toeplitz",
    "truncated",
    "untruncated",
    "zero_order_hold",
]
