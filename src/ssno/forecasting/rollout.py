"""Forecasts: feed a model its own predictions, in physical units, one frame at a time.

Memory does not grow with the horizon: the model keeps the features of the last K frames, and `stream` hands out one
frame after the other.

A model may prefer another grid of the same box to the one that frames are given on (`working_grid`). Then the whole
forecast runs there, and each frame is brought back when it is handed out: what a model adds beyond the waves of the
given grid stays in the forecast.

Axes: b trajectory, t frame, c state field, k context field, then the grid.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.device import choose_device
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster, rescaled
from ssno.forecasting.quadrature_weights import hold
from ssno.transforms.periodic import resample

Context = Float[Tensor, "b s k *grid"] | Callable[[int], Float[Tensor, "b k *grid"]] | None


def rollout(
    forecaster: Forecaster | Ensemble,
    first_frames: Float[Tensor, "b t c *grid"],
    steps: int,
    *,
    context: Context = None,
    spacing: Sequence[float] | None = None,
    device: str | torch.device | None = None,
    watch: Callable[[Float[Tensor, "b c *grid"]], bool] | None = None,
) -> Float[Tensor, "b made c *grid"]:
    """Forecast `steps` frames after the given ones; they come back to the device of those.

    Args:
        forecaster: what `train` returned or `load_forecaster` read.
        first_frames: given frames (batch, time, channel, *grid) in physical units, the newest last.
        steps: how many frames to predict.
        context: known fields at the times of the given and the predicted frames, if the model uses any.
        spacing: grid spacing, if it differs from the training grid.
        device: move the forecaster there first (`ssno.base.device`); by default it computes where it is.
        watch: is shown every frame as it comes, and ends the forecast there by saying True (`ForecastWatch.look_at`).
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1, got {steps}.")
    if device is not None:
        forecaster.to(choose_device(device))
    frames = stream(forecaster, first_frames, context=context, spacing=spacing)
    made = []
    for frame in islice(frames, steps):
        made.append(frame)
        if watch is not None and watch(frame):
            break
    return torch.stack(made, dim=1).to(first_frames.device)


def stream(
    forecaster: Forecaster | Ensemble,
    first_frames: Float[Tensor, "b t c *grid"],
    *,
    context: Context = None,
    spacing: Sequence[float] | None = None,
) -> Iterator[Float[Tensor, "b c *grid"]]:
    """Predicted frames one by one, for as long as they are asked for (and context lasts), on the forecaster's device.

    `context` may be a function of a frame's number, counted from the first given one: then known fields are fetched
    when their time has come, and memory does not grow with the horizon.
    """
    check_given(forecaster, first_frames, context)
    first_frames = first_frames.to(forecaster.device)
    given, known = first_frames.shape[1], known_fields(first_frames, context)
    units, grid, stated = forecaster.units(first_frames), first_frames.shape[3:], known
    working = forecaster.working_grid(grid, spacing=spacing)
    if working != tuple(grid):
        first_frames, known = resample(first_frames, working), resampled(known, working)
        assert spacing is not None, "another grid than that of training has a spacing"
        spacing = rescaled(spacing, grid, working)

    def encoded(context: Tensor) -> Tensor:
        return forecaster.encode_context(context).to(forecaster.dtype)

    ahead = 1 if forecaster.context_time == "target" else 0
    was_training = forecaster.training
    forecaster.eval()
    try:
        with torch.inference_mode():
            frames = units.encode(first_frames).to(forecaster.dtype)  # frames are fed back in the model's own numbers
            if forecaster.mask is not None:
                frames = hold(frames, forecaster.outside(known(0, given)))
            earlier = encoded(known(ahead, ahead + given - 1))
            # The slot of the newest frame belongs to the first step; here it only has to have the right shape.
            placeholder = earlier[:, -1:] if given > 1 else encoded(known(0, 1))
            state: Any = forecaster.start(frames, torch.cat([earlier, placeholder], dim=1), spacing=spacing)
            frame = frames[:, -1]
        slot, number = given - 1 + ahead, given
        while True:
            with torch.inference_mode():
                now = encoded(known(slot, slot + 1))[:, 0]
                frame, state = forecaster.step(frame, now, state)
                if forecaster.mask is not None:
                    frame = hold(frame[:, None], forecaster.outside(known(number, number + 1)))[:, 0]
                decoded = resample(units.decode(frame[:, None])[:, 0].to(first_frames.dtype), grid)
                if forecaster.mask is not None:
                    decoded = hold(decoded[:, None], forecaster.outside(stated(number, number + 1)))[:, 0]
            yield decoded
            slot, number = slot + 1, number + 1
    finally:
        forecaster.train(was_training)


def known_fields(first_frames: Float[Tensor, "b t c *grid"], context: Context) -> Callable[[int, int], Tensor]:
    """A function (first, stop) -> (b, stop - first, k, *grid) that gives the known fields of some frames."""
    if context is None:
        return lambda first, stop: first_frames.new_zeros(
            first_frames.shape[0], stop - first, 0, *first_frames.shape[3:]
        )
    if not isinstance(context, Tensor):
        return lambda first, stop: torch.stack(
            [context(number) for number in range(first, max(stop, first + 1))], dim=1
        )[:, : stop - first].to(first_frames.device)

    def of_tensor(first: int, stop: int) -> Tensor:
        if stop > context.shape[1]:
            raise ValueError(
                f"`context` covers {context.shape[1]} frames, but that of frame {stop} is needed. "
                "Give the known fields at the times of all frames to be predicted."
            )
        return context[:, first:stop].to(first_frames.device)

    return of_tensor


def resampled(known: Callable[[int, int], Tensor], grid: Sequence[int]) -> Callable[[int, int], Tensor]:
    """The same known fields on another grid of the same box."""
    return lambda first, stop: resample(known(first, stop), grid)


def check_given(forecaster: Forecaster | Ensemble, first_frames: Tensor, context: Context) -> None:
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
    channels = context.shape[2] if isinstance(context, Tensor) else 0 if context is None else len(known)
    if channels != len(known):
        raise ValueError(
            f"`context` must be (batch, time, channel, *grid) with the fields {known}, "
            f"got {f'shape {tuple(context.shape)}' if isinstance(context, Tensor) else 'nothing'}."
        )
