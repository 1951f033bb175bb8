"""Forecasts on grids that a model was not trained on."""

import torch

from ssno.data.normalise import Normaliser, Normalisers
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.models.ssno import SSNOConfig
from ssno.transforms.periodic import resample

POINTS = 16


def forecaster(seed: int = 0, **fields) -> Forecaster:
    torch.manual_seed(seed)
    model = SSNOConfig.tiny(**fields).recommended(periodic=True).build()
    units = Normalisers(
        state=Normaliser("none", ("u",), shift=(0.0,), scale=(1.0,), increment=(1.0,)),
        context=Normaliser("none", (), shift=(), scale=(), increment=()),
    )
    return Forecaster(model, normalisers=units, spacing=(1 / POINTS,))


def waves(points: int) -> torch.Tensor:
    x = 2 * torch.pi * torch.arange(points) / points
    return torch.stack([torch.sin(x + 0.1 * t) + 0.3 * torch.cos(2 * x) for t in range(4)])[None, :, None]


def test_a_finer_grid_is_forecast_as_interleaved_copies_of_the_learned_one() -> None:
    model, frames = forecaster(), waves(48)
    fine = rollout(model, frames, 5, spacing=(1 / 48,))
    for offset in range(3):
        alone = rollout(model, frames[..., offset::3], 5)
        torch.testing.assert_close(fine[..., offset::3], alone, rtol=1e-4, atol=1e-5)


def test_other_grids_are_forecast_on_the_next_multiple_of_the_learned_one() -> None:
    model, frames = forecaster(), waves(20)
    expected = rollout(model, resample(frames, (32,)), 5, spacing=(1 / 32,))
    torch.testing.assert_close(rollout(model, frames, 5, spacing=(1 / 20,)), resample(expected, (20,)))
    assert model.working_grid((20,), spacing=(1 / 20,)) == (32,)
    assert model.working_grid((12,), spacing=(1 / 12,)) == (32,)
    assert model.working_grid((16,), spacing=(1 / 16,)) == (16,)
    assert model.working_grid((40,), spacing=(1 / 40,)) == (48,)


def test_an_ensemble_works_on_the_finest_grid_that_a_member_wants() -> None:
    both = Ensemble([forecaster(0), forecaster(1)])
    assert both.working_grid((20,), spacing=(1 / 20,)) == (32,)
    single = [rollout(member, waves(20), 3, spacing=(1 / 20,)) for member in both.forecasters]
    torch.testing.assert_close(rollout(both, waves(20), 3, spacing=(1 / 20,)), torch.stack(single).mean(0))


def test_one_step_on_another_grid_is_one_step_on_the_working_one() -> None:
    model, frames = forecaster(), waves(20)
    none = frames.new_zeros(1, 4, 0, 20)
    with torch.no_grad():
        found = model(frames, none, spacing=(1 / 20,))
        expected = model(resample(frames, (32,)), none.new_zeros(1, 4, 0, 32), spacing=(1 / 32,))
    torch.testing.assert_close(found, resample(expected, (20,)))
