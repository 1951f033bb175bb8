"""Peak memory: exact for computations whose tensors one can count."""

import pytest
import torch

from ssno.base.memory import LiveMemory, peak_memory

UNIT = 4000  # bytes of a vector of 1000 numbers


def test_new_tensors_count_while_they_live() -> None:
    x = torch.ones(1000)
    assert peak_memory(lambda: x + 1) == UNIT
    assert peak_memory(lambda: ((x + 1) * 2) - 3) == 2 * UNIT
    assert peak_memory(lambda: (x + 1, x + 2, x + 3)) == 3 * UNIT


def test_views_and_changes_in_place_are_free() -> None:
    x = torch.ones(1000)
    assert peak_memory(lambda: x.view(10, 100)[3:].T) == 0
    assert peak_memory(lambda: x.clone().add_(1).mul_(2)) == UNIT


@pytest.mark.parametrize("depth", [1, 5, 20])
def test_tensors_saved_for_the_backward_pass_count(depth) -> None:
    x = torch.ones(1000, requires_grad=True)

    def train() -> None:
        y = x
        for _ in range(depth):
            y = y.sin()
        y.sum().backward()

    # All inner results are saved; at the end of the forward pass also the last result, one gradient and cos.
    assert peak_memory(train) == pytest.approx((depth + 2) * UNIT, abs=20)


def test_without_gradients_nothing_is_saved() -> None:
    x = torch.ones(1000, requires_grad=True)

    def infer() -> None:
        y = x
        for _ in range(20):
            y = y.sin()

    with torch.no_grad():
        assert peak_memory(infer) == 2 * UNIT


def test_storages_count_from_birth_to_death() -> None:
    with LiveMemory() as count:
        first = torch.zeros(1000)
        view = first.view(10, 100)[2:]
        assert count.live == 4000
        second = first + 1
        assert count.live == 8000
        del first, view
        assert (count.live, count.peak) == (4000, 8000)
        del second
    assert (count.live, count.peak) == (0, 8000)


def test_what_a_custom_function_saves_is_counted() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.clone())
            return x.square()

        @staticmethod
        def backward(ctx, gradient):
            return 2 * ctx.saved_tensors[0] * gradient

    x = torch.ones(1000, requires_grad=True)
    with LiveMemory() as count:
        y = Square.apply(x)
        assert count.live == 8000
        y.sum().backward()
        del y
    assert count.live == 4000  # the gradient
