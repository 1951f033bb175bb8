"""What every S4 block shares: a linear scan of each channel, then a gated mixing of channels.

    y = GLU( W GELU( kernel * x + skip x ) + bias ),      W: h -> 2h,   GLU(a, b) = a sigmoid(b)

Blocks differ in the system behind the kernel: diagonal (`ssno.layers.s4d`), diagonal plus low rank (`ssno.layers.s4`).

Axes: b line, h channel, l grid point. `forward` takes (b, h, l) like every sequence layer; models call `columns` with
(h, l, b), the layout in which the convolution is one matrix product per channel and no copy is made.
"""

import abc

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class GatedBlock(nn.Module, abc.ABC):
    """Interface of the S4 blocks, with the part that is the same in all: skip, mixing and gate."""

    def __init__(self, channels: int):
        super().__init__()
        self.skip = nn.Parameter(torch.randn(channels))
        self.mix = nn.Linear(channels, 2 * channels)

    @abc.abstractmethod
    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""

    @abc.abstractmethod
    def scanned(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """The linear part: kernel * x + skip x."""

    def forward(self, x: Float[Tensor, "b h l"], *, spacing: float = 1.0) -> Float[Tensor, "b h l"]:
        """Scan every sequence. `spacing` is the grid spacing in units of the reference one."""
        return self.columns(x.permute(1, 2, 0), spacing=spacing).permute(2, 0, 1)

    def columns(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """The same on sequences stored as columns, (channel, position, line)."""
        return self.activate(self.scanned(x, spacing=spacing))

    def taps(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The kernel with the skip as one more tap at distance zero."""
        kernel = self.kernel(length, spacing=spacing)
        return torch.cat([kernel[:, :1] + self.skip[:, None], kernel[:, 1:]], dim=1)

    def activate(self, y: Float[Tensor, "h *columns"]) -> Float[Tensor, "h *columns"]:
        """GELU, mix channels, gate. Pointwise, so the columns may have any shape."""
        flat = functional.gelu(y).reshape(y.shape[0], -1)
        mixed = torch.addmm(self.mix.bias[:, None], self.mix.weight, flat)
        return functional.glu(mixed, dim=0).reshape(y.shape)
