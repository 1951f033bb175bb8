"""What PyTorch offers besides calling and training: transformations, second derivatives, fewer bits; on any engine."""

import pytest
import torch
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap

from ssno.layers.axial import BidirectionalScan
from ssno.layers.memory import MemoryOptions
from ssno.models.ssno import SSNOConfig
from ssno.native.engine import Engine, use

ENGINES: tuple[Engine, ...] = ("auto", "torch")


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)).build()


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


@pytest.mark.parametrize("engine", ENGINES)
def test_a_graph_of_the_gradient_leaves_the_gradient_of_an_unrolled_model_alone(model, engine) -> None:
    frames = torch.randn(2, 2, 1, 8)

    def gradient(**options) -> torch.Tensor:
        state, frame = model.start(frames), frames[:, -1]
        loss = torch.zeros(())
        for _ in range(3):  # every step has the weights, and an input made with them
            frame, state = model.step(frame, state)
            loss = loss + frame.square().mean()
        found = torch.autograd.grad(loss, list(model.parameters()), **options)
        return torch.cat([one.detach().flatten() for one in found])

    with use(engine):
        torch.testing.assert_close(gradient(create_graph=True), gradient(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("length", [40, 300])
def test_a_graph_of_the_gradient_reaches_through_the_scan_of_a_single_line(engine, length) -> None:
    scan, x = BidirectionalScan(8, d_state=4), torch.randn(1, 8, length)
    with use(engine):
        first, second = (
            torch.autograd.grad(scan(x).square().mean(), list(scan.parameters()), create_graph=graph)
            for graph in (False, True)
        )
    for mine, theirs in zip(first, second, strict=True):
        torch.testing.assert_close(mine, theirs.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("boundary", ["zero", "periodic", "neumann", "learned"])
def test_an_ensemble_is_a_map_over_weights(boundary) -> None:
    models = [SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8), boundary=boundary).build() for _ in range(2)]
    weights, buffers = stack_module_state(models)
    frames = torch.randn(1, 3, 1, 16)
    found = vmap(lambda w, b: functional_call(models[0], (w, b), (frames,)))(weights, buffers)
    torch.testing.assert_close(found, torch.stack([one(frames) for one in models]), rtol=1e-4, atol=1e-5)
    assert models[0].to("meta")(frames.to("meta")).shape == frames.shape
