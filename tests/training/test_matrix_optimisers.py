"""SOAP and Muon: equal to their slow selves, exact after a stop, the same in several processes."""

import copy

import pytest
import torch
from tests.training.small_runs import outcome, tiny
from torch import Tensor, nn

from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import Silent
from ssno.runs.options import TrainOptions
from ssno.runs.run import Run, migrated
from ssno.training.matrix_optimisers import Adam, MatrixOptimiser, Muon, Soap, orthogonalised
from ssno.training.objective import make_optimiser, optimiser_bytes, set_rate
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train


class SlowSoap:
    """Algorithm 3 of the paper for one matrix; momentum is stored as it is and rotated in every step."""

    def __init__(self, weight: Tensor, *, rate: float, decay: float, every: int):
        self.weight, self.rate, self.decay, self.every = weight, rate, decay, every
        self.momentum, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        self.left, self.right = (torch.zeros(n, n, dtype=weight.dtype) for n in weight.shape)
        self.updates = -1

    def step(self, gradient: Tensor, beta: float = 0.95) -> None:
        self.updates += 1
        if self.updates > 0:
            self.momentum = beta * self.momentum + (1 - beta) * gradient
            rotated = self.basis_left.T @ gradient @ self.basis_right
            momentum = self.basis_left.T @ self.momentum @ self.basis_right
            self.square = beta * self.square + (1 - beta) * rotated**2
            correction = 1 - beta**self.updates
            normalised = (momentum / correction) / ((self.square / correction).sqrt() + 1e-8)
            self.weight = self.weight * (1 - self.rate * self.decay)
            self.weight = self.weight - self.rate * self.basis_left @ normalised @ self.basis_right.T
        self.left = beta * self.left + (1 - beta) * gradient @ gradient.T
        self.right = beta * self.right + (1 - beta) * gradient.T @ gradient
        if self.updates == 0:
            self.basis_left, self.basis_right = (
                torch.linalg.eigh(factor).eigenvectors.flip(1) for factor in (self.left, self.right)
            )
        elif self.updates % self.every == 0:
            for side, axis in (("left", 0), ("right", 1)):
                factor, basis = getattr(self, side), getattr(self, f"basis_{side}")
                order = (basis.T @ factor @ basis).diagonal().argsort(descending=True)
                setattr(self, f"basis_{side}", torch.linalg.qr(factor @ basis[:, order]).Q)
                self.square = self.square.index_select(axis, order)


def regression(*sizes: int) -> tuple[nn.Sequential, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in zip(sizes, sizes[1:], strict=False))).double()
    inputs = torch.randn(40, sizes[0], generator=generator, dtype=torch.float64)
    inputs *= 0.7 ** torch.arange(sizes[0])  # badly scaled
    return model, inputs, torch.randn(40, sizes[-1], generator=generator, dtype=torch.float64)


def test_soap_is_the_algorithm_of_the_paper_applied_to_each_matrix() -> None:
    model, inputs, target = regression(6, 5, 6, 5)  # two matrices share one batch, one has its own
    slow = [SlowSoap(p.detach().clone(), rate=0.02, decay=0.1, every=4) for p in model.parameters()]
    fast = MatrixOptimiser(
        [{"params": list(model.parameters()), "weight_decay": 0.1, "method": Soap(every=4)}], lr=0.02
    )
    start = [p.detach().clone() for p in model.parameters()]
    for step in range(30):
        fast.zero_grad()
        (model(inputs) - target).square().mean().backward()
        for p, reference in zip(model.parameters(), slow, strict=True):
            assert p.grad is not None
            reference.step(p.grad)
        fast.step()
        if step == 0:
            assert all(torch.equal(p, before) for p, before in zip(model.parameters(), start, strict=True))
    for p, reference in zip(model.parameters(), slow, strict=True):
        torch.testing.assert_close(p.detach(), reference.weight, rtol=1e-8, atol=1e-10)


