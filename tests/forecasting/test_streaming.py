"""Streaming rollouts: equal to windowed ones for every model, on other grids, in memory that does not grow."""

from itertools import islice

import numpy as np
import pytest
import torch
from tests.families import supported

from ssno.base.memory import peak_memory
from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout, stream
from ssno.models.registry import MODELS, model_config

FAMILIES = [(name, n_dims) for name in MODELS for n_dims in (1, 2) if supported(name, n_dims)]


def fields(n_dims: int, *, points: int = 16, context: bool = False) -> Trajectories:
    channels = 2 if context else 1
    array = np.random.default_rng(0).normal(3.0, 2.0, (3, 12, channels, *(points,) * n_dims)).astype(np.float32)
    names = ["u", "known"][:channels]
    return Trajectories.from_array(array, fields=names, context_fields=names[1:], lengths=[2.0] * n_dims)


def forecaster_of(name: str, data: Trajectories, **options) -> Forecaster:
    n_dims = len(data.axes)
    channels = {"in_channels": len(data.fields) + len(data.context_fields), "out_channels": len(data.fields)}
    model = model_config(f"{name}:tiny", n_dims=n_dims, **channels).build()
    seen = model.frames_as_channels or (model.config.frames_seen() if hasattr(model.config, "memory") else 2)
    settings = {"window": Window(size=seen), "spacing": data.spacing, "normalisers": fit(data, "zscore")}
    return Forecaster(model, **(settings | options)).eval()


def windowed_rollout(forecaster: Forecaster, first, steps: int, *, context=None, spacing=None) -> torch.Tensor:
    """The slow way: the whole window through `forward` for every new frame."""
    units, ahead = forecaster.units(first), 1 if forecaster.context_time == "target" else 0
    frames = units.encode(first)
    known = frames[:, :, :0] if context is None else forecaster.encode_context(context)[:, ahead:]
    with torch.inference_mode():
        for _ in range(steps):
            begins = max(0, frames.shape[1] - max(1, forecaster.window.frames_seen))
            slots = known[:, begins : frames.shape[1]] if context is not None else frames[:, begins:, :0]
            inputs = torch.cat([frames[:, begins:], slots], dim=2)
            answer = forecaster.model(inputs, spacing=forecaster.spacing_for_model(spacing))[:, -1:]
            frames = torch.cat([frames, forecaster._next(frames[:, -1:], answer)], dim=1)
    return units.decode(frames[:, first.shape[1] :])


@pytest.mark.parametrize(("name", "n_dims"), FAMILIES)
def test_streaming_equals_the_windowed_rollout(name, n_dims) -> None:
    data = fields(n_dims)
    forecaster = forecaster_of(name, data)
    first = data.read(slice(None)).state[:, :4]
    torch.testing.assert_close(
        rollout(forecaster, first, 8), windowed_rollout(forecaster, first, 8), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("persistence", "linear")])
def test_streaming_equals_the_windowed_rollout_at_another_resolution(name) -> None:
    forecaster = forecaster_of(name, fields(1))
    finer = fields(1, points=32)
    first = finer.read(slice(None)).state[:, :4]
    streamed = rollout(forecaster, first, 6, spacing=finer.spacing)
    torch.testing.assert_close(
        streamed, windowed_rollout(forecaster, first, 6, spacing=finer.spacing), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("context_time", ["input", "target"])
@pytest.mark.parametrize("increment", [True, False])
def test_known_fields_reach_the_right_slots(context_time, increment) -> None:
    data = fields(1, context=True)
    forecaster = forecaster_of("ssno", data, context_time=context_time, predict_increment=increment)
    state, context = data.read(slice(None))
    streamed = rollout(forecaster, state[:, :4], 8, context=context)
    slow = windowed_rollout(forecaster, state[:, :4], 8, context=context)
    torch.testing.assert_close(streamed, slow, atol=1e-5, rtol=1e-5)
    for given in (4, 1):
        streamed = rollout(forecaster, state[:, :given], 8, context=context)
        fetched = rollout(forecaster, state[:, :given], 8, context=lambda number: context[:, number])
        assert torch.equal(fetched, streamed)


def test_a_rollout_longer_than_its_context_says_so() -> None:
    data = fields(1, context=True)
    state, context = data.read(slice(None))
    forecaster = forecaster_of("ssno", data, context_time="target")
    with pytest.raises(ValueError, match=r"`context` covers 12 frames, but that of frame 13 is needed"):
        rollout(forecaster, state[:, :4], 9, context=context)
    with pytest.raises(ValueError, match=r"`context` must be .* with the fields \('known',\), got nothing"):
        rollout(forecaster, state[:, :4], 1)


@pytest.mark.parametrize("name", [name for name in MODELS if supported(name, 1)])
def test_what_a_stream_remembers_does_not_grow(name) -> None:
    data = fields(1)
    forecaster = forecaster_of(name, data)
    frames, context = data.read(slice(None))
    with torch.inference_mode():
        state, frame = forecaster.start(frames[:, :4], context[:, :4]), frames[:, 3]
        sizes = []
        for _ in range(12):
            frame, state = forecaster.step(frame, context[:, 0], state)
            sizes.append(state.buffer.numel())
    assert len(set(sizes[4:])) == 1


def test_memory_of_a_stream_does_not_grow_with_its_length() -> None:
    data = fields(1)
    forecaster = forecaster_of("ffno", data)
    first = data.read(slice(None)).state[:, :4]

    def peak(steps: int) -> int:
        def run() -> None:
            for _ in islice(stream(forecaster, first), steps):
                pass

        return peak_memory(run)

    peak(2)  # from now on, what depends on the weights alone is kept
    assert peak(40) == peak(8)
