"""Temporal memory: a causal S4D or S4 block over the last K frames, at every grid point (as in MemNO).

The window is the first K taps of the causal kernel with zeros before the first frame, so time step t sees frames
t-K+1 ... t, and three ways to compute it agree: over a trajectory at once, over sliding windows, and streaming with a
buffer of the features of the last K frames. The output replaces the input unless `residual` adds it.

Axes: b trajectory, t time step, h channel, p grid point, k age of a frame (0 is now).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of, require_pairs, require_positive
from ssno.layers.block import CarryingBlock, DiscretisedKernels, GatedBlock, gated_scan, scan_weights
from ssno.layers.gate import gate
from ssno.layers.modes import ModeOptions, Modes, fast_start, kernels_of, require_circle, require_fading_images
from ssno.native.engine import plain
from ssno.ssm.convolution import Direction
from ssno.ssm.dplr import LowRankSystem, hippo_legs, low_rank_kernel, truncated, untruncated
from ssno.ssm.initialise import INITIAL_DAMPING, log_steps
from ssno.ssm.kernel import Boundary
from ssno.ssm.scan import scan

# The S4D block: scan each channel with a diagonal state-space system, then mix channels (`ssno.layers.block`).
#
# One block scans in one direction. `ssno.layers.axial` pairs two of them; `ssno.layers.memory` turns one into memory.
#
# Axes: b line, h channel, n state mode, l grid point.


class S4DBlock(CarryingBlock):
    """Scan a sequence in one direction with learnable diagonal state-space kernels, then mix channels.

    Args:
        channels: number of channels h, each with its own system.
        d_state: states per channel; even, because they come in conjugate pairs.
        direction: "forward" looks at points before, "backward" at points after.
        boundary: what a scan assumes outside the axis: "zero" zeros, "periodic" infinitely many periodic images,
            "periodic-truncated" the kernel of one period, applied circularly, "neumann" and "dirichlet" a mirror image,
            as at a wall, "learned" a constant for each channel, which starts at zero.
        options: how the modes start and what of them is learned; by default `fast_start`.
    """

    beyond: Float[Tensor, " h"]
    """The input assumed before the end where the scan starts; only with boundary "learned"."""

    def __init__(
        self,
        channels: int,
        *,
        d_state: int = 64,
        direction: Direction = "forward",
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__(channels)
        options = options or fast_start()
        require_fading_images(boundary, options.damping)
        require_circle(boundary, options.discretisation)
        self.direction = direction
        self.boundary = boundary
        self.transfer = options.resolution_transfer
        self.modes = Modes(channels, d_state=d_state, options=options)
        if boundary == "learned":
            self.beyond = nn.Parameter(torch.zeros(channels))

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""
        return self.modes.kernel(length, spacing=spacing, boundary=self.boundary)

    def sampled_alike(self) -> Hashable:
        return self.boundary, self.modes.discretisation

    @classmethod
    def kernels(cls, blocks: Sequence["S4DBlock"], length: int, *, spacing: float = 1.0) -> Float[Tensor, "s h l"]:
        """The kernels of several blocks with one boundary and discretisation, in one go."""
        return kernels_of([b.modes for b in blocks], length, spacing=spacing, boundary=blocks[0].boundary)

    def steady_response(self, *, spacing: float = 1.0) -> Float[Tensor, " h"]:
        """The answer of kernel and skip to a constant input of one on a line without ends."""
        return self.modes.steady_response(spacing) + self.skip

    def with_ends(self, weights: DiscretisedKernels, length: int) -> DiscretisedKernels:
        """With boundary "learned": what the values v assumed outside a line add to its scan.

        A scan is linear: kernel * x with v outside is kernel * (x - v) with zero outside, plus the response to v alone.
        """
        if self.boundary != "learned":
            return weights
        blocks = [block for block in weights.blocks if isinstance(block, S4DBlock)]
        values = torch.stack([block.beyond for block in blocks], dim=1)[..., None]  # h d 1
        steady = [block.steady_response(spacing=weights.sampling.spacing) for block in blocks]
        inside = weights.scan(values.new_ones(len(values), 1, length, 1))[:, :, 0, :, 0]
        return weights._replace(ends=values * (torch.stack(steady, dim=1)[..., None] - inside))

    def carried(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """kernel * x + skip x by carrying states along."""
        return scan(
            self.modes.discretised(spacing),
            self.modes.weight(),
            x,
            skip=self.skip,
            direction=self.direction,
            boundary=self.boundary,
            method="chunked",
        )


# The full S4 block: scan each channel with a diagonal-plus-low-rank system, then mix channels (`ssno.layers.block`).
#
# The system is  s' = (diag(rate) - P P^H) s + B x,  y = C s,  rate = -damping - i frequency,  started at HiPPO-LegS
# (`ssno.ssm.dplr`) and sampled by the bilinear rule; its kernel comes from `ssno.ssm.dplr`. The parameter C is the
# truncated one, C (I - Abar^length), which makes the kernel at `length` points cheap; kernels of other lengths and
# spacings follow from it exactly, by dense algebra.
#
# Axes: b line, h channel, n state mode (one per conjugate pair), r rank, l grid point.


class LowRankModes(nn.Module):
    """The parameters of `channels` independent systems with `d_state` states each (in conjugate pairs).

    `length` is the number of points to which the output weights are truncated; None takes them as truncated to
    whatever length is asked for.
    """

    def __init__(self, channels: int, *, d_state: int, length: int | None):
        super().__init__()
        require_pairs("d_state", d_state)
        self.length = length
        start = hippo_legs(d_state)
        pairs = d_state // 2
        steps = log_steps(channels, smallest=ModeOptions.dt_min, largest=ModeOptions.dt_max)
        self.log_damping = nn.Parameter(torch.full((channels, pairs), math.log(INITIAL_DAMPING)))
        kind = self.log_damping.detach()  # of the default type, on the default device
        self.frequency = nn.Parameter(start.frequency.to(kind).repeat(channels, 1))
        self.log_step = nn.Parameter(steps.to(kind))
        self.low_rank = nn.Parameter(torch.view_as_real(start.low_rank).to(kind).repeat(1, channels, 1, 1))
        self.input_weight = nn.Parameter(torch.view_as_real(start.input_weight).to(kind).repeat(channels, 1, 1))
        self.output_weight = nn.Parameter(torch.randn(channels, pairs, 2) * math.sqrt(0.5))
        if length is not None:
            self.output_weight.data = torch.view_as_real(truncated(self.system(), length=length).output_weight.detach())

    def state_space_parameters(self) -> list[nn.Parameter]:
        """Parameters of the dynamics, which optimisers treat apart: no weight decay, their own rate."""
        return [p for name, p in self.named_parameters() if name != "output_weight"]

    def system(self, spacing: float = 1.0) -> LowRankSystem:
        """The systems on a grid whose spacing is `spacing` times the reference one; C as stored."""
        return LowRankSystem(
            torch.complex(-torch.exp(self.log_damping), -self.frequency),
            _complex(self.low_rank),
            _complex(self.input_weight),
            _complex(self.output_weight),
            torch.exp(self.log_step) * spacing,
        )

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points."""
        if self.length is None:
            return low_rank_kernel(self.system(spacing), length=length)
        if spacing == 1.0 and length <= self.length:
            return low_rank_kernel(self.system(), length=self.length)[:, :length]
        plain = untruncated(self.system(), length=self.length)._replace(step=torch.exp(self.log_step) * spacing)
        return low_rank_kernel(truncated(plain, length=length), length=length)