def test_soap_of_three_axes_turns_every_one_of_them() -> None:
    """On a gradient that is an outer product, bases are its directions: the answer is one Adam step along it."""
    method = Soap()
    parts = [nn.functional.normalize(torch.randn(n, dtype=torch.float64), dim=0) for n in (3, 40, 50)]
    gradient = torch.einsum("i,j,k->ijk", *parts)[None]
    slots = {name: torch.zeros(1, *shape, dtype=torch.float64) for name, shape in method.slots((3, 40, 50)).items()}
    assert method.direction(gradient, slots, 1) is None
    update = method.direction(gradient, slots, 2)
    assert update is not None
    torch.testing.assert_close(update, gradient, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("shape", "soap", "factors"),
    [
        ((7,), (7,), []),
        ((1, 9), (9,), []),
        ((), (1,), []),
        ((4, 3), (4, 3), [0, 1]),
        ((64, 32, 2), (64, 64), [0, 1]),
        ((1, 32, 64, 64, 2), (32, 64, 128), [0, 1, 2]),
        ((600, 8, 3, 3), (600, 72), [1]),
    ],
)
def test_shapes_become_matrices(shape, soap, factors) -> None:
    assert Soap().shape(shape) == soap
    assert Soap().rotated_axes(soap) == factors
    if len(soap) > 1:
        rows, columns = Muon().shape(shape)
        assert rows == soap[0]
        assert rows * columns == torch.Size(shape).numel()


def test_muon_makes_singular_values_nearly_one() -> None:
    torch.manual_seed(0)
    for shape in ((3, 8, 20), (3, 20, 8), (1, 16, 16)):
        found = torch.linalg.svdvals(orthogonalised(torch.randn(shape, dtype=torch.float64)))
        assert found.min() > 0.5
        assert found.max() < 1.3
    assert orthogonalised(torch.zeros(1, 3, 4)).abs().max() == 0


def test_muon_moves_entries_as_far_as_adamw() -> None:
    torch.manual_seed(0)
    gradient = torch.randn(1, 40, 80)
    slots = {"momentum": torch.zeros(1, 40, 80)}
    assert 0.1 < Muon().direction(gradient, slots, 1).square().mean().sqrt() < 0.3


