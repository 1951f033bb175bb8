"""Make another grid the reference of learned kernels: what fine-tuning on that grid starts from.

A kernel was learned on n0 points of an axis and is to be trained further on n points of the same axis. Its steps are
rescaled, so that decay lengths and wavelengths stay what they are, and its output weights and skip are fitted such that
every wave that both grids resolve meets the same numbers as before:

    K[m] = K0[m] to 1 or 2 %,    |m| < min(n0, n) / 2

That is linear in the weights: least squares with one unknown for each state and one for the skip, in which changes of
the weights have their price too (`RIDGE`). Waves that only the new grid has are free to learn. Without this, a
kernel on a finer grid acts on interleaved copies of the learned one, in training too (`ssno.ssm.resolution`).

Axes: h channel, n state mode, u unknown, m wave, l grid point.
"""

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.layers.block import GatedBlock
from ssno.layers.memory import S4DBlock
from ssno.layers.modes import SYSTEM, sample
from ssno.native.operations import Systems
from ssno.ssm.kernel import LINEAR_CONVOLUTION, WALLS
from ssno.ssm.resolution import learned_grid

RIDGE = 0.03
"""What a change of the weights costs beside an equal difference of spectra. Exact spectra would need weights a thousand
times as large, which cancel each other; with this they stay as large as they are, and spectra agree to 1 to 2 %."""


@torch.no_grad()
def continue_onto(block: GatedBlock, length: int, step: float) -> None:
    """Let a block refer to an axis of `length` points that lie `step` times as far apart as those it refers to now."""
    modes = block.get_submodule("modes")
    assert isinstance(modes.log_step, Tensor)
    if not isinstance(block, S4DBlock) or block.transfer == "resample":  # the same kernel at other points
        modes.log_step.add_(math.log(step))
        return
    turns = 2 if block.boundary in WALLS else 1
    points, stretched = learned_grid(length, step)
    systems, _ = unknowns(block)
    before = spectra(block, systems, length=turns * points, spacing=stretched)
    block.modes.log_step.add_(math.log(step))
    systems, weights = unknowns(block)
    after = spectra(block, systems, length=turns * length, spacing=1.0)
    shared = (min(before.shape[-1], after.shape[-1])) - 1  # without the highest wave of the coarser grid
    before, after = before[..., :shared], after[..., :shared]
    missing = (weights[..., None] * (before - after)).sum(dim=1)
    equations = torch.cat([after.real, after.imag], dim=-1).transpose(1, 2)
    least = RIDGE * torch.eye(weights.shape[1], dtype=weights.dtype, device=weights.device).expand(len(weights), -1, -1)
    sides = torch.cat([missing.real, missing.imag, torch.zeros_like(weights)], dim=-1)
    change = torch.linalg.lstsq(torch.cat([equations, least], dim=1), sides[..., None]).solution[..., 0]
    weights = weights + change
    block.skip.copy_(weights[:, -1])
    block.modes.output_weight.copy_(weights[:, :-1].unflatten(1, (-1, 2)))


def unknowns(block: S4DBlock) -> tuple[Systems, Float[Tensor, "h u"]]:
    """A system for every output weight of every channel, alone and one; and the weights, the skip last."""
    modes, (channels, pairs, _) = block.modes, block.modes.output_weight.shape
    states = 2 * pairs
    alone = torch.eye(states, dtype=torch.float64, device=block.skip.device).view(states, pairs, 2)
    rows = [getattr(modes, name).double().repeat_interleave(states, dim=0) for name in SYSTEM[:-1]]
    weights = torch.cat([modes.output_weight.flatten(1), block.skip[:, None]], dim=1).double()
    return Systems._make([*rows, alone.repeat(channels, 1, 1)]), weights


def spectra(block: S4DBlock, systems: Systems, *, length: int, spacing: float) -> Complex[Tensor, "h u m"]:
    """What one unit of every weight does to the waves of a circle; lines with ends are padded to twice their length."""
    taps = sample(systems, block.modes.discretisation, length=length, spacing=spacing, boundary=block.boundary)
    taps = taps.unflatten(0, (len(block.skip), -1))
    skip = torch.zeros_like(taps[:, :1])
    skip[..., 0] = 1
    padded = 2 * length if block.boundary in LINEAR_CONVOLUTION else length
    return torch.fft.rfft(torch.cat([taps, skip], dim=1), n=padded)
