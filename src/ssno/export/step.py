"""The streaming step of a forecaster as one pure function, in physical units.

    next frame, buffer = step(frame, buffer)         frame (b, c_in, *grid): fields, then context fields

Normalisation, increments and masks are inside, kernels are those of one grid. A forecast starts with a buffer of zeros;
the input frames are passed one after the other, and what the last one returns is the first prediction. A model that
takes one frame has no buffer: `next frame = step(frame)`. With n steps a call returns (b, n, c, *grid), the buffer
after all n and the buffer after the first, which is the one to go on with while input frames are passed.

Masks are taken to be constant in time, and so are context fields during the n steps of a call.

Axes: b trajectory, c field, then the grid; k earlier frame, h channel.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_positive
from ssno.data.normalise import SMALLEST, Normaliser
from ssno.forecasting.forecaster import Forecaster
from ssno.layers.block import DiscretisedKernels
from ssno.models.baselines.trivial import TrivialOperator
from ssno.models.operator import MemoryOperator, OperatorState
from ssno.ssm.convolution import stacked_matrices, stacked_spectra

LARGEST_MATRICES = 2**22
"""Numbers in the matrices of one scan; longer axes go through a Fourier transform, whose matrix all channels share."""


class ForecastStep(nn.Module):
    """One step, or `steps` at once, of a forecaster on one grid."""

    def __init__(self, forecaster: Forecaster, *, grid: Sequence[int], spacing: Sequence[float] | None, steps: int = 1):
        super().__init__()
        require_positive("steps", steps)
        check_exportable(forecaster)
        self.model: Any = forecaster.model
        self.grid, self.steps = tuple(grid), steps
        self.predict_increment, self.conserve_mean = forecaster.predict_increment, forecaster.conserve_mean
        self.context_time = forecaster.context_time
        self.fields = len(forecaster.normalisers.state.fields)
        names = forecaster.normalisers.context.fields
        self.inputs = self.fields + len(names)
        self.mask = None if forecaster.mask is None else self.fields + names.index(forecaster.mask)
        self.spacing = forecaster.spacing_for_model(spacing)
        shape = (-1, *(1,) * len(self.grid))
        for name, part in (("state", forecaster.normalisers.state), ("context", forecaster.normalisers.context)):
            for key, value in _affine(part).items():
                self.register_buffer(f"{name}_{key}", value.to(forecaster.dtype).view(shape))
        self.register_buffer("increment", forecaster.increment_scale.to(forecaster.dtype).view(shape))
        if isinstance(self.model, MemoryOperator):
            with torch.no_grad():
                self.weights = self.model.grid_weights(self.grid, spacing=self.spacing)
            self.weights = self.weights._replace(
                blocks=[[_multiplied(self.model.config.name, one) for one in block] for block in self.weights.blocks]
            )

    state_shift: Tensor
    state_scale: Tensor
    state_factor: Tensor
    context_shift: Tensor
    context_factor: Tensor
    increment: Tensor

    def forward(self, frame: Float[Tensor, "b c *grid"], buffer: Tensor | None = None) -> Any:
        """The newest frame and the buffer in, the next frame(s) and the buffer(s) out."""
        mask = None if self.mask is None else frame[:, self.mask : self.mask + 1] > 0.5
        state = masked((frame[:, : self.fields] - self.state_shift) * self.state_factor, mask)
        context = (frame[:, self.fields :] - self.context_shift) * self.context_factor
        found, first = [], None
        for number in range(self.steps):
            answer, buffer = self._step(torch.cat([state, context], dim=1), buffer)
            following = state + self.increment * answer if self.predict_increment else answer
            if self.conserve_mean:
                following = following - (following - state).mean(dim=tuple(range(2, following.ndim)), keepdim=True)
            state = masked(following, mask)
            found.append(masked(state * self.state_scale + self.state_shift, mask))
            first = buffer if number == 0 else first
        frames = found[0] if self.steps == 1 else torch.stack(found, dim=1)
        if buffer is None:
            return frames
        return (frames, buffer) if self.steps == 1 else (frames, buffer, first)

    def _step(self, frame: Tensor, buffer: Tensor | None) -> tuple[Tensor, Tensor | None]:
        model = self.model
        if not isinstance(model, MemoryOperator):
            assert buffer is not None
            answer, state = model.step(frame, OperatorState(buffer))
            return answer, state.buffer
        if model.frames_as_channels:
            seen = frame[None] if buffer is None else torch.cat([buffer, frame[None]])
            features, skip = model.before(seen.transpose(0, 1).flatten(1, 2), self.weights)
            features = model.remember(features, 1, self.weights)
            return model.after(features, skip, self.weights), None if buffer is None else seen[1:]
        features, skip = model.before(frame, self.weights)
        if model.memory is not None:
            seen = features[None] if buffer is None else torch.cat([buffer, features[None]])
            features = model.memory.newest(seen, weights=self.weights.memory)
            buffer = None if buffer is None else seen[1:]
        return model.after(features, skip, self.weights), buffer

    @property
    def input_frames(self) -> int:
        """Number of frames that a prediction depends on."""
        if not isinstance(self.model, MemoryOperator):
            return 2
        window = 1 if self.model.memory is None else self.model.memory.window
        return max(1, self.model.frames_as_channels, window)

    @torch.no_grad()
    def empty_buffer(self, batch: int) -> Tensor | None:
        """The buffer before the first frame: zeros."""
        earlier = self.input_frames - 1
        like = self.state_shift
        if not earlier:
            return None
        if not isinstance(self.model, MemoryOperator) or self.model.frames_as_channels:
            return like.new_zeros(earlier, batch, self.inputs, *self.grid)
        features, _ = self.model.before(like.new_zeros(batch, self.inputs, *self.grid), self.weights)
        return features.new_zeros(earlier, *features.shape)

    @property
    def batch_dim(self) -> int:
        """Where the buffer has its trajectories: memory keeps features with frames last."""
        return 1 if not isinstance(self.model, MemoryOperator) or self.model.frames_as_channels else -1


def masked(frame: Tensor, mask: Tensor | None) -> Tensor:
    """A frame that is 0 where there are no data."""
    return frame if mask is None else frame.masked_fill(mask, 0.0)


def check_exportable(forecaster: Forecaster) -> None:
    """Refuse forecasters whose step is not a function of frame and buffer on one grid."""
    model = forecaster.model
    name = getattr(getattr(model, "config", None), "name", type(model).__name__)
    if not isinstance(model, MemoryOperator | TrivialOperator):
        raise ValueError(
            f"{name!r} cannot be exported: only models of this library that stream frames on a grid can; this one is "
            f"a {type(model).__name__}, which takes point clouds or is a module of your own. Use `torch.export` on it."
        )
    if forecaster.normalisers.state.method == "per_sample_minmax":
        raise ValueError(
            f"{name!r} cannot be exported: its normalisation 'per_sample_minmax' depends on all input frames of a "
            "trajectory, and an exported step sees one frame. Train with --train.normalisation zscore or minmax."
        )


def _affine(known: Normaliser) -> dict[str, Tensor]:
    """Shift, scale, and 1 / scale (0 for a field that never changes), as `AffineMap` uses them."""
    shift, scale = (torch.tensor(values, dtype=torch.float64) for values in (known.shift, known.scale))
    constant = scale < SMALLEST
    factor = torch.where(constant, 0.0, 1 / torch.where(constant, 1.0, scale))
    return {"shift": shift, "scale": scale, "factor": factor}


def _multiplied(model: str, weights: DiscretisedKernels) -> DiscretisedKernels:
    """A scan with its matrices, or with the spectra of its kernels where these would be too large."""
    if weights.taps is None:
        raise ValueError(
            f"{model!r} cannot be exported: a scan has no kernel to precompute, because its modes follow the input "
            "(selective), or its axis has more than 16,384 points. Use another model, or a coarser grid."
        )
    directions, channels, points = weights.taps.shape
    make = stacked_matrices if directions * channels * points**2 <= LARGEST_MATRICES else stacked_spectra
    return weights._replace(matrix=make(weights.taps, weights.directions(), weights.periodic()))