def test_plain_adam_in_batches_is_adamw() -> None:
    model, inputs, target = regression(6, 5, 5, 1)
    other = copy.deepcopy(model)
    batched = MatrixOptimiser([{"params": list(model.parameters()), "weight_decay": 0.1, "method": Adam()}], lr=0.01)
    usual = torch.optim.AdamW(other.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(10):
        for one, optimiser in ((model, batched), (other, usual)):
            optimiser.zero_grad()
            (one(inputs) - target).square().mean().backward()
            optimiser.step()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("optimizer", ["soap", "muon"])
def test_a_complex_weight_moves_as_its_real_parts_do(optimizer) -> None:
    torch.manual_seed(0)
    numbers = torch.randn(4, 3, dtype=torch.complex128)
    found = []
    for start in (numbers, torch.view_as_real(numbers)):
        module = nn.Module()
        module.weight = nn.Parameter(start.clone())
        optimiser = make_optimiser(module, TrainOptions(optimizer=optimizer, learning_rate=0.01))
        for _ in range(3):
            optimiser.zero_grad()
            parts = torch.view_as_real(module.weight) if start.is_complex() else module.weight
            (parts.square().sum(-1) ** 2).sum().backward()
            optimiser.step()
        found.append(module.weight.detach())
    torch.testing.assert_close(torch.view_as_real(found[0]), found[1])
    assert not torch.equal(found[0], numbers)


def test_a_parameter_without_gradient_waits_and_then_joins() -> None:
    first, second = (nn.Parameter(torch.ones(2, 3)) for _ in range(2))
    optimiser = MatrixOptimiser([{"params": [first, second], "method": Soap()}], lr=0.1)
    for step in range(4):
        first.grad = torch.randn(2, 3)
        second.grad = torch.randn(2, 3) if step >= 2 else None
        optimiser.step()
        assert (second == 1).all() == (step < 3)
    assert (optimiser.state[first]["step"], optimiser.state[second]["step"]) == (4, 2)


def test_the_state_dict_of_torch_resumes_as_well() -> None:
    def steps(model: nn.Module, optimiser: torch.optim.Optimizer, count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            (model(inputs) - target).square().mean().backward()
            optimiser.step()

    model, inputs, target = regression(6, 5, 5, 2)
    optimiser = make_optimiser(model, TrainOptions(optimizer="soap"))
    steps(model, optimiser, 5)
    other = copy.deepcopy(model)
    resumed = make_optimiser(other, TrainOptions(optimizer="soap"))
    resumed.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    steps(model, optimiser, 9)
    steps(other, resumed, 9)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(("optimizer", "groups"), [("soap", 2), ("muon", 3)])
def test_dynamics_have_their_own_rate_and_no_decay(optimizer, groups) -> None:
    model = SSNO(SSNOConfig.tiny())
    optimiser = make_optimiser(
        model, TrainOptions(optimizer=optimizer, learning_rate=2e-2, ssm_learning_rate=1e-2, weight_decay=0.1)
    )
    set_rate(optimiser, 0.5)
    *others, dynamics = optimiser.param_groups
    assert len(optimiser.param_groups) == groups
    assert (dynamics["lr"], dynamics["weight_decay"]) == (0.5e-2, 0)
    assert {(group["lr"], group["weight_decay"]) for group in others} == {(1e-2, 0.1)}
    names = {id(parameter): name.rsplit(".", 1)[-1] for name, parameter in model.named_parameters()}
    assert {names[id(p)] for p in dynamics["params"]} == {"log_damping", "frequency", "log_step", "input_weight"}
    assert sum(len(group["params"]) for group in optimiser.param_groups) == len(list(model.parameters()))
    if optimizer == "muon":
        assert isinstance(dynamics["method"], Adam)


RUNS = {
    "soap": {"optimizer": "soap", "precondition_every": 4},
    "soap, average, bf16": {"optimizer": "soap", "precondition_every": 4, "ema": 0.9, "precision": "bf16"},
    "muon": {"optimizer": "muon"},
    "muon, average, bf16": {"optimizer": "muon", "ema": 0.9, "precision": "bf16"},
    "soap, float64": {"optimizer": "soap", "precondition_every": 3, "precision": "float64"},
}


@pytest.mark.parametrize("variant", RUNS)
def test_a_stopped_and_resumed_run_is_bitwise_the_uninterrupted_one(tmp_path, waves, valid_waves, variant) -> None:
    settings = {"valid": valid_waves, "epochs": 3, "batch_size": 8, "noise_std": 0.01, "reporter": Silent()}
    settings |= RUNS[variant]
    train(tiny(), waves, folder=tmp_path / "whole", **settings)
    for stop in (1, 3, 7):  # after the first step, and twice between two updates of the bases
        with pytest.raises(TrainingInterrupted):
            train(tiny(), waves, folder=tmp_path / "cut", stop_after=stop, resume=stop > 1, **settings)
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")
    stored = load_checkpoint(tmp_path / "whole" / "last")[0]
    slots = {name.rpartition("/")[2] for name in stored if name.startswith("optimiser/")}
    assert slots >= ({"momentum"} if "muon" in variant else {"factor_0", "basis_1"})


def test_a_run_goes_on_with_the_optimizer_it_began_with(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 2, "batch_size": 8, "reporter": Silent(), "folder": tmp_path / "run"}
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, stop_after=2, optimizer="adamw", **settings)
    with pytest.raises(ValueError, match=r"resuming cannot change these: train.optimizer \(was adamw, now soap\)"):
        train(tiny(), waves, resume=True, **settings)


@pytest.mark.parametrize("optimizer", ["soap", "muon"])
def test_waves_are_learned(waves, valid_waves, optimizer) -> None:
    reporter = LastError()
    settings = {"valid": valid_waves, "learning_rate": 1e-2, "optimizer": optimizer, "reporter": reporter}
    train(tiny(), waves, epochs=12, **settings)
    assert reporter.values["rel_l2"] < 0.5


class LastError(Silent):
    def epoch(self, *, epoch, epochs, values, best):
        self.values = values


@pytest.mark.parametrize("optimizer", ["adamw", "soap", "muon"])
@pytest.mark.parametrize("name", ["ssno", "ffno", "unet"])
def test_the_forecast_of_memory_counts_what_is_stored(optimizer, name) -> None:
    model = model_config(f"{name}:tiny", n_dims=2).build()
    options = TrainOptions(optimizer=optimizer)
    optimiser = make_optimiser(model, options)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step()
    stored = sum(
        value.numel() * value.element_size()
        for slots in optimiser.state.values()
        for slot, value in slots.items()
        if slot != "step"
    )
    assert optimiser_bytes(model, options) == stored


def test_runs_from_before_the_choice_were_trained_with_adamw() -> None:
    described = Run(train=TrainOptions(optimizer="soap")).to_json()
    assert Run.from_json(described).train.optimizer == "soap"
    del described["train"]["optimizer"], described["train"]["precondition_every"]
    assert migrated(described)["train"]["optimizer"] == "adamw"  # whatever the default may become
    assert Run.from_json(described).train.optimizer == "adamw"
    assert "optimizer" not in migrated({"train": {"learning_rate": 0.1}})["train"]
