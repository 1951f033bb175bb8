"""The S4D block: scan each channel with a diagonal state-space system, then mix channels (`ssno.layers.block`).

One block scans in one direction. `ssno.layers.sweeps` pairs two of them; `ssno.layers.memory` turns one into memory.

Axes: b line, h channel, n state mode, l grid point.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.block import CarryingBlock, DiscretisedKernels
from ssno.layers.modes import ModeOptions, Modes, fast_start, kernels_of, require_circle, require_fading_images
from ssno.layers.public_arrays import PUBLIC_ARRAYS, fill_block, named_arrays
from ssno.ssm.convolution import Direction
from ssno.ssm.kernel import Boundary
from ssno.ssm.scan import scan


class S4DBlock(CarryingBlock):
    """Scan a sequence in one direction with learnable diagonal state-space kernels, then mix channels.

    Args:
        channels: number of channels h, each with its own system.
        d_state: states per channel; even, because they come in conjugate pairs.
        direction: "forward" looks at points before, "backward" at points after.
        boundary: what lies beyond the axis: "zero" nothing, "wrapped" infinitely many periodic images, "one-period" the
            kernel of one period, applied circularly, "even" and "odd" a mirror image, as at a wall, "learned" a
            constant for each channel, which starts at zero.
        options: how the modes start and what of them is learned; by default `fast_start`.
    """

    beyond: Float[Tensor, " h"]
    """The value of the input beyond the end where the scan starts; only with boundary "learned"."""

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
        self.transfer = options.transfer
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
        """With boundary "learned": what the values v beyond the ends of a line add to its scan.

        A scan is linear: kernel * x, with v beyond, is kernel * (x - v), with zero beyond, plus the answer to v alone.
        """
        if self.boundary != "learned":
            return weights
        blocks = [block for block in weights.blocks if isinstance(block, S4DBlock)]
        values = torch.stack([block.beyond for block in blocks], dim=1)[..., None]  # h d 1
        steady = [block.steady_response(spacing=weights.sampling.spacing) for block in blocks]
        heard = weights.scan(values.new_ones(len(values), 1, length, 1))[:, :, 0, :, 0]
        return weights._replace(ends=values * (torch.stack(steady, dim=1)[..., None] - heard))

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

    @classmethod
    def from_public_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "S4DBlock":
        """Build a forward block from the arrays of a public S4 block in diagonal mode.

        Names, with `layer__kernel__` standing before the first five and `.` allowed in place of `__`:

            A_real (h, n) log damping      A_imag (h, n) frequency w of rate = -exp(A_real) - i w
            B, C   (1, h, n, 2) complex    inv_dt (h, 1) log step
            layer__D (1, h) skip           output_linear__0__weight (2h, h), output_linear__0__bias (2h,)

        A leading axis of one may be missing, and A_real, A_imag, B may hold fewer rows, shared by the channels in turn.
        """
        value = named_arrays(arrays, PUBLIC_ARRAYS, kind="diagonal")
        channels = value["layer__D"].numel()
        pairs = value["layer__kernel__A_real"].shape[-1]
        block = cls(channels, d_state=2 * pairs).to(value["layer__D"].dtype)
        fill_block(block, value, systems=f"{channels} channels with {pairs} modes")
        return block
