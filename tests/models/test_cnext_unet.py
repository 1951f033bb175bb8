"""CNextU-Net: the public class' weights give the public class' output; its size is the published one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.layers.memory import MemoryOptions
from ssno.models import CNextUNet, count_parameters, model_config

GOLDEN = Path(__file__).parents[1] / "golden" / "cnext_unet.npz"
"""Inputs, and what `UNetConvNext` of the package the-well 1.2.0 makes of them in float64 with torch 2.13.0, for
width 3, two blocks per stage, one at the neck, and the weights of `filled`. The class does not run in 1D for lack of
one entry in its table of axis orders (`permute_channel_strings[1]`), which was added for the file; nothing else was."""


def filled(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights by formula, with scales that give every one of them an effect on the output."""
    values = {}
    for k, (name, weight) in enumerate(sorted(weights.items())):
        fan = weight[0].numel()
        scale = 0.1 if name.endswith("bias") else 2 / fan**0.5 if fan > 1 else 5 if weight.ndim > 1 else 1
        j = torch.arange(1, 1 + weight.numel(), dtype=torch.float64)
        values[name] = (scale * torch.sin((1 + k) * j**1.5)).view(weight.shape).float()
    return values


def public_case(n_dims: int) -> tuple[CNextUNet, Tensor, Tensor]:
    """The model with these weights, and frames and output of the file."""
    golden = np.load(GOLDEN)
    frames, expected = (torch.from_numpy(golden[f"{name}_{n_dims}d"]) for name in ("input", "output"))
    model = CNextUNet(n_dims=n_dims, out_channels=2, frames_as_channels=2, hidden_channels=3).eval()
    model.load_state_dict(filled(model.state_dict()))
    return model, frames[:, :, None], expected[:, None]


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_weights_of_the_public_class_give_its_output(n_dims) -> None:
    model, frames, expected = public_case(n_dims)
    with torch.no_grad():
        torch.testing.assert_close(model.double()(frames.double()).float(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_every_used_weight_has_an_effect_on_that_output(n_dims) -> None:
    model, frames, _ = public_case(n_dims)
    model(frames).norm().backward()
    small = [name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() < 1e-3]
    assert small == model.idle_parameters()


@pytest.mark.parametrize(("n_dims", "parameters"), [(1, 17_181_907), (2, 18_569_671), (3, 22_281_379)])
def test_the_default_has_as_many_parameters_as_the_public_class(n_dims, parameters) -> None:
    config = model_config("cnext-unet", n_dims=n_dims)
    with torch.device("meta"):
        assert count_parameters(config.build()) == parameters
    assert config.approximate_size() == pytest.approx(parameters, rel=0.02)


def test_memory_adds_itself_only() -> None:
    stacked = CNextUNet(hidden_channels=4, frames_as_channels=1)
    remembering = CNextUNet(hidden_channels=4, frames_as_channels=0, memory=MemoryOptions(window=3))
    added = {name: value for name, value in remembering.state_dict().items() if name.startswith("memory.")}
    remembering.load_state_dict({**stacked.state_dict(), **added})
    assert remembering.memory is not None
    assert remembering.memory.window == 3


def test_a_fresh_block_is_nearly_the_identity() -> None:
    block = CNextUNet(hidden_channels=4).encoder[0].blocks[0]
    x = torch.randn(2, 4, 16)
    torch.testing.assert_close(block(x), x, atol=1e-5, rtol=0)
