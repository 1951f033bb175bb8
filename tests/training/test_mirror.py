"""Mirror images: exact symmetries of the equation, drawn anew for every sample of every step."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.small_runs import outcome, tiny

from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import check_reflection, reflected
from ssno.pde.geometry import SPHERE
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.runs.options import TrainOptions
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train

KEY = (3, 1, 7)


def frames(*grid: int, count: int = 64, known: int = 0) -> Frames:
    generator = torch.Generator().manual_seed(0)
    return Frames(*(torch.randn(count, 3, fields, *grid, generator=generator) for fields in (1, known)))


def test_about_half_of_the_samples_are_images_of_themselves() -> None:
    given = frames(10)
    state, _ = reflected(given, "odd", KEY, range(64))
    images = torch.tensor([torch.equal(one, -was.flip(-1)) for one, was in zip(state, given.state, strict=True)])
    same = torch.tensor([torch.equal(one, was) for one, was in zip(state, given.state, strict=True)])
    assert bool((images ^ same).all())
    assert 20 < int(images.sum()) < 44


def test_in_two_dimensions_each_axis_has_a_coin_and_known_fields_go_along() -> None:
    given = frames(4, 6, known=2)
    state, context = reflected(given, "even", KEY, range(64))
    kinds = [(), (-2,), (-1,), (-2, -1)]
    seen = set()
    for n in range(64):
        (kind,) = [dims for dims in kinds if torch.equal(state[n], given.state[n].flip(dims))]
        assert torch.equal(context[n], given.context[n].flip(kind))
        seen.add(kind)
    assert seen == set(kinds)


def test_two_odd_images_keep_the_sign() -> None:
    given = frames(4, 6)
    state, _ = reflected(given, "odd", KEY, range(64))
    twice = given.state.flip((-2, -1))
    assert any(torch.equal(one, both) for one, both in zip(state, twice, strict=True))


def test_an_image_depends_on_its_sample_not_on_the_batch() -> None:
    given = frames(10)
    whole = reflected(given, "odd", KEY, range(64)).state
    part = reflected(Frames(given.state[40:], given.context[40:]), "odd", KEY, range(40, 64)).state
    assert torch.equal(whole[40:], part)
    assert not torch.equal(whole, reflected(given, "odd", (3, 1, 8), range(64)).state)


def image_of(parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Numbers of the start -u(-x): waves A sin(k x + phase) with the opposite phases."""
    return {**parameters, "phase": -parameters["phase"]}


@pytest.mark.parametrize(
    "problem", [Burgers(points=256, cells=256, initial_period=1.0), KuramotoSivashinsky(viscosity=0.1)]
)
def test_images_of_burgers_and_ks_solve_their_equations(problem) -> None:
    drawn = problem.draw(np.random.default_rng(0))
    if problem.name == "burgers":
        drawn |= {"absolute": np.array(0), "window": np.array(0)}
    straight, image = problem.solve([drawn, image_of(drawn)]).state[:, :15]
    mirrors = -straight[..., ::-1] if problem.axes[0].offset else np.roll(-straight[..., ::-1], 1, axis=-1)
    assert np.abs(straight[-1] - straight[0]).max() > 0.2
    np.testing.assert_allclose(image, mirrors, atol=1e-5)


def test_a_mirrored_run_differs_and_resumes_exactly(waves, tmp_path) -> None:
    options = TrainOptions(epochs=2, batch_size=4, reflect="odd")
    train(tiny(), waves, options=options, folder=tmp_path / "whole")
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, options=options, folder=tmp_path / "parts", stop_after=3)
    train(tiny(), waves, options=options, folder=tmp_path / "parts", resume=True)
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "parts")
    train(tiny(), waves, options=replace(options, reflect="none"), folder=tmp_path / "plain")
    assert outcome(tmp_path / "whole")["model"] != outcome(tmp_path / "plain")["model"]


@pytest.mark.usefixtures("as_users_call_it")
def test_data_without_a_known_image_are_refused(waves) -> None:
    with pytest.raises(ValueError, match="`reflect` must be one of 'none', 'even', 'odd', got 'left'"):
        TrainOptions(reflect="left")
    two = Trajectories.from_array(np.zeros((2, 3, 2, 8), np.float32), name="two", fields=("u", "v"))
    with pytest.raises(ValueError, match="`reflect='odd'` needs a single field and no context fields; 'two' has u, v"):
        check_reflection("odd", two)
    check_reflection("even", two)
    with pytest.raises(ValueError, match="needs data on a regular grid of a box, but 'waves' has"):
        train(tiny(), replace(waves, geometry=SPHERE), reflect="even")
