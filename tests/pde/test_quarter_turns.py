"""A quarter stands for the whole: turned neighbours, unfolding, and the same flow."""

import numpy as np
import pytest
import torch
from tests.pde.exact_gas import to_conserved
from torch import Tensor

from ssno.pde.finite_volume import wrap
from ssno.pde.gas import Euler, turned_wrap, unfold
from ssno.pde.geometry import Axis
from ssno.pde.problems.gas import RayleighTaylor


def quarter(channels: int, cells: int = 6) -> Tensor:
    return torch.rand(2, channels, cells, cells, dtype=torch.float64, generator=torch.Generator().manual_seed(channels))


def turned(whole: Tensor) -> Tensor:
    """The field R u(R^-1 x): a quarter turn of positions, and of the vector if there is one."""
    moved = torch.rot90(whole, 1, (-2, -1)).clone()  # x runs down the rows: this sends (x, y) to (-y, x)
    if whole.shape[1] > 1:
        moved[:, 1], moved[:, 2] = -moved[:, 2], moved[:, 1].clone()
    return moved


@pytest.mark.parametrize("channels", [1, 5, 6])
def test_an_unfolded_quarter_is_unchanged_by_a_quarter_turn(channels: int) -> None:
    part = quarter(channels)
    whole = unfold(part)
    assert torch.equal(whole[..., 6:, 6:], part)
    assert torch.equal(turned(whole), whole)
    if channels > 1:
        assert whole[:, 1].mean().abs() < 1e-15


@pytest.mark.parametrize("dim", [-2, -1])
@pytest.mark.parametrize("channels", [1, 5])
def test_turned_neighbours_are_those_of_the_whole(dim: int, channels: int) -> None:
    part = quarter(channels)
    whole = wrap(unfold(part), dim, width=2)
    expected = whole.narrow(dim, 6, 10).narrow(-3 - dim, 6, 6)
    assert torch.equal(turned_wrap(part, dim, width=2), expected)


def test_the_rate_of_a_quarter_is_that_of_the_whole() -> None:
    gas = quarter(5)
    gas[:, :4] += 0.5
    state = torch.cat([to_conserved(gas, gamma=2.0), quarter(1)], dim=1)
    axes = [(Axis("x", length, n), Axis("y", length, n)) for length, n in ((0.5, 6), (1.0, 12))]
    part = Euler(axes[0], gamma=2.0, gravity=True, beyond=turned_wrap).rate(state)
    whole = Euler(axes[1], gamma=2.0, gravity=True).rate(unfold(state))
    torch.testing.assert_close(unfold(part), whole, rtol=0, atol=1e-11)


class WholeStar(RayleighTaylor):
    """The same star without the short cut."""

    @property
    def turns(self) -> bool:
        return False


def test_a_star_solved_by_quarters_is_the_same_star() -> None:
    options = {"points": 16, "cells": 16, "frames": 2, "frame_interval": 0.5}
    star = RayleighTaylor(**options)
    parameters = [star.draw(np.random.default_rng(seed)) for seed in range(2)]
    part, whole = star.solve(parameters), WholeStar(**options).solve(parameters)
    assert star.solver_options["quarter_turns"]
    np.testing.assert_allclose(part.state, whole.state, rtol=0, atol=1e-12)
    np.testing.assert_allclose(part.context, whole.context, rtol=0, atol=1e-12)
    assert np.array_equal(np.rot90(part.state[0, -1, 0]), part.state[0, -1, 0])
    assert np.abs(part.state[0, -1, 1]).max() > 1e-3


def test_only_modes_that_are_multiples_of_four_are_solved_by_quarters() -> None:
    assert RayleighTaylor(mode=8).turns
    assert not RayleighTaylor(mode=6).turns
    assert not RayleighTaylor(cells=33, points=33).turns
