"""The whole of SS-NO in one file: read this first.

    lift -> spatial blocks -> temporal memory -> spatial blocks -> project

A spatial block scans each grid axis forwards and backwards with damped Fourier kernels; memory scans the last K frames
at every grid point with a kernel of the same kind. Equation numbers are those of the paper (Koren and Lanthaler, 2026).

This is what one writes after reading the paper: nothing is tuned, nothing is made slow. `ssno.models.SSNO` is the same
network with more options, fast and streaming; the state dicts of the two are interchangeable, and tests hold outputs
and gradients of every fast path against this file, which is also what speed is measured against.

    model = ReferenceSSNO(in_channels=1, out_channels=1, n_dims=2)
    forecast = model(frames)                          # frames (batch, time, channel, x, y); the same shape comes out
    state = model.start(frames)                       # streaming: one frame in, the next one out
    frame, state = model.step(frames[:, -1], state)

Axes: b trajectory, t time step, c field, h channel, n state mode, l grid point or frame, then the grid.
"""

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.ssm.initialise import INITIAL_DAMPING, legs

DT_MIN, DT_MAX = 1e-3, 1e-1
Boundary = Literal["zero", "periodic"]


class Modes(nn.Module):
    """Damped Fourier kernels, one per channel (equations 4 and 5), discretised by a zero-order hold:

    kernel[l] = 2 Re sum_n C_n B_n (exp(dt lambda_n) - 1) / lambda_n exp(dt lambda_n l)
    lambda_n  = -damping_n - i frequency_n
    """

    def __init__(self, channels: int, d_state: int):
        super().__init__()
        pairs = d_state // 2  # states come in conjugate pairs, of which one is kept: hence 2 Re
        low, high = math.log(DT_MIN), math.log(DT_MAX)
        self.log_damping = nn.Parameter(torch.full((channels, pairs), math.log(INITIAL_DAMPING)))
        self.frequency = nn.Parameter(legs(d_state).float().repeat(channels, 1))
        self.log_step = nn.Parameter(low + (high - low) * torch.rand(channels))
        self.input_weight = nn.Parameter(torch.tensor([1.0, 0.0]).repeat(channels, pairs, 1))
        self.output_weight = nn.Parameter(torch.randn(channels, pairs, 2) * math.sqrt(0.5))

    def kernel(self, length: int, *, boundary: Boundary = "zero") -> Float[Tensor, "h l"]:
        """The first `length` taps; around a circle, the sum over all periodic images of the kernel."""
        rate = torch.complex(-torch.exp(self.log_damping), -self.frequency)
        dt_rate = rate * torch.exp(self.log_step)[:, None]
        weight = torch.view_as_complex(self.input_weight) * torch.view_as_complex(self.output_weight)
        gain = weight * torch.expm1(dt_rate) / rate
        if boundary == "periodic":
            gain = gain / -torch.expm1(length * dt_rate)  # geometric series of images
        powers = torch.exp(dt_rate[..., None] * torch.arange(length, device=rate.device))
        return 2 * torch.einsum("hn,hnl->hl", gain, powers).real


class S4DBlock(nn.Module):
    """One scan (equation 1): convolve each channel with its kernel, add the skip, apply GELU, mix channels, gate.

    out = GLU( W GELU( kernel * x + skip x ) + bias )
    """

    def __init__(self, channels: int, d_state: int):
        super().__init__()
        self.skip = nn.Parameter(torch.randn(channels))
        self.mix = nn.Linear(channels, 2 * channels)
        self.modes = Modes(channels, d_state)

    def forward(
        self, x: Float[Tensor, "b h l"], *, boundary: Boundary = "zero", window: int | None = None
    ) -> Float[Tensor, "b h l"]:
        """Scan sequences. `window` truncates the kernel to its first `window` taps."""
        length = x.shape[-1]
        kernel = self.modes.kernel(length, boundary=boundary)
        if window is not None:
            kernel = kernel * (torch.arange(length, device=x.device) < window)
        padded = length if boundary == "periodic" else 2 * length  # zeros keep the two ends of a line apart
        spectrum = torch.fft.rfft(kernel, n=padded) * torch.fft.rfft(x, n=padded)
        y = torch.fft.irfft(spectrum, n=padded)[..., :length] + self.skip[:, None] * x
        mixed = torch.einsum("oh,bhl->bol", self.mix.weight, functional.gelu(y)) + self.mix.bias[:, None]
        return functional.glu(mixed, dim=1)


class BidirectionalScan(nn.Module):
    """x + forward scan + flipped scan of the flipped line (equation 2)."""

    def __init__(self, channels: int, d_state: int):
        super().__init__()
        self.ahead, self.back = S4DBlock(channels, d_state), S4DBlock(channels, d_state)

    def forward(self, x: Float[Tensor, "b h l"], *, boundary: Boundary) -> Float[Tensor, "b h l"]:
        return x + self.ahead(x, boundary=boundary) + self.back(x.flip(-1), boundary=boundary).flip(-1)


class AxialBlock(nn.Module):
    """A spatial block: a bidirectional scan along each axis of the grid in turn, so every point sees every other."""

    def __init__(self, channels: int, d_state: int, n_dims: int):
        super().__init__()
        self.scans = nn.ModuleList(BidirectionalScan(channels, d_state) for _ in range(n_dims))

    def forward(self, field: Float[Tensor, "b h *grid"], *, boundary: Boundary) -> Float[Tensor, "b h *grid"]:
        for axis, scan in enumerate(self.scans):
            lines = field.movedim((1, 2 + axis), (-2, -1))  # b *other_axes h l
            field = scan(lines.flatten(0, -3), boundary=boundary).view(lines.shape).movedim((-2, -1), (1, 2 + axis))
        return field


