"""Useful operations of SS-NO, counted on paper: what the mathematics needs, not what some code executes.

Per position (point of a frame) and forwards, with H channels, L points on the axis, T frames, W channels in the head:

    bidirectional scan, 1 axis  4 L H + 8 H^2     both directions as dense products; two maps H -> 2 H
    temporal memory             2 T H + 4 H^2
    head                        2 H W             (the map to one field is not counted)

A training step counts three times the forward pass. Dense products are counted whatever method runs, so the number is
meant for axes up to 256 points.
"""

from collections.abc import Sequence
from math import prod

from ssno.models.ssno import SSNOConfig


def forward_gflop(config: SSNOConfig, grid: Sequence[int], *, batch: int, frames: int) -> float:
    """10^9 useful operations of predicting every time step of a batch of trajectories."""
    h = config.hidden_channels
    scans = config.n_layers * sum(4 * length * h + 8 * h**2 for length in grid)
    memory = 2 * frames * h + 4 * h**2 if config.memory.window else 0
    head = 2 * h * config.head_channels
    return 1e-9 * batch * frames * prod(grid) * (scans + memory + head)


def training_gflop(config: SSNOConfig, grid: Sequence[int], *, batch: int, frames: int) -> float:
    """10^9 useful operations of a forward and a backward pass."""
    return 3 * forward_gflop(config, grid, batch=batch, frames=frames)
