"""nRMSE and VRMSE of fields whose errors are known in closed form."""

import math

import pytest
import torch

from ssno.forecasting.metrics import nrmse, rmse, vrmse

X = 2 * math.pi * torch.arange(32, dtype=torch.float64) / 32


def field(values: torch.Tensor) -> torch.Tensor:
    return values.expand(1, 1, 1, *values.shape)


def test_an_offset_of_a_sine_has_the_offset_as_rmse_and_root_two_times_it_as_nrmse() -> None:
    truth = field(torch.sin(X))
    torch.testing.assert_close(rmse(truth + 0.3, truth).item(), 0.3)
    torch.testing.assert_close(nrmse(truth + 0.3, truth).item(), 0.3 * math.sqrt(2))


def test_the_spatial_mean_as_forecast_has_vrmse_one_whatever_the_background() -> None:
    for background in (0.0, 100.0):
        truth = field(background + torch.sin(X))
        mean = truth.mean(-1, keepdim=True).expand_as(truth)
        # The Well's variance has N - 1, the mean square error N.
        torch.testing.assert_close(vrmse(mean, truth).item(), math.sqrt(31 / 32), rtol=1e-6, atol=0)
    assert nrmse(mean, truth).item() < 0.01


def test_vrmse_of_a_flat_truth_is_kept_finite_by_eps() -> None:
    truth = field(torch.ones_like(X))
    torch.testing.assert_close(vrmse(truth + 1e-3, truth).item(), 1e-3 / math.sqrt(1e-7))


def test_every_frame_and_field_of_a_square_has_a_ratio_of_its_own() -> None:
    truth = torch.randn(2, 3, 2, 8, 8)
    scale = torch.tensor([[1.1, 1.2], [1.3, 1.4], [1.5, 1.6]])
    errors = nrmse(truth * scale[:, :, None, None], truth)
    torch.testing.assert_close(errors, (scale - 1).expand(2, 3, 2))


def test_a_truth_of_zero_keeps_nrmse_finite_and_a_nan_shows() -> None:
    zero = field(torch.zeros_like(X))
    assert nrmse(zero, zero).item() == 0
    assert torch.isfinite(nrmse(zero + 1e-3, zero)).all()
    assert vrmse(zero * math.nan, zero).isnan().all()


@pytest.mark.parametrize("metric", [nrmse, vrmse])
def test_a_batch_gives_what_its_trajectories_give_alone(metric) -> None:
    prediction, truth = torch.randn(2, 4, 3, 1, 16)
    alone = torch.cat([metric(prediction[[i]], truth[[i]]) for i in range(4)])
    torch.testing.assert_close(metric(prediction, truth), alone, rtol=1e-6, atol=0)