class Memory(nn.Module):
    """A causal scan over the last `window` frames at every grid point. It replaces its input: no residual."""

    def __init__(self, channels: int, d_state: int, window: int):
        super().__init__()
        self.window, self.block = window, S4DBlock(channels, d_state)

    def forward(self, features: Float[Tensor, "b t h *grid"]) -> Float[Tensor, "b t h *grid"]:
        lines = features.movedim((2, 1), (-2, -1))  # b *grid h t
        return self.block(lines.flatten(0, -3), window=self.window).view(lines.shape).movedim((-2, -1), (2, 1))


class Pointwise(nn.Linear):
    """A linear map of channels, the same at every grid point."""

    def forward(self, x: Float[Tensor, "b c *grid"]) -> Float[Tensor, "b d *grid"]:
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class ChannelMLP(nn.Module):
    """The projection: two pointwise maps with GELU between them."""

    def __init__(self, channels: int, hidden: int, out_channels: int):
        super().__init__()
        self.widen, self.narrow = Pointwise(channels, hidden), Pointwise(hidden, out_channels)

    def forward(self, features: Float[Tensor, "b h *grid"]) -> Float[Tensor, "b c *grid"]:
        return self.narrow(functional.gelu(self.widen(features)))


class StreamingState(NamedTuple):
    """Features of the last `window` - 1 frames."""

    features: Float[Tensor, "b t h *grid"]


class ReferenceSSNO(nn.Module):
    """SS-NO on trajectories (b, t, c, *grid): time step t of the output predicts frame t + 1.

    The defaults are the paper's model: 203,713 parameters in 1D.
    """

    def __init__(
        self,
        *,
        in_channels: int = 1,
        out_channels: int = 1,
        n_dims: int = 1,
        hidden_channels: int = 64,
        n_layers: int = 4,
        d_state: int = 64,
        memory_window: int = 4,
        memory_d_state: int = 64,
        head_channels: int = 256,
        boundary: Boundary = "zero",
        coordinates: bool = True,
    ):
        super().__init__()
        self.boundary, self.coordinates = boundary, coordinates
        early, late = n_layers // 2, n_layers - n_layers // 2
        self.lift = Pointwise(in_channels + n_dims * coordinates, hidden_channels)
        self.blocks_before = nn.ModuleList(AxialBlock(hidden_channels, d_state, n_dims) for _ in range(early))
        self.memory = Memory(hidden_channels, memory_d_state, memory_window)
        self.blocks_after = nn.ModuleList(AxialBlock(hidden_channels, d_state, n_dims) for _ in range(late))
        self.head = ChannelMLP(hidden_channels, head_channels, out_channels)

    def forward(self, frames: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b t d *grid"]:
        """All time steps at once."""
        return self.project(self.memory(self.features(frames)))

    def features(self, frames: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b t h *grid"]:
        """Lift and scan space, frame by frame."""
        x = frames.flatten(0, 1)
        if self.coordinates:  # relative positions in [0, 1), the same at every resolution
            lines = [torch.arange(points, dtype=x.dtype, device=x.device) / points for points in x.shape[2:]]
            positions = torch.stack(torch.meshgrid(*lines, indexing="ij"))
            x = torch.cat([x, positions.expand(len(x), *positions.shape)], dim=1)
        x = self.lift(x)
        for block in self.blocks_before:
            x = block(x, boundary=self.boundary)
        return x.unflatten(0, frames.shape[:2])

    def project(self, features: Float[Tensor, "b t h *grid"]) -> Float[Tensor, "b t d *grid"]:
        """Scan space again and project, frame by frame."""
        x = features.flatten(0, 1)
        for block in self.blocks_after:
            x = block(x, boundary=self.boundary)
        return self.head(x).unflatten(0, features.shape[:2])

    def start(self, frames: Float[Tensor, "b t c *grid"]) -> StreamingState:
        """Begin a forecast from at least two frames, of which the newest is for the first `step` to take."""
        earlier = frames[:, :-1]
        return StreamingState(self.features(earlier[:, max(0, earlier.shape[1] - self.memory.window + 1) :]))

    def step(
        self, frame: Float[Tensor, "b c *grid"], state: StreamingState
    ) -> tuple[Float[Tensor, "b d *grid"], StreamingState]:
        """The newest frame in, the next frame out: features of every frame are computed once."""
        features = torch.cat([state.features, self.features(frame[:, None])], dim=1)[:, -self.memory.window :]
        kept = features[:, max(0, features.shape[1] - self.memory.window + 1) :]
        return self.project(self.memory(features)[:, -1:])[:, 0], StreamingState(kept)

    @torch.no_grad()
    def rollout(self, frames: Float[Tensor, "b t c *grid"], steps: int) -> Float[Tensor, "b s c *grid"]:
        """Forecast by feeding predictions back, the whole window computed anew for every frame."""
        forecast = []
        for _ in range(steps):
            forecast.append(self(frames[:, -self.memory.window :])[:, -1])
            frames = torch.cat([frames, forecast[-1][:, None]], dim=1)
        return torch.stack(forecast, dim=1)
