"""Persistence and linear extrapolation: exact where they should be, streaming, without parameters."""

import pytest
import torch

from ssno.models.baselines.trivial import Linear, LinearConfig, Persistence, PersistenceConfig


def line(slots: int) -> torch.Tensor:
    """Fields that change by the same amount each frame; one state field, one context field."""
    start, slope = torch.randn(2, 3, 1, 2, 5, dtype=torch.float64)
    return start + slope * torch.arange(slots)[None, :, None, None]


def test_persistence_repeats_the_newest_state() -> None:
    frames = line(4)
    assert torch.equal(Persistence(in_channels=2)(frames), frames[:, :, :1])


def test_linear_extrapolation_is_exact_on_straight_lines_once_it_has_two_frames() -> None:
    frames = line(6)
    prediction = Linear(in_channels=2)(frames[:, :-1])
    torch.testing.assert_close(prediction[:, 1:], frames[:, 2:, :1])
    assert torch.equal(prediction[:, 0], frames[:, 0, :1])


@pytest.mark.parametrize("config", [PersistenceConfig, LinearConfig])
@pytest.mark.parametrize("given", [1, 2, 4])
def test_streaming_equals_the_whole_trajectory(config, given) -> None:
    model = config.tiny(in_channels=2, n_dims=2).build()
    frames = torch.randn(3, 6, 2, 4, 5)
    state, whole = model.start(frames[:, :given]), model(frames)
    for slot in range(given - 1, 6):
        prediction, state = model.step(frames[:, slot], state)
        torch.testing.assert_close(prediction, whole[:, slot])


@pytest.mark.parametrize("model_type", [Persistence, Linear])
def test_rules_have_no_parameters_and_survive_saving(model_type, tmp_path) -> None:
    model = model_type(in_channels=3, out_channels=2)
    assert not list(model.parameters())
    model.save_pretrained(tmp_path)
    back = model_type.from_pretrained(tmp_path)
    frames = torch.randn(1, 3, 3, 4)
    assert back.config == model.config
    assert torch.equal(back(frames), model(frames))


def test_predictions_do_not_share_memory_with_the_input() -> None:
    frames = torch.zeros(1, 2, 1, 4)
    Persistence()(frames).add_(1)
    assert not frames.any()


def test_more_outputs_than_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="`out_channels` must not exceed `in_channels`.*got 2 from 1"):
        PersistenceConfig(in_channels=1, out_channels=2)
