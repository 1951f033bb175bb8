"""A model for use: weights frozen, everything that depends on weights and grid alone computed once.

    frozen = freeze(model, grid=(128,))
    frames = frozen.rollout(first_frames, steps=22)

or, frame by frame, with a buffer of the features of the last K - 1 frames that goes in and comes out, so that the
step is a pure function which `torch.export` and `torch.compile` take as it is:

    buffer = frozen.buffer(first_frames)
    frame, buffer = frozen(frame, buffer)

    frozen.advance(frame, buffer)          the same in place: nothing moves, so a CUDA graph can be replayed

An empty past is a buffer of zeros: that is what the first K taps of a causal kernel mean.

Axes: b trajectory, t time step, k earlier frame, c field, h channel.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.models.operator import GridWeightCache, MemoryOperator, PrecomputedWeights, Spacing


class FrozenOperator(nn.Module):
    """A copy of a model for one grid and one number of trajectories at a time, without gradients; see `freeze`."""

    def __init__(self, model: MemoryOperator, *, grid: Sequence[int], spacing: Spacing = None, batch: int = 1):
        super().__init__()
        if model.frames_as_channels:
            raise ValueError(
                f"A {model.config.name!r} model with frames_as_channels={model.frames_as_channels} has no features to "
                "remember: its window is its input. Call the model itself."
            )
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.grid, self.spacing, self.batch = tuple(grid), spacing, batch
        self._weight_cache = GridWeightCache()
        self._sample()
        memory = self.model.memory
        self.earlier = memory.window - 1 if memory is not None else 0

    def _sample(self) -> None:
        """Compute what depends on weights and grid, unless it is there and no weight has changed."""

        def sampled() -> PrecomputedWeights:
            with torch.no_grad():
                return self.model.grid_weights(self.grid, spacing=self.spacing).prepared(self.batch, self.grid)

        self.weights: PrecomputedWeights = self._weight_cache.get(self.model, self.grid, sampled)

    def _apply(self, *arguments: Any, **options: Any) -> "FrozenOperator":
        moved = super()._apply(*arguments, **options)  # to another device or dtype
        self._sample()
        return moved

    def forward(
        self, frame: Float[Tensor, "b c *grid"], buffer: Float[Tensor, "k h *points"]
    ) -> tuple[Float[Tensor, "b d *grid"], Float[Tensor, "k h *points"]]:
        """The newest frame and the features of the K - 1 before it in; the next frame and the new buffer out."""
        features, skip = self.model.before(frame, self.weights)
        if self.model.memory is not None:
            seen = torch.cat([buffer, features[None]]) if self.earlier else features[None]
            features = self.model.memory.newest(seen, weights=self.weights.memory)
            buffer = seen[1:] if self.earlier else buffer
        return self.model.after(features, skip, self.weights), buffer

    @torch.no_grad()
    def advance(self, frame: Float[Tensor, "b c *grid"], buffer: Float[Tensor, "k h *points"]) -> None:
        """Put the next frame and the new buffer where the old ones were; context fields of the frame stay."""
        following, kept = self(frame, buffer)
        frame[:, : following.shape[1]].copy_(following)
        buffer.copy_(kept)

    @torch.no_grad()
    def buffer(self, first_frames: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "k h *points"]:
        """Features of all input frames but the newest, which is for the first step to take; zeros before them."""
        self.check(first_frames)
        self._sample()
        given = first_frames.shape[1] - 1
        if not self.earlier:
            return first_frames.new_zeros(0, 0)
        taken = first_frames[:, max(0, given - self.earlier) : max(1, given)].unbind(1)  # at least one, for the shape
        features = torch.stack([self.model.before(frame, self.weights)[0] for frame in taken])[:given]
        return torch.cat([features.new_zeros(self.earlier - features.shape[0], *features.shape[1:]), features])

    @torch.no_grad()
    def rollout(self, first_frames: Float[Tensor, "b t c *grid"], steps: int) -> Float[Tensor, "b steps c *grid"]:
        """Forecast `steps` frames, each from the one before."""
        buffer, frame, frames = self.buffer(first_frames), first_frames[:, -1], []
        for _ in range(steps):
            frame, buffer = self(frame, buffer)
            frames.append(frame)
        return torch.stack(frames, dim=1)

    def check(self, first_frames: Tensor) -> None:
        """Refuse frames on another grid or of another batch than this copy was made for."""
        self.model.check_frames(first_frames)
        if tuple(first_frames.shape[3:]) != self.grid or first_frames.shape[0] != self.batch:
            raise ValueError(
                f"This model was frozen for {self.batch} trajectories on a grid of {self.grid}, got shape "
                f"{tuple(first_frames.shape)}. Freeze the model again for these."
            )


def freeze(model: Any, *, grid: Sequence[int], spacing: Spacing = None, batch: int = 1) -> FrozenOperator:
    """A copy of `model` for forecasts on one grid: kernels cached, no gradients, a buffer instead of a window.

    Args:
        model: any model of this library with memory, or without (then there is no buffer).
        grid: number of points per axis.
        spacing: grid spacing, if it is not the one of training.
        batch: trajectories forecast at once; the form of the cached kernels depends on it.
    """
    if not isinstance(model, MemoryOperator):
        raise TypeError(f"`model` must be a model of this library, got {type(model).__name__}.")
    return FrozenOperator(model, grid=grid, spacing=spacing, batch=batch)
