"""Groups of parameters, and the average of the weights."""

import torch

from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.options import TrainOptions
from ssno.training.objective import WeightAverage, make_optimiser, set_rate, state_space_parameters


def test_dynamics_have_their_own_rate_and_no_decay() -> None:
    model = SSNO(SSNOConfig.tiny())
    options = TrainOptions(learning_rate=1e-2, ssm_learning_rate=1e-3, weight_decay=0.1)
    optimiser = make_optimiser(model, options)
    others, dynamics = optimiser.param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    kinds = {names[id(parameter)].rsplit(".", 1)[-1] for parameter in dynamics["params"]}
    assert kinds == {"log_damping", "frequency", "log_step", "input_weight"}
    assert dynamics["weight_decay"] == 0
    assert others["weight_decay"] == 0.1
    assert len(others["params"]) + len(dynamics["params"]) == len(list(model.parameters()))
    set_rate(optimiser, 0.5)
    assert [group["lr"] for group in optimiser.param_groups] == [0.5e-2, 0.5e-3]


def test_without_its_own_rate_dynamics_share_the_common_one() -> None:
    optimiser = make_optimiser(SSNO(SSNOConfig.tiny()), TrainOptions(learning_rate=1e-2))
    assert {group["peak"] for group in optimiser.param_groups} == {1e-2}


def test_ordinary_modules_have_no_dynamics() -> None:
    model = torch.nn.Linear(2, 3)
    assert not list(state_space_parameters(model))
    assert len(make_optimiser(model, TrainOptions()).param_groups) == 1


def test_average_of_constant_weights_is_the_weights() -> None:
    model = torch.nn.Linear(2, 3)
    average = WeightAverage(model, 0.9)
    for step in range(1, 5):
        average.update(model, step)
    torch.testing.assert_close(average.values["weight"], model.weight.detach())


def test_average_follows_its_formula() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, 0.5)
    expected = model.weight.item()
    for step, value in enumerate([1.0, 2.0, 3.0], start=1):
        model.weight.data.fill_(value)
        average.update(model, step)
        keep = min(0.5, step / (step + 9))
        expected = keep * expected + (1 - keep) * value
    assert abs(average.values["weight"].item() - expected) < 1e-6


def test_swapping_twice_changes_nothing() -> None:
    model = torch.nn.Linear(2, 3)
    average = WeightAverage(model, 0.9)
    with torch.no_grad():
        model.weight.add_(1)
    before = model.weight.clone()
    average.swap(model)
    assert not torch.equal(model.weight, before)
    average.swap(model)
    assert torch.equal(model.weight, before)
