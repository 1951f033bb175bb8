"""The pretended device does what a device would."""

import pytest
import torch
from torch import nn


def test_results_stay_on_the_device_and_have_the_numbers_of_the_cpu(gpu) -> None:
    x = torch.randn(3, 4)
    away = x.to(gpu)
    assert (away @ away.T).relu().sum(0).device == torch.zeros_like(away).device == away.new_zeros(2).device == gpu
    assert torch.equal((away @ away.T).cpu(), x @ x.T)
    assert away.mean().item() == x.mean().item()
    assert away.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="numpy\\(\\) is not supported"):
        away.numpy()


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + torch.zeros(3),
        lambda x: torch.cat([x, torch.zeros(3)]),
        lambda x: torch.where(torch.ones(3, dtype=torch.bool), x, 0.0),
        lambda x: torch.zeros(2, 3) @ x,
        lambda x: torch.zeros(3).add_(x),
        lambda x: nn.Linear(3, 3)(x),
    ],
)
def test_mixing_devices_is_an_error(gpu, mix) -> None:
    with pytest.raises(RuntimeError, match="tensors on gpu:0 and on the CPU"):
        mix(torch.randn(3, device=gpu))


def test_what_a_device_allows_is_allowed(gpu) -> None:
    x = torch.randn(3, device=gpu)
    assert (x + torch.tensor(1.0)).device == x[torch.tensor([0, 2])].device == gpu
    held = torch.empty(3)
    held[:2] = x[:2]
    assert held.device.type == "cpu"
