"""The universality example: its floor is the right one, and it shows what it claims."""

import torch

from examples import universality as example


def test_the_floor_is_the_conditional_expectation() -> None:
    u = example.inputs(3, torch.Generator().manual_seed(0)).double()
    place = torch.arange(example.POINTS)
    covariance = torch.tensor(example.MEMORY, dtype=torch.float64) ** (place[:, None] - place).abs()
    for point in (0, 10, 30):
        past, ahead = slice(0, point + 1), slice(point + 1, None)
        expected = torch.linalg.solve(covariance[past, past], covariance[past, ahead]).T @ u[:, past].T
        answer = 4 * u[:, point] * expected.sum(0) / example.POINTS
        torch.testing.assert_close(example.best_one_way_answer(u)[:, point], answer)
    assert example.best_one_way_answer(u)[:, -1].abs().max() == example.operator(u)[:, -1].abs().max() == 0


def test_only_the_model_that_sees_everything_gets_below_the_floor() -> None:
    outcome = example.experiment(widths=(4,), steps=80)
    both, one_way = (errors[0] for errors in outcome.errors.values())
    assert both < 0.9 * outcome.floor
    assert one_way > 0.99 * outcome.floor


def test_the_picture_shows_errors_floor_and_one_function(tmp_path) -> None:
    example.main(widths=(2, 3), steps=2, picture=tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    outcome = example.experiment(widths=(2, 3), steps=2)
    left, right = example.draw(outcome).axes
    assert [len(line.get_xdata()) for line in left.lines] == [2, 2, 2]  # two models and the floor
    assert [line.get_label() for line in right.lines] == ["truth", *example.MODELS]
