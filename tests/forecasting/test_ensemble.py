"""An ensemble is the mean of members that forecast on their own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import EVERY, score
from ssno.layers.memory import MemoryOptions
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.models.ssno import SSNOConfig


class Times(nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.factor * frames


def data(context: bool = False) -> Trajectories:
    values = np.random.default_rng(0).normal(size=(3, 6, 2, 8)).astype(np.float32)
    return Trajectories.from_array(values, fields=["u", "v"], context_fields=["v"] if context else [], name="noise")


def member(model: nn.Module, trajectories: Trajectories, **options) -> Forecaster:
    return Forecaster(
        model, normalisers=fit(trajectories, options.pop("method", "none")), window=Window(size=2), **options
    )


def test_members_follow_their_own_forecasts() -> None:
    trajectories = data()
    ensemble = Ensemble([member(Times(factor), trajectories) for factor in (0.5, 1.5)])
    first = torch.ones(1, 2, 2, 8)
    mean = rollout(ensemble, first, 3)
    # The mean of powers, not the powers of the mean, which would stay 1.
    torch.testing.assert_close(mean[0, :, 0, 0], torch.tensor([1.0, (0.25 + 2.25) / 2, (0.125 + 3.375) / 2]))
    members = torch.stack([rollout(one, first, 3) for one in ensemble.forecasters])
    torch.testing.assert_close(members.mean(0), mean)
    torch.testing.assert_close(members[:, 0, -1, 0, 0], torch.tensor([0.125, 3.375]))


def test_an_ensemble_of_equals_scores_like_one_of_them() -> None:
    trajectories = data(context=True)
    config = SSNOConfig.tiny(in_channels=2, out_channels=1, memory=MemoryOptions(2, d_state=8))
    forecaster = member(
        config.build(), trajectories, method="zscore", predict_increment=True, spacing=trajectories.spacing
    )
    ensemble = Ensemble([forecaster, forecaster, forecaster])
    one, many = (score(f, trajectories, metrics=EVERY).means for f in (forecaster, ensemble))
    assert many == pytest.approx(one, rel=1e-5)


def test_members_may_take_frames_as_channels() -> None:
    trajectories = data()
    shape = {"in_channels": 2, "out_channels": 2}
    fno = member(
        model_config("fno:tiny", **shape, frames_as_channels=2, memory=MemoryOptions(0, d_state=8), n_modes=3).build(),
        trajectories,
    )
    persistence = member(model_config("persistence", **shape).build(), trajectories)
    ensemble = Ensemble([persistence, fno])
    assert ensemble.frames_as_channels == 2
    assert count_parameters(ensemble.model) == count_parameters(fno.model)
    errors = score(ensemble, trajectories).means
    assert 0 < errors["rel_l2_onestep"] < 10


def test_members_must_share_units_and_window() -> None:
    trajectories = data()
    one = member(Times(1.0), trajectories)
    other = member(Times(1.0), trajectories)
    other.window = replace(other.window, size=3)
    with pytest.raises(ValueError, match="the `window` of member 2 differs from that of member 1"):
        Ensemble([one, other])
    with pytest.raises(ValueError, match="the `normalisers` of member 2 differs"):
        Ensemble([one, member(Times(1.0), trajectories, method="zscore")])
    with pytest.raises(ValueError, match="`members` must have at least 2 forecasters, got 1"):
        Ensemble([one])