class S4Block(GatedBlock):
    """Scan sequences forwards with learnable diagonal-plus-low-rank kernels, then mix channels.

    Args:
        channels: number of channels h, each with its own system.
        length: number of points for which the kernel is cheapest; others are exact too, but take O(n^3) per channel.
        d_state: states per channel; even, because they come in conjugate pairs.
    """

    def __init__(self, channels: int, *, length: int, d_state: int = 64):
        super().__init__(channels)
        require_positive("length", length)
        self.modes = LowRankModes(channels, d_state=d_state, length=length)

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""
        return self.modes.kernel(length, spacing=spacing)


def _complex(packed: Float[Tensor, "*shape 2"]) -> Complex[Tensor, "*shape"]:
    return torch.complex(packed[..., 0], packed[..., 1])


# Temporal memory: a causal S4D or S4 block over the last K frames, at every grid point (as in MemNO).

MemoryKernel = Literal["s4d", "s4"]
"""The system of the temporal memory: diagonal, or diagonal plus low rank."""
LARGEST_SIZES = {"window": 4096, "d_state": 1024}


@dataclass(frozen=True)
class MemoryOptions:
    """The temporal memory of a model."""

    window: int = 4
    """Frames that the memory sees, the newest included; 0 for a model without memory."""
    d_state: int = 64
    """States per channel; even."""
    kernel: MemoryKernel = "s4d"
    """The state-space system: diagonal (s4d) or diagonal plus low rank (s4)."""

    def __post_init__(self) -> None:
        if self.window < 0:
            raise ValueError(f"`memory.window` must be 0 (no memory) or more, got {self.window}.")
        require_pairs("memory.d_state", self.d_state)
        require_one_of("memory.kernel", self.kernel, get_args(MemoryKernel))
        for name, most in LARGEST_SIZES.items():
            if getattr(self, name) > most:
                raise ValueError(f"`memory.{name}` must be at most {most:,}, got {getattr(self, name):,}.")

    def build(self, channels: int, *, residual: bool = False) -> "TemporalMemory | None":
        """The memory block of a model whose features have `channels` channels; None without memory."""
        if not self.window:
            return None
        return TemporalMemory(channels, window=self.window, d_state=self.d_state, kernel=self.kernel, residual=residual)


