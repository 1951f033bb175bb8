"""SS-NO as the paper's listing writes it: the oracle of every fast path, and what speed is measured against.

Sequences are (line, channel, point). A block builds its kernel anew from complex exponentials at every point, convolves
with a zero-padded FFT, adds the skip, and mixes channels; the backward direction flips, scans and flips again; every
axis has its own rearrangement; a forecast computes its whole window of K frames for each new one.

Nothing here is tuned, and nothing made slow: it is what one writes after reading the paper. It shares the parameters of
the model it is made from.

Axes: b trajectory, t time slot, h channel, n state mode, l grid point, c field.
"""

import torch
from einops import rearrange
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.modes import Modes
from ssno.layers.pointwise import with_coordinates
from ssno.layers.s4d import S4DBlock
from ssno.layers.sweeps import AxisSweep, TwoWayScan
from ssno.models.ssno import SSNO


class Reference(nn.Module):
    """The paper's listing with the parameters of `model`. Same outputs, same gradients, same calling convention.

    It covers what the listing does: an S4D memory, nothing beyond the grid (`boundary="zero"`), zero-order hold.
    """

    def __init__(self, model: SSNO):
        super().__init__()
        config = model.config
        covered = config.boundary == "zero" and config.modes.discretisation == "zoh" and not config.frames_as_channels
        if not covered or (model.memory is not None and not isinstance(model.memory.block, S4DBlock)):
            raise ValueError(
                "The paper's listing knows boundary='zero', discretisation='zoh', an S4D memory and no frames as "
                f"channels; got {config}."
            )
        self.model = model

    def forward(self, frames: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b t c_out *grid"]:
        """Predict the frame after each slot, all slots at once."""
        model, slots = self.model, frames.shape[1]
        fields = with_coordinates(frames.flatten(0, 1), model.config.located_axes())
        features = (
            functional.linear(fields.movedim(1, -1), model.lift.weight, model.lift.bias).movedim(-1, 1).contiguous()
        )
        for block in model.blocks_before:
            features = sweep(block, features)
        if model.memory is not None:
            lines = rearrange(features, "(b t) h ... -> b ... h t", t=slots)
            remembered = scan(model.memory.block, lines.flatten(0, -3), window=model.memory.window)
            features = rearrange(remembered.view(lines.shape), "b ... h t -> (b t) h ...")
        for block in model.blocks_after:
            features = sweep(block, features)
        widened = functional.linear(features.movedim(1, -1), model.head.widen.weight, model.head.widen.bias)
        output = functional.linear(functional.gelu(widened), model.head.narrow.weight, model.head.narrow.bias)
        return output.movedim(-1, 1).unflatten(0, (-1, slots))

    @torch.no_grad()
    def rollout(self, first_frames: Float[Tensor, "b t c *grid"], steps: int) -> Float[Tensor, "b steps c *grid"]:
        """Forecast by computing the whole window anew for every frame."""
        memory = self.model.memory
        window = memory.window if memory is not None else 1
        frames = first_frames[:, -window:]
        forecast = []
        for _ in range(steps):
            forecast.append(self(frames)[:, -1])
            frames = torch.cat([frames, forecast[-1][:, None]], dim=1)[:, -window:]
        return torch.stack(forecast, dim=1)


def sweep(block: nn.Module, field: Float[Tensor, "n h *grid"]) -> Float[Tensor, "n h *grid"]:
    """Scan every axis in turn, both ways."""
    assert isinstance(block, AxisSweep)
    for axis, two_way in enumerate(block.scans):
        assert isinstance(two_way, TwoWayScan)
        lines = field.movedim((1, 2 + axis), (-2, -1))  # n *rest h l
        x = lines.flatten(0, -3)
        scanned = scan(two_way.ahead, x) + scan(two_way.back, x.flip(-1)).flip(-1) + two_way.residual_weight * x
        field = scanned.view(lines.shape).movedim((-2, -1), (1, 2 + axis))
    return field


def scan(block: nn.Module, x: Float[Tensor, "b h l"], *, window: int | None = None) -> Float[Tensor, "b h l"]:
    """One forward S4D block: convolve, skip, GELU, mix, gate. `window` cuts the kernel off after so many points."""
    assert isinstance(block, S4DBlock)
    length = x.shape[-1]
    kernel = sampled_kernel(block.modes, length)
    if window is not None:
        kernel = kernel * (torch.arange(length, device=x.device) < window)
    spectrum = torch.fft.rfft(kernel, n=2 * length) * torch.fft.rfft(x, n=2 * length)
    y = torch.fft.irfft(spectrum, n=2 * length)[..., :length] + block.skip[:, None] * x
    mixed = torch.einsum("oh,bhl->bol", block.mix.weight, functional.gelu(y)) + block.mix.bias[:, None]
    return functional.glu(mixed, dim=1)


def sampled_kernel(modes: Modes, length: int) -> Float[Tensor, "h l"]:
    """2 Re sum_n C B (exp(step rate) - 1) / rate exp(step rate l), with one complex exponential per mode and point."""
    rate: Complex[Tensor, "h n"] = torch.complex(-torch.exp(modes.log_damping), -modes.frequency)
    step_rate = rate * torch.exp(modes.log_step)[:, None]
    weight = torch.view_as_complex(modes.input_weight) * torch.view_as_complex(modes.output_weight)
    gain = weight * (torch.exp(step_rate) - 1) / rate
    powers = torch.exp(step_rate[..., None] * torch.arange(length, device=rate.device))
    return 2 * torch.einsum("hn,hnl->hl", gain, powers).real
