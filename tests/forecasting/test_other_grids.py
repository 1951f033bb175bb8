"""Forecasts on grids that a model was not trained on."""

from dataclasses import replace

import torch

from ssno.data.normalise import Normaliser, Normalisers
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.models.ssno import SSNOConfig
from ssno.transforms.periodic import resample

POINTS = 16


def forecaster(seed: int = 0, *, grid: tuple[int, ...] = (POINTS,), transfer: str = "spectrum") -> Forecaster:
    torch.manual_seed(seed)
    config = SSNOConfig.tiny(n_dims=len(grid)).recommended(periodic=True)
    model = replace(config, modes=replace(config.modes, resolution_transfer=transfer)).build()
    units = Normalisers(
        state=Normaliser("none", ("u",), shift=(0.0,), scale=(1.0,), increment=(1.0,)),
        context=Normaliser("none", (), shift=(), scale=(), increment=()),
    )
    return Forecaster(model, normalisers=units, spacing=[1 / points for points in grid])


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


def test_on_the_grid_of_training_nothing_changes_not_a_bit() -> None:
    frames, own = waves(POINTS), (1 / POINTS,)
    plain = rollout(forecaster(), frames, 4)
    assert torch.equal(rollout(forecaster(), frames, 4, spacing=own), plain)
    assert torch.equal(rollout(forecaster(transfer="resample"), frames, 4, spacing=own), plain)


def test_three_axes_are_refined_each_by_its_own_factor() -> None:
    model = forecaster(grid=(6, 4, 6))
    fine = torch.randn(1, 4, 1, 12, 4, 18, generator=torch.Generator().manual_seed(0))
    found = rollout(model, fine, 2, spacing=(1 / 12, 1 / 4, 1 / 18))
    for x, z in ((0, 0), (1, 2)):
        alone = rollout(model, fine[..., x::2, :, z::3].contiguous(), 2)
        torch.testing.assert_close(found[..., x::2, :, z::3], alone, rtol=1e-4, atol=1e-5)


def test_axes_may_need_a_finer_working_grid_one_by_one() -> None:
    model = forecaster(grid=(8, 8, 8))
    assert model.working_grid((10, 16, 8), spacing=(1 / 10, 1 / 16, 1 / 8)) == (16, 16, 8)
    frames = torch.randn(1, 4, 1, 10, 16, 8, generator=torch.Generator().manual_seed(0))
    expected = rollout(model, resample(frames, (16, 16, 8)), 2, spacing=(1 / 16, 1 / 16, 1 / 8))
    found = rollout(model, frames, 2, spacing=(1 / 10, 1 / 16, 1 / 8))
    torch.testing.assert_close(found, resample(expected, (10, 16, 8)), rtol=1e-4, atol=1e-5)


def test_kernels_of_another_grid_are_made_once_for_a_whole_forecast(monkeypatch) -> None:
    model, made = forecaster(), []
    sample = type(model.model).grid_weights
    monkeypatch.setattr(type(model.model), "grid_weights", lambda *a, **k: made.append(1) or sample(*a, **k))
    rollout(model, waves(20), 6, spacing=(1 / 20,))
    assert len(made) <= 1