class TemporalMemory(nn.Module):
    """Mix each grid point's features over the last `window` frames.

    The system is diagonal (`kernel="s4d"`) or diagonal plus low rank ("s4"). The output replaces the newest features,
    or with `residual` is added to them.
    """

    def __init__(
        self,
        channels: int,
        *,
        window: int,
        d_state: int = 64,
        kernel: MemoryKernel = "s4d",
        residual: bool = False,
    ):
        super().__init__()
        if window < 1:
            raise ValueError(f"`window` must be at least 1, got {window}. For a model without memory, leave it out.")
        require_one_of("kernel", kernel, get_args(MemoryKernel))
        self.window, self.residual = window, residual
        self.block: GatedBlock = (
            S4DBlock(channels, d_state=d_state, options=ModeOptions())  # few frames: the grid's modes would not fit
            if kernel == "s4d"
            else S4Block(channels, d_state=d_state, length=window)
        )

    def forward(self, features: Float[Tensor, "b t h *grid"]) -> Float[Tensor, "b t h *grid"]:
        """Every time step of a trajectory at once."""
        columns = features.movedim((2, 1), (0, -1))  # h b *grid t
        return self.columns(columns).movedim((0, -1), (2, 1))

    def weights(self) -> DiscretisedKernels:
        """What the block needs to scan `window` frames."""
        return scan_weights([((self.block,), self.window, 1.0)])[0]

    def columns(
        self, features: Float[Tensor, "h *points t"], *, weights: DiscretisedKernels | None = None
    ) -> Float[Tensor, "h *points t"]:
        """The same with channel first and time last, the layout of `ssno.layers.axial` with frames folded (b, t)."""
        steps = features.shape[-1]
        weights = self.weights() if weights is None else weights
        assert weights.taps is not None
        taps = functional.pad(weights.taps[..., :steps], (0, max(0, steps - self.window)))
        lines = features.reshape(features.shape[0], -1, steps, 1)
        out = gated_scan(lines, weights.with_taps(taps)).view(features.shape)
        return features + out if self.residual else out

    def newest(
        self, buffer: Float[Tensor, "k h *points"], *, weights: DiscretisedKernels | None = None
    ) -> Float[Tensor, "h *points"]:
        """Only the newest time step, from a buffer of at most `window` feature maps, oldest first."""
        weights = self.weights() if weights is None else weights
        assert weights.taps is not None
        by_age = weights.taps[0, :, : buffer.shape[0]].flip(1).t()  # k h, oldest first
        maps = buffer.flatten(2)
        # A product of matrices is one pass over the maps, as they lie; autocast would lower its digits.
        mixed = (by_age[..., None] * maps).sum(dim=0) if plain() else (by_age.t()[:, None] @ maps.transpose(0, 1))[:, 0]
        out = gate(mixed[:, None], weights.mix, weights.bias).view(buffer.shape[1:])
        return buffer[-1] + out if self.residual else out
