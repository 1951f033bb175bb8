"""Forecasts: feed a model its own predictions, in physical units, one frame at a time.

Memory does not grow with the horizon: the model keeps the features of the last K frames, and `stream` hands out one
frame after the other.

Axes: b trajectory, t frame, c state field, k context field, then the grid.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.forecasting.forecaster import Forecaster


def rollout(
    forecaster: Forecaster,
    first_frames: Float[Tensor, "b t c *grid"],
    steps: int,
    *,
    context: Float[Tensor, "b s k *grid"] | None = None,
    spacing: Sequence[float] | None = None,
) -> Float[Tensor, "b steps c *grid"]:
    """Forecast `steps` frames after the given ones.

    Args:
        forecaster: what `train` returned or `load_forecaster` read.
        first_frames: given frames (batch, time, channel, *grid) in physical units, the newest last.
        steps: how many frames to predict.
        context: known fields at the times of the given and the predicted frames, if the model uses any.
        spacing: grid spacing, if it differs from the training grid.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1, got {steps}.")
    frames = stream(forecaster, first_frames, context=context, spacing=spacing)
    return torch.stack([next(frames) for _ in range(steps)], dim=1)


def stream(
    forecaster: Forecaster,
    first_frames: Float[Tensor, "b t c *grid"],
    *,
    context: Float[Tensor, "b s k *grid"] | None = None,
    spacing: Sequence[float] | None = None,
) -> Iterator[Float[Tensor, "b c *grid"]]:
    """Predicted frames one by one, for as long as they are asked for (and context lasts)."""
    check_given(forecaster, first_frames, context)
    given = first_frames.shape[1]
    if context is None:
        context = first_frames.new_zeros(*first_frames.shape[:2], 0, *first_frames.shape[3:])
    ahead = 1 if forecaster.alignment == "target" else 0
    units = forecaster.units(first_frames)
    was_training = forecaster.training
    forecaster.eval()
    try:
        with torch.inference_mode():
            frames, known = units.encode(first_frames), forecaster.encode_context(context)
            shifted = known[:, ahead:]
            state = forecaster.start(frames, shifted[:, :given], spacing=spacing)
            frame = frames[:, -1]
        slot = given - 1
        while True:
            if context.shape[2] and slot >= shifted.shape[1]:
                raise ValueError(
                    f"`context` covers {context.shape[1]} frames, which lasts for {slot + 1 - given} steps. "
                    "Give the known fields at the times of all frames to be predicted."
                )
            with torch.inference_mode():
                known_now = shifted[:, slot] if context.shape[2] else frame[:, :0]
                frame, state = forecaster.step(frame, known_now, state)
                decoded = units.decode(frame[:, None])[:, 0]
            yield decoded
            slot += 1
    finally:
        forecaster.train(was_training)


def check_given(forecaster: Forecaster, first_frames: Tensor, context: Tensor | None) -> None:
    """Refuse frames that do not fit the forecaster, before anything is computed."""
    fields, known = forecaster.normalisers.state.fields, forecaster.normalisers.context.fields
    if first_frames.ndim < 4 or first_frames.shape[2] != len(fields):
        raise ValueError(
            f"`first_frames` must be (batch, time, channel, *grid) with the fields {fields}, "
            f"got shape {tuple(first_frames.shape)}."
        )
    if first_frames.shape[1] < max(1, forecaster.frames_as_channels):
        raise ValueError(
            f"`first_frames` has {first_frames.shape[1]} frames, but this model needs at least "
            f"{max(1, forecaster.frames_as_channels)}."
        )
    if (context.shape[2] if context is not None else 0) != len(known):
        raise ValueError(
            f"`context` must be (batch, time, channel, *grid) with the fields {known}, "
            f"got {'nothing' if context is None else f'shape {tuple(context.shape)}'}."
        )
