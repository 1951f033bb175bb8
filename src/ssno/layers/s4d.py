"""The S4D block: a state-space convolution, then a gated mixing of channels.

    y = GLU( W GELU( kernel * x + skip x ) + bias ),      W: h -> 2h,   GLU(a, b) = a sigmoid(b)

One block scans in one direction. `ssno.layers.scan` pairs two of them; `ssno.layers.memory` turns one into memory.

Axes: b line, h channel, l grid point. `forward` takes (b, h, l) like every sequence layer; models call `columns` with
(h, l, b), the layout in which the convolution is one matrix product per channel and no copy is made.
"""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.modes import ModeOptions, Modes
from ssno.ssm.convolution import Direction, Method, convolve
from ssno.ssm.kernel import Boundary

PUBLIC_ARRAYS = (
    *(f"layer__kernel__{name}" for name in ("A_real", "A_imag", "B", "C", "inv_dt")),
    *("layer__D", "output_linear__0__weight", "output_linear__0__bias"),
)


class S4DBlock(nn.Module):
    """Scan a sequence in one direction with learnable diagonal state-space kernels, then mix channels.

    Args:
        channels: number of channels h, each with its own system.
        d_state: states per channel; even, because they come in conjugate pairs.
        direction: "forward" looks at points before, "backward" at points after.
        boundary: what lies beyond the axis: "zero" nothing, "wrapped" periodic images, "one-period" see CONTRACTS.
        options: how the modes start and what of them is learned.
    """

    def __init__(
        self,
        channels: int,
        *,
        d_state: int = 64,
        direction: Direction = "forward",
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        options = options or ModeOptions()
        if boundary == "wrapped" and options.damping == "absent":
            raise ValueError(
                "`boundary='wrapped'` sums infinitely many periodic images, which needs damping > 0, but "
                "damping='absent'. Use boundary='one-period', or damping='learnable' or 'fixed'."
            )
        self.direction: Direction = direction
        self.boundary: Boundary = boundary
        self.method: Method = "auto"
        self.modes = Modes(channels, d_state=d_state, options=options)
        self.skip = nn.Parameter(torch.randn(channels))
        self.mix = nn.Linear(channels, 2 * channels)

    def forward(self, x: Float[Tensor, "b h l"], *, spacing: float = 1.0) -> Float[Tensor, "b h l"]:
        """Scan every sequence. `spacing` is the grid spacing in units of the reference one."""
        return self.columns(x.permute(1, 2, 0), spacing=spacing).permute(2, 0, 1)

    def columns(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """The same on sequences stored as columns, (channel, position, line)."""
        return self.activate(self.convolved(x, self.modes.kernel(x.shape[1], spacing=spacing, boundary=self.boundary)))

    def convolved(self, x: Float[Tensor, "h l b"], kernel: Float[Tensor, "h l"]) -> Float[Tensor, "h l b"]:
        """kernel * x + skip x: the skip is one more tap at distance zero."""
        with_skip = torch.cat([kernel[:, :1] + self.skip[:, None], kernel[:, 1:]], dim=1)
        periodic = self.boundary != "zero"
        return convolve(x, with_skip, direction=self.direction, periodic=periodic, method=self.method)

    def activate(self, y: Float[Tensor, "h *columns"]) -> Float[Tensor, "h *columns"]:
        """GELU, mix channels, gate. Pointwise, so the columns may have any shape."""
        flat = functional.gelu(y).reshape(y.shape[0], -1)
        mixed = torch.addmm(self.mix.bias[:, None], self.mix.weight, flat)
        return functional.glu(mixed, dim=0).reshape(y.shape)

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""
        return self.modes.kernel(length, spacing=spacing, boundary=self.boundary)

    @classmethod
    def from_public_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "S4DBlock":
        """Build a forward block from the arrays of a public S4 block in diagonal mode.

        Names, with `layer__kernel__` standing before the first five and `.` allowed in place of `__`:

            A_real (h, n) log damping      A_imag (h, n) frequency w of rate = -exp(A_real) - i w
            B, C   (1, h, n, 2) complex    inv_dt (h, 1) log step
            layer__D (1, h) skip           output_linear__0__weight (2h, h), output_linear__0__bias (2h,)

        A leading axis of one may be missing, and A_real, A_imag, B may hold one row shared by all channels.
        """
        named = {key.replace(".", "__"): value for key, value in arrays.items()}
        missing = [name for name in PUBLIC_ARRAYS if name not in named]
        if missing:
            raise ValueError(
                f"`arrays` lacks {', '.join(missing)}; it has {', '.join(sorted(arrays)) or 'nothing'}. "
                "Pass the state dict of a public S4 block in diagonal mode as NumPy arrays."
            )
        value = {name: torch.as_tensor(np.array(named[name])) for name in PUBLIC_ARRAYS}
        channels = value["layer__D"].numel()
        pairs = value["layer__kernel__A_real"].shape[-1]
        block = cls(channels, d_state=2 * pairs).to(value["layer__D"].dtype)
        targets: list[tuple[str, Tensor, tuple[int, ...]]] = [
            ("layer__kernel__A_real", block.modes.log_damping, (-1, pairs)),
            ("layer__kernel__A_imag", block.modes.frequency, (-1, pairs)),
            ("layer__kernel__B", block.modes.input_weight, (-1, pairs, 2)),
            ("layer__kernel__C", block.modes.output_weight, (-1, pairs, 2)),
            ("layer__kernel__inv_dt", block.modes.log_step, (-1,)),
            ("layer__D", block.skip, (-1,)),
            ("output_linear__0__weight", block.mix.weight, (2 * channels, -1)),
            ("output_linear__0__bias", block.mix.bias, (-1,)),
        ]
        for name, target, shape in targets:
            try:
                row = value[name].reshape(shape).expand(target.shape)
            except RuntimeError:
                raise ValueError(
                    f"`arrays[{name!r}]` has shape {tuple(value[name].shape)}, which does not fit "
                    f"{channels} channels with {pairs} modes; expected something like {tuple(target.shape)}."
                ) from None
            target.data.copy_(row)
        return block
