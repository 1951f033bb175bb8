"""What PyTorch offers besides calling and training: transformations, second derivatives, fewer bits; on any engine."""

import pytest
import torch
from torch.func import functional_call, grad, jacrev, vmap

from ssno.models.ssno import SSNOConfig
from ssno.native.engine import Engine, use

ENGINES: tuple[Engine, ...] = ("auto", "torch")


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return SSNOConfig.tiny(memory_window=2).build()


@pytest.mark.parametrize("engine", ENGINES)
def test_vmap_and_jacrev_give_what_loops_give(model, engine) -> None:
    frames = torch.randn(3, 1, 2, 1, 8)
    with use(engine):
        torch.testing.assert_close(vmap(model)(frames), torch.stack([model(one) for one in frames]))
        jacobian = jacrev(model)(frames[0])[0, 1, 0, 3]
        leaf = frames[0].clone().requires_grad_()
        model(leaf)[0, 1, 0, 3].backward()
    torch.testing.assert_close(jacobian, leaf.grad)


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_of_single_samples(model, engine) -> None:
    frames, weights = torch.randn(3, 1, 2, 1, 8), dict(model.named_parameters())

    def loss(weights, one):
        return functional_call(model, weights, (one,)).square().mean()

    with use(engine):
        each = vmap(grad(loss), in_dims=(None, 0))(weights, frames)
        whole = torch.autograd.grad(loss(weights, frames.flatten(0, 1)), model.head.widen.weight)[0]
    torch.testing.assert_close(each["head.widen.weight"].mean(0), whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_derivatives_of_derivatives_are_those_of_the_written_out_model(model, engine) -> None:
    frames = torch.randn(1, 2, 1, 8)

    def penalty() -> list[torch.Tensor]:
        leaf = frames.clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(leaf).square().sum(), leaf, create_graph=True)
        used = [p for n, p in model.named_parameters() if "frequency" not in n]
        return list(torch.autograd.grad(slope.square().sum(), used, allow_unused=True))

    with use(engine):
        ours = penalty()
    with use("plain"):
        wanted = penalty()
    for mine, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_fewer_bits_come_from_autocast_not_from_the_weights(model) -> None:
    frames = torch.randn(1, 2, 1, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = model(frames)
        coarse.float().square().mean().backward()
    torch.testing.assert_close(coarse.float(), model(frames), rtol=0.1, atol=0.05)
    with pytest.raises(ValueError, match=r"must be float32 or float64, got torch.bfloat16.*use `torch.autocast`"):
        model.bfloat16()(frames.bfloat16())
