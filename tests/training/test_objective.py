"""The loss by hand, with and without teacher forcing."""

import torch
from torch import nn

from ssno.data.normalise import fit
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.training.objective import Objective


class Persistence(nn.Module):
    """The next frame is the last one."""

    def forward(self, frames):
        return frames[:, :, :1]


def test_loss_is_the_mean_relative_error_of_the_slots_that_count(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=3))
    frames = waves.read(range(5))
    loss = Objective(forecaster, teacher_forcing=True)(frames.state, frames.context, None)
    truth, last = frames.state[:, 3:], frames.state[:, 2:-1]
    expected = ((truth - last).flatten(2).norm(dim=2) / truth.flatten(2).norm(dim=2)).mean(dim=1)
    torch.testing.assert_close(loss, expected)


def test_without_teacher_forcing_persistence_stays_at_the_last_given_frame(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=3))
    frames = waves.read(range(5))
    loss = Objective(forecaster, teacher_forcing=False)(frames.state, frames.context, None)
    truth, last = frames.state[:, 3:], frames.state[:, 2:3]
    expected = ((truth - last).flatten(2).norm(dim=2) / truth.flatten(2).norm(dim=2)).mean(dim=1)
    torch.testing.assert_close(loss, expected)


def test_noise_reaches_the_input_and_not_the_target(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=3))
    frames = waves.read(range(5))
    noise = torch.full_like(frames.state, 0.5)
    loss = Objective(forecaster, teacher_forcing=True)(frames.state, frames.context, noise)
    truth, last = frames.state[:, 3:], frames.state[:, 2:-1] + 0.5
    expected = ((truth - last).flatten(2).norm(dim=2) / truth.flatten(2).norm(dim=2)).mean(dim=1)
    torch.testing.assert_close(loss, expected)


def test_one_unrolled_step_equals_teacher_forcing(waves) -> None:
    short = waves.select(time_index=range(5))
    forecaster = Forecaster(SSNO(SSNOConfig.tiny()), normalisers=fit(short, "zscore"), increment=True)
    frames = short.read(range(5))
    forced = Objective(forecaster, teacher_forcing=True)(frames.state, frames.context, None)
    unrolled = Objective(forecaster, teacher_forcing=False)(frames.state, frames.context, None)
    torch.testing.assert_close(forced, unrolled)
