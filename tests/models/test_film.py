"""Scale and shift of blocks from the parameters of a trajectory."""

import pytest
import torch
from safetensors.torch import load_file

from ssno.data.trajectories import Trajectories
from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import modulated, without_means
from ssno.models.frozen import freeze
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.log import Silent
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train


def model(**fields) -> SSNO:
    """Two predicted fields, two known ones; modulation already learned."""
    torch.manual_seed(0)
    made = SSNOConfig.tiny(in_channels=4, out_channels=2, conditioning="film", **fields).build()
    torch.nn.init.normal_(made.film.last.weight, std=0.3)
    return made


def frames(grid=(8,), slots: int = 6) -> torch.Tensor:
    """Known fields: a number for each trajectory, and one that varies."""
    made = torch.randn(3, slots, 4, *grid)
    made[:, :, 2] = torch.tensor([0.5, 1.0, 2.0]).view(3, 1, *(1,) * len(grid))
    return made


def test_modulation_is_the_formula() -> None:
    features, by = torch.randn(4, 5, 6, 3), torch.randn(3, 2, 4)
    expected = torch.stack(
        [features[..., n] * (1 + by[n, 0])[:, None, None] + by[n, 1][:, None, None] for n in range(3)], -1
    )
    torch.testing.assert_close(modulated(features, by), expected)


def test_constants_leave_the_input_and_variations_stay() -> None:
    rest, means = without_means(frames()[:, 0], 2)
    torch.testing.assert_close(means[:, 0], torch.tensor([0.5, 1.0, 2.0]))
    assert rest[:, 2].abs().max() < 1e-6
    torch.testing.assert_close(rest[:, 3].mean(-1), torch.zeros(3), atol=1e-6, rtol=0)


def test_a_fresh_network_is_not_modulated_and_a_learned_one_depends_on_the_parameter() -> None:
    given, other = frames(), frames()
    other[:, :, 2] += 1.0
    fresh = SSNOConfig.tiny(in_channels=4, out_channels=2, conditioning="film").build()
    torch.manual_seed(1)
    other[:, :, [0, 1, 3]] = given[:, :, [0, 1, 3]]
    torch.testing.assert_close(fresh(given), fresh(other), atol=1e-5, rtol=1e-4)
    learned = model()
    assert (learned(given) - learned(other)).abs().max() > 1e-3


@pytest.mark.parametrize("grid", [(8,), (6, 5)])
def test_streaming_and_frozen_copies_give_what_forward_gives(grid) -> None:
    made, given = model(n_dims=len(grid)).eval(), frames(grid)
    with torch.no_grad():
        whole = made(given)
        state = made.start(given[:, :3])
        for slot in range(2, 6):
            answer, state = made.step(given[:, slot], state)
            torch.testing.assert_close(answer, whole[:, slot], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(made.predict_next(given), whole[:, -1], atol=1e-5, rtol=1e-4)
        frozen = freeze(made, grid=grid, batch=3)
        answer, _ = frozen(given[:, 5], frozen.buffer(given))
        torch.testing.assert_close(answer, whole[:, 5], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["ssno", "ssno-uni", "ssno-vm", "ssno-ff"])
def test_gradients_reach_every_weight_of_the_modulation(name) -> None:
    made = model_config(f"{name}:tiny", in_channels=4, out_channels=2, n_dims=2, conditioning="film").build()
    torch.nn.init.normal_(made.film.last.weight, std=0.1)
    made(frames((6, 5))).square().mean().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in made.film.parameters())


def test_a_killed_training_ends_bitwise_the_same(tmp_path) -> None:
    array = torch.cat([torch.randn(8, 6, 2, 8), torch.rand(8, 1, 1, 1).expand(8, 6, 1, 8)], dim=2).numpy()
    data = Trajectories.from_array(array, fields=["u", "v", "feed"], context_fields=["feed"], lengths=[1.0])
    settings = {"epochs": 2, "batch_size": 2, "reporter": Silent()}
    config = SSNOConfig.tiny(conditioning="film")
    train(config, data, folder=tmp_path / "whole", **settings)
    with pytest.raises(TrainingInterrupted):
        train(config, data, folder=tmp_path / "killed", stop_after=3, **settings)
    train(config, data, folder=tmp_path / "killed", resume=True, **settings)
    whole, killed = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert whole["film.last.weight"].abs().max() > 0
    assert all(torch.equal(whole[name], killed[name]) for name in whole)


def test_film_is_refused_where_there_is_nothing_to_take() -> None:
    with pytest.raises(ValueError, match="`conditioning='film'` needs context fields"):
        SSNO(conditioning="film")
    with pytest.raises(ValueError, match="set `frames_as_channels=0`"):
        SSNOConfig(conditioning="film", frames_as_channels=4, memory=MemoryOptions(0))
